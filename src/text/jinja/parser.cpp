#include "text/jinja/parser.h"

#include <algorithm>

#include "text/jinja/library/library.h"
#include "text/unicode/unicode.h"

namespace greta::jinja {

// ---- tokens and nodes -------------------------------------------------------------------------

bool Parser::at_name(Words names) const {
  if (now().type != TokenType::Name) return false;
  for (const char* name : names)
    if (now().text == name) return true;
  return false;
}

static std::string shown(const Token& token) {
  constexpr const char* kNames[] = {"text", "'{{'", "'}}'", "'{%'", "the end of the tag"};  // by type
  if (token.type == TokenType::End) return "the end of the template";
  return token.type <= TokenType::BlockEnd ? kNames[size_t(token.type)] : Quoted(token.text).c_str();
}

Status Parser::unexpected(const char* expected) const {
  return fail(Code::Argument, "line %u: expected %s, got %s", now().line, expected, shown(now()).c_str());
}

Status Parser::expect(TokenType type, const char* what) {
  if (now().type != type) return unexpected(what);
  next();
  return {};
}

Status Parser::expect_op(const char* op) {
  if (skip_op(op)) return {};
  return unexpected((std::string("'") + op + "'").c_str());
}

Status Parser::expect_name(std::string* out) {
  if (now().type != TokenType::Name) return unexpected("a name");
  *out = now().text;
  next();
  return {};
}

Node* Parser::make(Form form, uint32_t line) {
  Node& node = program_.nodes.emplace_back();
  node.form = form;
  node.line = line;
  return &node;
}

Status Parser::finish(Node* node) {
  uint32_t highest = 0;
  const auto see = [&](const Node* kid) { highest = std::max(highest, kid ? kid->height : 0); };
  for (const Node* kid : node->kids) see(kid);
  for (const ArgumentNode& argument : node->arguments) see(argument.value);
  for (const Parameter& parameter : node->parameters) see(parameter.otherwise);
  for (const Node* kid : node->targets) see(kid);
  for (const Node* kid : node->body) see(kid);
  for (const Node* kid : node->other) see(kid);
  node->height = highest + 1;
  if (node->height > kMaxHeight)
    return fail(Code::Full, "line %u: an expression or block of more than %u levels", node->line, kMaxHeight);
  return {};
}

Status Parser::nest() {
  if (++depth_ > kMaxBrackets)
    return fail(Code::Full, "line %u: brackets or blocks of more than %u levels", now().line, kMaxBrackets);
  return {};
}

// ---- statements -------------------------------------------------------------------------------

Status Parser::parse() {
  for (const char* name : {"loop", "caller", "varargs", "kwargs"}) program_.name_id(name);
  GRETA_TRY(statements({}, &program_.body));
  return now().type == TokenType::End ? Status{} : unexpected("a statement");
}

// Reads statements up to a tag of `ends`, whose name is then the next token, or to the end without `ends`.
Status Parser::statements(Words ends, std::vector<Node*>* out) {
  while (now().type != TokenType::End) {
    const Token& token = now();
    Node* node = nullptr;
    if (token.type == TokenType::Data) {
      node = make(Form::Data, token.line);
      node->constant = Value(token.text);
      next();
    } else if (token.type == TokenType::VariableBegin) {
      node = make(Form::Output, token.line);
      next();
      GRETA_TRY(tuple(true, false, {}, &node->kids.emplace_back()));
      GRETA_TRY(expect(TokenType::VariableEnd, "'}}'"));
      GRETA_TRY(finish(node));
    } else {
      next();  // the lexer gives nothing else but a block's beginning here
      if (at_name(ends)) return {};
      GRETA_TRY(statement(&node));
      GRETA_TRY(expect(TokenType::BlockEnd, "the end of the tag"));
    }
    if (node) out->push_back(node);
  }
  return ends.size() == 0 ? Status{} : missing(ends);
}

Status Parser::missing(Words ends) const {
  std::string names;
  for (const char* end : ends) names += std::string(names.empty() ? "" : " or ") + end;
  return fail(Code::Argument, "line %u: the template ends where %s is missing", now().line, names.c_str());
}

Status Parser::body(Words ends, std::vector<Node*>* out) {
  skip_op(":");
  GRETA_TRY(expect(TokenType::BlockEnd, "the end of the tag"));
  return statements(ends, out);
}

Status Parser::statement(Node** out) {
  struct Tag {
    const char* name;
    Status (Parser::*parse)(Node**);
  };
  static constexpr Tag kTags[] = {
      {"if", &Parser::parse_if},           {"for", &Parser::parse_for},
      {"set", &Parser::parse_set},         {"macro", &Parser::parse_macro},
      {"call", &Parser::parse_call_block}, {"filter", &Parser::parse_filter_block},
      {"with", &Parser::parse_with},       {"generation", &Parser::parse_generation},
      {"break", &Parser::parse_jump},      {"continue", &Parser::parse_jump},
  };
  if (now().type != TokenType::Name) return unexpected("the name of a tag");
  GRETA_TRY(nest());
  const Nested nested(this);
  for (const Tag& tag : kTags)
    if (now().text == tag.name) {
      GRETA_TRY((this->*tag.parse)(out));
      return finish(*out);
    }
  return unknown_tag();
}

Status Parser::unknown_tag() const {
  for (const char* other :
       {"block", "extends", "include", "import", "from", "print", "do", "autoescape", "trans", "debug"})
    if (now().text == other)
      return fail(Code::Unsupported, "line %u: the tag \"%s\" is not supported", now().line, other);
  return fail(Code::Argument, "line %u: unknown tag %s", now().line, Quoted(now().text).c_str());
}

Status Parser::parse_if(Node** out) {
  Node* node = *out = make(Form::If, now().line);
  // An elif is an If that stands alone in the `other` of the If before it.
  std::vector<Node*> chain = {node};
  for (;;) {
    next();  // if or elif
    GRETA_TRY(tuple(false, false, {}, &node->kids.emplace_back()));
    GRETA_TRY(body({"elif", "else", "endif"}, &node->body));
    if (!now().is_name("elif")) break;
    Node* inner = make(Form::If, now().line);
    node->is_chain = true;
    node->other.push_back(inner);
    chain.push_back(node = inner);
  }
  if (skip_name("else")) GRETA_TRY(body({"endif"}, &node->other));
  next();
  // A loop runs through the chain, so its own length adds nothing to the height.
  for (Node* link : chain) {
    const bool last = link == chain.back();
    std::vector<Node*> rest;
    if (!last) rest.swap(link->other);
    GRETA_TRY(finish(link));
    if (!last) rest.swap(link->other);
    chain[0]->height = std::max(chain[0]->height, link->height);
  }
  return {};
}

Status Parser::parse_for(Node** out) {
  Node* node = *out = make(Form::For, now().line);
  next();
  ++loops_;
  GRETA_TRY(target(false, true, &node->targets.emplace_back()));
  --loops_;
  if (!skip_name("in")) return unexpected("'in'");
  node->kids.resize(2);
  GRETA_TRY(tuple(false, false, {"recursive"}, &node->kids[0]));
  if (skip_name("if")) GRETA_TRY(expression(&node->kids[1]));
  node->recursive = skip_name("recursive");
  ++loops_;
  GRETA_TRY(body({"endfor", "else"}, &node->body));
  --loops_;
  if (skip_name("else")) GRETA_TRY(body({"endfor"}, &node->other));
  next();
  return {};
}

Status Parser::parse_set(Node** out) {
  Node* node = *out = make(Form::Set, now().line);
  next();
  GRETA_TRY(target(true, false, &node->targets.emplace_back()));
  node->kids.resize(1);
  if (skip_op("=")) return tuple(true, false, {}, &node->kids[0]);
  node->form = Form::SetBlock;
  while (now().is_op("|")) GRETA_TRY(filter(&node->kids[0]));
  GRETA_TRY(body({"endset"}, &node->body));
  next();
  return {};
}

// The parameters in the brackets behind a macro's name.
Status Parser::signature(Node* macro) {
  GRETA_TRY(expect_op("("));
  while (!now().is_op(")")) {
    if (!macro->parameters.empty()) GRETA_TRY(expect_op(","));
    Node* name;
    GRETA_TRY(target_name(&name));
    Parameter parameter{name->name, nullptr};
    if (skip_op("="))
      GRETA_TRY(expression(&parameter.otherwise));
    else if (!macro->parameters.empty() && macro->parameters.back().otherwise)
      return fail(Code::Argument, "line %u: a parameter without a default after one with", now().line);
    if (name->name == kCaller && !parameter.otherwise)
      return fail(Code::Argument, "line %u: a parameter \"caller\" needs a default", now().line);
    macro->parameters.push_back(parameter);
  }
  return expect_op(")");
}

// Reads the body of a macro or block. A break in it cannot end a loop around it. A macro takes further
// arguments, or a caller, only if its body names them.
Status Parser::own_body(const char* end, Node* node) {
  const size_t first = at_;
  const uint32_t loops = std::exchange(loops_, 0);
  GRETA_TRY(body({end}, &node->body));
  loops_ = loops;
  for (size_t i = first; i < at_; ++i) {
    const bool attribute = i > 0 && tokens_[i - 1].is_op(".");
    if (tokens_[i].type != TokenType::Name || attribute) continue;
    node->catches_varargs |= tokens_[i].text == "varargs";
    node->catches_kwargs |= tokens_[i].text == "kwargs";
    node->uses_caller |= tokens_[i].text == "caller";
  }
  for (const Parameter& parameter : node->parameters) node->uses_caller &= parameter.name != kCaller;
  next();
  return {};
}

Status Parser::parse_macro(Node** out) {
  Node* node = *out = make(Form::Macro, now().line);
  next();
  GRETA_TRY(target_name(&node->targets.emplace_back()));
  node->text = program_.names[node->targets[0]->name];
  GRETA_TRY(signature(node));
  return own_body("endmacro", node);
}

Status Parser::parse_call_block(Node** out) {
  Node* node = *out = make(Form::CallBlock, now().line);
  next();
  if (now().is_op("(")) GRETA_TRY(signature(node));
  GRETA_TRY(expression(&node->kids.emplace_back()));
  if (node->kids[0]->form != Form::Call) return fail(Code::Argument, "line %u: expected a call", node->line);
  return own_body("endcall", node);
}

Status Parser::parse_filter_block(Node** out) {
  Node* node = *out = make(Form::FilterBlock, now().line);
  node->kids.resize(1);
  do GRETA_TRY(filter(&node->kids[0]));  // which skips "filter", then each "|"
  while (now().is_op("|"));
  GRETA_TRY(body({"endfilter"}, &node->body));
  next();
  return {};
}

Status Parser::parse_with(Node** out) {
  Node* node = *out = make(Form::With, now().line);
  next();
  while (now().type != TokenType::BlockEnd) {
    if (!node->targets.empty()) GRETA_TRY(expect_op(","));
    GRETA_TRY(target(false, false, &node->targets.emplace_back()));
    GRETA_TRY(expect_op("="));
    GRETA_TRY(expression(&node->kids.emplace_back()));
  }
  GRETA_TRY(body({"endwith"}, &node->body));
  next();
  return {};
}

// The tag {% generation %} of transformers marks the assistant's own words. Rendering leaves the mark out. As
// in transformers, what is set inside stays inside.
Status Parser::parse_generation(Node** out) {
  Node* node = *out = make(Form::Scope, now().line);
  next();
  return own_body("endgeneration", node);
}

Status Parser::parse_jump(Node** out) {
  if (loops_ == 0)
    return fail(Code::Argument, "line %u: \"%s\" outside of a loop", now().line, now().text.c_str());
  *out = make(now().text == "break" ? Form::Break : Form::Continue, now().line);
  next();
  return {};
}

// ---- targets of assignments -------------------------------------------------------------------

Status Parser::target_name(Node** out) {
  Node* node = *out = make(Form::Name, now().line);
  std::string name;
  GRETA_TRY(expect_name(&name));
  for (const char* constant : {"true", "false", "none", "True", "False", "None"})
    if (name == constant) return fail(Code::Argument, "line %u: cannot assign to %s", node->line, constant);
  node->name = program_.name_id(name);
  if (node->name == kLoop && loops_ > 0)
    return fail(Code::Argument, "line %u: cannot assign to the variable of the loop", node->line);
  return {};
}

Status Parser::target_part(bool with_namespace, Node** out) {
  if (skip_op("(")) {
    GRETA_TRY(nest());
    const Nested nested(this);
    GRETA_TRY(target(with_namespace, false, out));
    return expect_op(")");
  }
  GRETA_TRY(target_name(out));
  if (!with_namespace || !skip_op(".")) return {};
  (*out)->form = Form::NamespaceTarget;
  return expect_name(&(*out)->text);
}

Status Parser::target(bool with_namespace, bool until_in, Node** out) {
  GRETA_TRY(target_part(with_namespace, out));
  if (!now().is_op(",")) return {};
  Node* node = make(Form::Tuple, now().line);
  node->kids.push_back(*out);
  while (skip_op(",")) {
    if (now().is_op(")") || now().is_op("=") || now().type == TokenType::BlockEnd ||
        (until_in && now().is_name("in")))
      break;
    GRETA_TRY(target_part(with_namespace, &node->kids.emplace_back()));
  }
  *out = node;
  return finish(node);
}

Status parse_program(std::string_view text, Program* out) {
  std::vector<Token> tokens;
  GRETA_TRY(tokenize(text, &tokens));
  return Parser(std::move(tokens), out).parse();
}

}  // namespace greta::jinja
