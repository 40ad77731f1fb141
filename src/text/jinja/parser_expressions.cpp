// Parses expressions: operands, and operators by how tightly they bind.
#include "text/jinja/library/library.h"
#include "text/jinja/parser.h"

namespace greta::jinja {

// A tuple of expressions between commas, or one expression alone. A comma may end the tuple.
Status Parser::tuple(bool with_condition, bool in_brackets, Words ends, Node** out) {
  const uint32_t line = now().line;
  std::vector<Node*> items;
  bool comma = false;
  for (;;) {
    const TokenType type = now().type;
    if (type == TokenType::VariableEnd || type == TokenType::BlockEnd || now().is_op(")") || at_name(ends))
      break;
    Node* item;
    GRETA_TRY(with_condition ? condition(&item) : operation(kOr, &item));
    items.push_back(item);
    if (!skip_op(",")) break;
    comma = true;
  }
  if (!comma && !items.empty()) return *out = items[0], Status{};
  if (!comma && !in_brackets) return unexpected("an expression");
  *out = make(Form::Tuple, line);
  (*out)->kids = std::move(items);
  return finish(*out);
}

Status Parser::condition(Node** out) {
  GRETA_TRY(operation(kOr, out));
  while (now().is_name("if")) {
    Node* node = make(Form::Condition, now().line);
    next();
    Node *when, *otherwise = nullptr;
    GRETA_TRY(operation(kOr, &when));
    if (skip_name("else")) {
      GRETA_TRY(nest());
      const Nested nested(this);
      GRETA_TRY(condition(&otherwise));
    }
    node->kids = {when, *out, otherwise};
    GRETA_TRY(finish(node));
    *out = node;
  }
  return {};
}

// The operator that comes next, null if there is none.
const Parser::Operator* Parser::operator_now() const {
  static constexpr Operator kOperators[] = {
      {"or", kOr, Form::Or},
      {"and", kAnd, Form::And},
      {"==", kComparison, Form::Compare, Comparison::Equal},
      {"!=", kComparison, Form::Compare, Comparison::NotEqual},
      {"<", kComparison, Form::Compare, Comparison::Less},
      {"<=", kComparison, Form::Compare, Comparison::LessEqual},
      {">", kComparison, Form::Compare, Comparison::Greater},
      {">=", kComparison, Form::Compare, Comparison::GreaterEqual},
      {"in", kComparison, Form::Compare, Comparison::In},
      {"not", kComparison, Form::Compare, Comparison::NotIn},  // before "in"
      {"+", kSum, Form::Binary},
      {"-", kSum, Form::Binary},
      {"~", kConcat, Form::Concat},
      {"*", kProduct, Form::Binary},
      {"/", kProduct, Form::Binary},
      {"//", kProduct, Form::Binary},
      {"%", kProduct, Form::Binary},
      {"**", kPower, Form::Binary},
  };
  const bool word = now().type == TokenType::Name;
  if (!word && now().type != TokenType::Operator) return nullptr;
  for (const Operator& each : kOperators)
    if (now().text == each.text && word == (each.text[0] >= 'a' && each.text[0] <= 'z'))
      return each.meaning != Comparison::NotIn || ahead().is_name("in") ? &each : nullptr;
  return nullptr;
}

// Parses operands with operators that bind at least as tightly as `least`, and group from the left. It calls
// itself only for a tighter operator that is there, so that nested brackets take little of the stack.
Status Parser::operation(uint32_t least, Node** out) {
  GRETA_TRY(nest());
  const Nested nested(this);
  const uint32_t line = now().line;
  if (least <= kNot && now().is_name("not")) {
    Node* node = *out = make(Form::Not, line);
    next();
    GRETA_TRY(operation(kNot, &node->kids.emplace_back()));
    GRETA_TRY(finish(node));
  } else {
    GRETA_TRY(unary(true, out));
  }
  for (const Operator* op = operator_now(); op && op->level >= least; op = operator_now()) {
    const bool chain = op->form == Form::Compare || op->form == Form::Concat;  // one node for several
    Node* node = make(op->form, chain ? line : now().line);
    if (!chain) node->text = now().text;
    node->kids.push_back(*out);
    *out = node;
    for (const uint32_t level = op->level; op && op->level == level; op = operator_now()) {
      if (op->form == Form::Compare) node->comparisons.push_back(op->meaning);
      if (op->meaning == Comparison::NotIn) next();
      next();
      GRETA_TRY(operation(level + 1, &node->kids.emplace_back()));
      if (!chain) break;
    }
    GRETA_TRY(finish(node));
  }
  return {};
}

Status Parser::unary(bool with_filters, Node** out) {
  if (now().is_op("-") || now().is_op("+")) {
    GRETA_TRY(nest());
    const Nested nested(this);
    Node* node = *out = make(now().is_op("-") ? Form::Negative : Form::Positive, now().line);
    next();
    GRETA_TRY(unary(false, &node->kids.emplace_back()));
    GRETA_TRY(finish(node));
  } else {
    GRETA_TRY(primary(out));
  }
  GRETA_TRY(postfix(out));
  return with_filters ? filters(out) : Status{};
}

Status Parser::primary(Node** out) {
  const Token& token = now();
  if (token.is_op("[")) return list(out);
  if (token.is_op("{")) return dict(out);
  if (!token.is_op("(")) return atom(out);
  next();
  GRETA_TRY(tuple(true, true, {}, out));
  return expect_op(")");
}

// A name or a constant.
Status Parser::atom(Node** out) {
  const Token& token = now();
  const uint32_t line = token.line;
  if (token.type == TokenType::Name) {
    const std::string& name = token.text;
    const bool yes = name == "true" || name == "True", no = name == "false" || name == "False";
    if (yes || no || name == "none" || name == "None") {
      *out = make(Form::Constant, line);
      (*out)->constant = yes || no ? Value(yes) : Value(nullptr);
    } else {
      *out = make(Form::Name, line);
      (*out)->name = program_.name_id(name);
    }
    next();
    return {};
  }
  if (token.type == TokenType::String) {
    std::string text;
    for (; now().type == TokenType::String; next()) text += now().text;
    *out = make(Form::Constant, line);
    (*out)->constant = Value(text);
    return {};
  }
  if (token.type != TokenType::Number) return unexpected("an expression");
  *out = make(Form::Constant, line);
  (*out)->constant = token.number;
  next();
  return {};
}

Status Parser::list(Node** out) {
  Node* node = *out = make(Form::List, now().line);
  next();
  while (!now().is_op("]")) {
    if (!node->kids.empty()) {
      GRETA_TRY(expect_op(","));
      if (now().is_op("]")) break;
    }
    Node* item;
    GRETA_TRY(expression(&item));
    node->kids.push_back(item);
  }
  next();
  return finish(node);
}

Status Parser::dict(Node** out) {
  Node* node = *out = make(Form::Dict, now().line);
  next();
  while (!now().is_op("}")) {
    if (!node->kids.empty()) {
      GRETA_TRY(expect_op(","));
      if (now().is_op("}")) break;
    }
    Node *key, *value;
    GRETA_TRY(expression(&key));
    GRETA_TRY(expect_op(":"));
    GRETA_TRY(expression(&value));
    node->kids.insert(node->kids.end(), {key, value});
  }
  next();
  return finish(node);
}

Status Parser::postfix(Node** node) {
  for (;;) {
    if (now().is_op(".") || now().is_op("["))
      GRETA_TRY(subscript(node));
    else if (now().is_op("("))
      GRETA_TRY(call(node));
    else
      return {};
  }
}

Status Parser::filters(Node** node) {
  for (;;) {
    if (now().is_op("|"))
      GRETA_TRY(filter(node));
    else if (now().is_name("is"))
      GRETA_TRY(test(node));
    else if (now().is_op("("))
      GRETA_TRY(call(node));
    else
      return {};
  }
}

Status Parser::subscript(Node** node) {
  const uint32_t line = now().line;
  if (skip_op(".")) {
    Node* made = make(Form::Attribute, line);
    made->kids.push_back(*node);
    if (now().type == TokenType::Number && now().number.is_int()) {
      made->form = Form::Item;
      Node* index = make(Form::Constant, line);
      index->constant = now().number;
      made->kids.push_back(index);
      next();
    } else {
      GRETA_TRY(expect_name(&made->text));
    }
    *node = made;
    return finish(made);
  }
  next();
  Node* made = make(Form::Item, line);
  std::vector<Node*> indices;
  while (!now().is_op("]")) {
    if (!indices.empty()) GRETA_TRY(expect_op(","));
    Node* index;
    GRETA_TRY(subscript_index(&index));
    indices.push_back(index);
  }
  next();
  if (indices.size() != 1) {
    Node* both = make(Form::Tuple, line);
    for (const Node* index : indices)
      if (index->form == Form::Slice)
        return fail(Code::Argument, "line %u: a slice among other indices", line);
    both->kids = std::move(indices);
    GRETA_TRY(finish(both));
    indices = {both};
  }
  made->kids = {*node, indices[0]};
  *node = made;
  return finish(made);
}

Status Parser::subscript_index(Node** out) {
  const uint32_t line = now().line;
  Node* parts[3] = {};
  const auto ends = [&] { return now().is_op("]") || now().is_op(",") || now().is_op(":"); };
  if (!now().is_op(":")) GRETA_TRY(expression(&parts[0]));
  if (!skip_op(":")) return *out = parts[0], Status{};
  if (!ends()) GRETA_TRY(expression(&parts[1]));
  if (skip_op(":") && !ends()) GRETA_TRY(expression(&parts[2]));
  *out = make(Form::Slice, line);
  (*out)->kids.assign(parts, parts + 3);
  return finish(*out);
}

Status Parser::call(Node** node) {
  Node* made = make(Form::Call, now().line);
  made->kids.push_back(*node);
  GRETA_TRY(arguments(made));
  *node = made;
  return finish(made);
}

// (a, b, *more, name=c, **others)
Status Parser::arguments(Node* node) {
  const uint32_t line = now().line;
  next();
  bool named = false, stars[3] = {};
  while (!now().is_op(")")) {
    if (!node->arguments.empty()) {
      GRETA_TRY(expect_op(","));
      if (now().is_op(")")) break;
    }
    ArgumentNode argument{nullptr, "", 0};
    if (skip_op("*"))
      argument.stars = 1;
    else if (skip_op("**"))
      argument.stars = 2;
    else if (now().type == TokenType::Name && ahead().is_op("=")) {
      argument.name = now().text;
      next();
      next();
    }
    const bool by_place = !argument.stars && argument.name.empty();
    if (stars[2] || (argument.stars && stars[argument.stars]) || (by_place && (named || stars[1])))
      return fail(Code::Argument, "line %u: arguments of a call in the wrong order", line);
    named |= !argument.name.empty();
    stars[argument.stars] |= argument.stars > 0;
    GRETA_TRY(expression(&argument.value));
    node->arguments.push_back(std::move(argument));
  }
  next();
  return {};
}

Status Parser::dotted_name(std::string* out) {
  GRETA_TRY(expect_name(out));
  while (skip_op(".")) {
    std::string part;
    GRETA_TRY(expect_name(&part));
    *out += "." + part;
  }
  return {};
}

// Starts at the token before the filter's name. *node is the filtered value, or null in a block.
Status Parser::filter(Node** node) {
  next();
  Node* made = make(Form::Filter, now().line);
  made->kids.push_back(*node);
  GRETA_TRY(dotted_name(&made->text));
  made->function = find_filter(made->text);
  if (now().is_op("(")) GRETA_TRY(arguments(made));
  *node = made;
  return finish(made);
}

Status Parser::test(Node** node) {
  const uint32_t line = now().line;
  next();
  const bool negated = skip_name("not");
  Node* made = make(Form::Test, line);
  made->kids.push_back(*node);
  GRETA_TRY(dotted_name(&made->text));
  made->function = find_test(made->text);
  const TokenType type = now().type;
  const bool opens = now().is_op("[") || now().is_op("{");
  if (now().is_op("(")) {
    GRETA_TRY(arguments(made));
  } else if (opens || type == TokenType::Number || type == TokenType::String ||
             (type == TokenType::Name && !at_name({"else", "or", "and"}))) {
    if (now().is_name("is"))
      return fail(Code::Argument, "line %u: tests with \"is\" cannot be chained", line);
    ArgumentNode argument{nullptr, "", 0};
    GRETA_TRY(primary(&argument.value));
    GRETA_TRY(postfix(&argument.value));
    made->arguments.push_back(std::move(argument));
  }
  GRETA_TRY(finish(made));
  *node = made;
  if (!negated) return {};
  *node = make(Form::Not, line);
  (*node)->kids.push_back(made);
  return finish(*node);
}

}  // namespace greta::jinja
