// Evaluates the nodes of expressions.
#include <algorithm>

#include "text/jinja/library/library.h"
#include "text/jinja/run.h"

namespace greta::jinja {

Status undefined_error(const Value& undefined) {
  const auto* hint = static_cast<const Text*>(undefined.object());
  return fail(Code::Argument, "%s", hint ? hint->text.c_str() : "a value is undefined");
}

Status Run::evaluate(const Node& node, Frame* frame, Value* result) {
  const Level level(this);
  GRETA_TRY(check_depth());
  GRETA_TRY(step());
  const Status status = evaluate_node(node, frame, result);
  if (!status.ok() && !error_line) error_line = node.line;
  return status;
}

Status Run::evaluate_node(const Node& node, Frame* frame, Value* result) {
  switch (node.form) {
    case Form::Constant:
      *result = node.constant;
      return {};
    case Form::Name:
      return name(node, frame, result);
    case Form::Tuple:
    case Form::List:
      return items(node, frame, result);
    case Form::Dict:
      return dict_display(node, frame, result);
    case Form::Condition:
      return condition(node, frame, result);
    case Form::Or:
    case Form::And: {
      GRETA_TRY(evaluate(*node.kids[0], frame, result));
      if (result->is_true() == (node.form == Form::Or)) return {};
      return evaluate(*node.kids[1], frame, result);
    }
    case Form::Not: {
      GRETA_TRY(evaluate(*node.kids[0], frame, result));
      *result = !result->is_true();
      return {};
    }
    case Form::Negative:
    case Form::Positive:
      return sign(node, frame, result);
    case Form::Binary:
      return binary(node, frame, result);
    case Form::Concat:
      return concat(node, frame, result);
    case Form::Compare:
      return compare(node, frame, result);
    case Form::Attribute: {
      Value object;
      GRETA_TRY(evaluate(*node.kids[0], frame, &object));
      return attribute(object, node.text, result);
    }
    case Form::Item:
      return item_node(node, frame, result);
    case Form::Call:
      return call_node(node, frame, result);
    case Form::Filter:
    case Form::Test:
      return apply_node(node, frame, nullptr, result);
    default:
      return fail(Code::Argument, "not an expression");
  }
}

Status Run::name(const Node& node, Frame* frame, Value* result) {
  uint32_t hops = 0;
  const Value* found = frame->find(node.name, &hops);
  GRETA_TRY(step(hops));
  if (!found) found = known_[node.name];
  if (found) return *result = *found, Status{};
  const std::string& name = program.names[node.name];
  if (const FunctionRow* global = find_global(name))
    *result = method(*global, Value());
  else
    *result = undefined("'" + name + "' is undefined");
  return {};
}

Status Run::items(const Node& node, Frame* frame, Value* result) {
  std::vector<Value> values(node.kids.size());
  for (size_t i = 0; i < values.size(); ++i) GRETA_TRY(evaluate(*node.kids[i], frame, &values[i]));
  *result = sequence(std::move(values), node.form == Form::List ? Flavor::List : Flavor::Tuple);
  return {};
}

Status Run::dict_display(const Node& node, Frame* frame, Value* result) {
  Value made = dict();
  for (size_t i = 0; i < node.kids.size(); i += 2) {
    Value key, value;
    GRETA_TRY(evaluate(*node.kids[i], frame, &key));
    GRETA_TRY(evaluate(*node.kids[i + 1], frame, &value));
    if (!is_hashable(key)) return fail(Code::Argument, "%s cannot be a key of a dict", key.type_name());
    GRETA_TRY(step(key.as_string().size() / 16));
    made.set(std::move(key), std::move(value));
  }
  *result = std::move(made);
  return {};
}

Status Run::condition(const Node& node, Frame* frame, Value* result) {
  Value test;
  GRETA_TRY(evaluate(*node.kids[0], frame, &test));
  if (test.is_true()) return evaluate(*node.kids[1], frame, result);
  if (node.kids[2]) return evaluate(*node.kids[2], frame, result);
  *result = undefined("the inline if-expression evaluated to false and no else section was defined");
  return {};
}

Status Run::binary(const Node& node, Frame* frame, Value* result) {
  Value left, right;
  GRETA_TRY(evaluate(*node.kids[0], frame, &left));
  GRETA_TRY(evaluate(*node.kids[1], frame, &right));
  return operate(*this, node.text, left, right, result);
}

Status Run::sign(const Node& node, Frame* frame, Value* result) {
  Value value;
  GRETA_TRY(evaluate(*node.kids[0], frame, &value));
  if (value.is_undefined()) return undefined_error(value);
  const bool negative = node.form == Form::Negative;
  if (value.is_float()) return *result = negative ? -value.as_double() : value.as_double(), Status{};
  if (!value.is_int() && !value.is_bool())
    return fail(Code::Argument, "bad operand type for unary %c: '%s'", negative ? '-' : '+',
                value.type_name());
  const int64_t number = value.is_bool() ? value.as_bool() : value.as_int();
  if (negative && number == INT64_MIN) return fail(Code::Argument, "an integer does not fit 64 bits");
  *result = negative ? -number : number;
  return {};
}

Status Run::concat(const Node& node, Frame* frame, Value* result) {
  std::string text;
  for (const Node* kid : node.kids) {
    Value part;
    GRETA_TRY(evaluate(*kid, frame, &part));
    GRETA_TRY(to_text(*this, part, &text));
  }
  *result = this->text(std::move(text));
  return {};
}

Status Run::compare(const Node& node, Frame* frame, Value* result) {
  Value left;
  GRETA_TRY(evaluate(*node.kids[0], frame, &left));
  bool yes = true;
  for (size_t i = 0; yes && i < node.comparisons.size(); ++i) {
    Value right;
    GRETA_TRY(evaluate(*node.kids[i + 1], frame, &right));
    GRETA_TRY(holds(*this, node.comparisons[i], left, right, &yes));
    left = std::move(right);
  }
  *result = yes;
  return {};
}

Status Run::item_node(const Node& node, Frame* frame, Value* result) {
  Value object;
  GRETA_TRY(evaluate(*node.kids[0], frame, &object));
  const Node& index_node = *node.kids[1];
  if (index_node.form == Form::Slice) {
    Value parts[3] = {nullptr, nullptr, nullptr};
    for (size_t i = 0; i < 3; ++i)
      if (index_node.kids[i]) GRETA_TRY(evaluate(*index_node.kids[i], frame, &parts[i]));
    return slice(*this, object, parts, result);
  }
  Value index;
  GRETA_TRY(evaluate(index_node, frame, &index));
  return item(object, index, result);
}

// ---- attributes and items ---------------------------------------------------------------------

static Status loop_attribute(Run& run, LoopObject& loop, std::string_view name, Value* result, bool* found) {
  *found = true;
  const auto length = [&]() -> Status {
    if (loop.length >= 0) return {};
    const bool unsure = loop.node.kids[1] && !loop.filtered;
    const int64_t left = unsure || loop.ended ? -1 : loop.cursor.left();
    if (left >= 0) return loop.length = left + loop.index0 + 1 + loop.has_after, Status{};
    std::vector<Value> rest;
    for (bool ended = loop.ended; !ended;) {
      Value item;
      GRETA_TRY(run.pull(loop, &item, &ended));
      if (!ended) rest.push_back(std::move(item));
    }
    loop.length = int64_t(rest.size()) + loop.index0 + 1 + loop.has_after;
    loop.ended = false;
    loop.filtered = true;
    loop.cursor = {run.sequence(std::move(rest)), 0};
    return {};
  };
  const auto peek = [&]() -> Status {
    if (loop.has_after || loop.ended) return {};
    bool ended;
    GRETA_TRY(run.pull(loop, &loop.after, &ended));
    loop.has_after = !ended;
    return {};
  };
  if (name == "index") return *result = loop.index0 + 1, Status{};
  if (name == "index0") return *result = loop.index0, Status{};
  if (name == "first") return *result = loop.index0 == 0, Status{};
  if (name == "depth") return *result = int64_t(loop.depth0) + 1, Status{};
  if (name == "depth0") return *result = int64_t(loop.depth0), Status{};
  if (name == "previtem")
    return *result = loop.index0 > 0 ? loop.before : run.undefined("there is no previous item"), Status{};
  if (name == "last" || name == "nextitem") {
    GRETA_TRY(peek());
    if (name == "last")
      *result = !loop.has_after;
    else
      *result = loop.has_after ? loop.after : run.undefined("there is no next item");
    return {};
  }
  if (name == "length" || name == "revindex" || name == "revindex0") {
    GRETA_TRY(length());
    *result = name == "length" ? loop.length : loop.length - loop.index0 - (name == "revindex0");
    return {};
  }
  *found = false;
  return {};
}

// Returns true if Python's own objects have this name, and a sandbox must hide it.
static bool is_unsafe(const Value& object, std::string_view name) {
  if (name.substr(0, 2) == "__") return true;
  constexpr std::string_view kList[] = {"append", "clear",  "extend",  "insert",
                                        "pop",    "remove", "reverse", "sort"};
  constexpr std::string_view kDict[] = {"clear", "pop", "popitem", "setdefault", "update"};
  const auto in = [&](auto& names) {
    return std::find(std::begin(names), std::end(names), name) != std::end(names);
  };
  return (object.is_list() && in(kList)) || (object.is_dict() && in(kDict));
}

// Finds an attribute as Python does: a method, or a member of a namespace, loop or group.
static Status python_attribute(Run& run, const Value& object, std::string_view name, Value* result,
                               bool* found) {
  *found = true;
  if (is_unsafe(object, name)) {
    *result = run.undefined("access to attribute '" + std::string(name) + "' of '" + object.type_name() +
                            "' object is unsafe.");
    return {};
  }
  if (const NamespaceObject* space = namespace_of(object)) {
    const Value* value = space->attributes.find(name);
    *found = value != nullptr;
    if (value) *result = *value;
    return {};
  }
  if (SpecialObject* loop = special_of(object, Special::Loop)) {
    GRETA_TRY(loop_attribute(run, *static_cast<LoopObject*>(loop), name, result, found));
    if (*found) return {};
  }
  if (const SpecialObject* macro = special_of(object, Special::Macro); macro && name == "name") {
    const Node& node = static_cast<const MacroObject*>(macro)->node;
    *result = node.form == Form::Macro ? run.text(node.text) : Value(nullptr);
    return {};
  }
  if (const SpecialObject* cycler = special_of(object, Special::Cycler); cycler && name == "current") {
    const auto& cycle = *static_cast<const CyclerObject*>(cycler);
    *result = cycle.items[cycle.at % cycle.items.size()];
    return {};
  }
  if (object.is_number() || object.is_bool()) {
    const bool whole = !object.is_float();
    if (name == "real" || (whole && name == "numerator"))
      return *result = object.is_bool() ? Value(int64_t(object.as_bool())) : object, Status{};
    if (name == "imag") return *result = whole ? Value(0) : Value(0.0), Status{};
    if (whole && name == "denominator") return *result = Value(1), Status{};
  }
  const Sequence* sequence = sequence_of(object);
  if (sequence && sequence->flavor == Flavor::Group && (name == "grouper" || name == "list")) {
    *result = sequence->items[name == "list"];
    return {};
  }
  const FunctionRow* method = find_method(object, name);
  *found = method != nullptr;
  if (method) *result = run.method(*method, object);
  return {};
}

static Value missing(Run& run, const Value& object, std::string_view name) {
  const std::string owner = namespace_of(object) ? "Namespace" : object.type_name();
  return run.undefined("'" + owner + " object' has no attribute '" + std::string(name) + "'");
}

Status Run::attribute(const Value& object, std::string_view name, Value* result) {
  if (object.is_undefined() && !name.starts_with("__")) return undefined_error(object);
  bool found;
  Value value;
  GRETA_TRY(step(name.size() / 16));
  GRETA_TRY(python_attribute(*this, object, name, &value, &found));
  if (!found) {
    const Value* entry = object.find(name);
    value = entry ? *entry : missing(*this, object, name);
  }
  *result = std::move(value);
  return {};
}

Status Run::item(const Value& object, const Value& index, Value* result) {
  if (object.is_undefined()) return undefined_error(object);
  if (object.is_dict()) {
    GRETA_TRY(step(index.as_string().size() / 16));
    if (is_hashable(index))
      if (const Value* entry = dict_of(object)->find(index)) {
        const Value copy = *entry;  // *result may be the dict
        *result = copy;
        return {};
      }
  } else if (index.is_int() || index.is_bool()) {
    const Sequence* sequence = sequence_of(object);
    const bool indexed = sequence && (object.kind() != Kind::Iterable || sequence->flavor == Flavor::Range);
    int64_t at = index.is_bool() ? index.as_bool() : index.as_int();
    if (indexed) {
      const int64_t count = int64_t(sequence->items.size());
      if (at < 0) at += count;
      if (at >= 0 && at < count) {
        const Value copy = sequence->items[size_t(at)];
        *result = copy;
        return {};
      }
    } else if (object.is_string()) {
      const Text* text = text_of(object);
      const int64_t length = text ? int64_t(text->length()) : 0;
      if (at < 0) at += length;
      if (at >= 0 && at < length) {
        GRETA_TRY(step(text->text.size() / 16));
        const size_t from = byte_of(text->text, uint64_t(at));
        *result = this->text(text->text.substr(from, byte_of(text->text, uint64_t(at) + 1) - from),
                             object.is_markup());
        return {};
      }
    }
  }
  if (index.is_string()) {
    bool found;
    Value value;
    GRETA_TRY(python_attribute(*this, object, index.as_string(), &value, &found));
    *result = found ? std::move(value) : missing(*this, object, index.as_string());
    return {};
  }
  std::string shown;
  GRETA_TRY(to_text(*this, index, &shown));
  *result = undefined(std::string(object.type_name()) + " object has no element " + shown);
  return {};
}

}  // namespace greta::jinja
