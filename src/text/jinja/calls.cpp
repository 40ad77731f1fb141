// Calls: of filters, tests, methods, functions and macros.
#include <algorithm>

#include "text/jinja/library/library.h"
#include "text/jinja/run.h"

namespace greta::jinja {

Status bind(const char* function, const Arguments& arguments, std::initializer_list<const char*> parameters,
            size_t required, const Value** slots) {
  std::fill_n(slots, parameters.size(), nullptr);
  if (arguments.places.size() > parameters.size())
    return fail(Code::Argument, "%s takes at most %zu arguments, got %zu", function, parameters.size(),
                arguments.places.size());
  for (size_t i = 0; i < arguments.places.size(); ++i) slots[i] = &arguments.places[i];
  for (const auto& [name, value] : arguments.names) {
    const auto found = std::find(parameters.begin(), parameters.end(), name);
    if (found == parameters.end())
      return fail(Code::Argument, "%s got an unexpected argument \"%s\"", function, name.c_str());
    const Value*& slot = slots[found - parameters.begin()];
    if (slot) return fail(Code::Argument, "%s got the argument \"%s\" twice", function, name.c_str());
    slot = &value;
  }
  for (size_t i = 0; i < required; ++i)
    if (!slots[i])
      return fail(Code::Argument, "%s needs the argument \"%s\"", function, parameters.begin()[i]);
  return {};
}

Status want_int(const char* what, const Value& value, int64_t* out) {
  if (value.is_undefined()) return undefined_error(value);
  if (!value.is_int() && !value.is_bool())
    return fail(Code::Argument, "%s must be an integer, not %s", what, value.type_name());
  *out = value.is_bool() ? value.as_bool() : value.as_int();
  return {};
}

Status want_flag(const char* what, const Value* value, bool* out) {
  int64_t number = 0;
  if (value) GRETA_TRY(want_int(what, *value, &number));
  *out = number != 0;
  return {};
}

Status want_text(const char* what, const Value& value, std::string_view* out) {
  if (value.is_undefined()) return undefined_error(value);
  if (!value.is_string()) return fail(Code::Argument, "%s must be a string, not %s", what, value.type_name());
  *out = value.as_string();
  return {};
}

Status Run::read_arguments(const Node& node, Frame* frame, Arguments* to) {
  for (const ArgumentNode& argument : node.arguments) {
    Value value;
    GRETA_TRY(evaluate(*argument.value, frame, &value));
    if (argument.stars == 1) {
      GRETA_TRY(collect(*this, value, &to->places));
    } else if (argument.stars == 2) {
      if (!value.is_dict())
        return fail(Code::Argument, "what follows ** must be a dict, not %s", value.type_name());
      for (const Value::Entry& entry : value.entries()) {
        GRETA_TRY(step());
        std::string_view name;
        GRETA_TRY(want_text("the name of an argument", entry.key, &name));
        to->names.emplace_back(name, entry.value);
      }
    } else if (!argument.name.empty()) {
      to->names.emplace_back(argument.name, std::move(value));
    } else {
      to->places.push_back(std::move(value));
    }
  }
  return {};
}

Status Run::call_node(const Node& node, Frame* frame, Value* result) {
  Value callee;
  GRETA_TRY(evaluate(*node.kids[0], frame, &callee));
  Arguments arguments;
  GRETA_TRY(read_arguments(node, frame, &arguments));
  return call(callee, arguments, result);
}

Status Run::call(const Value& callee, Arguments& arguments, Value* result) {
  if (callee.is_undefined()) return undefined_error(callee);
  if (callee.kind() != Kind::Object)
    return fail(Code::Argument, "'%s' object is not callable", callee.type_name());
  auto* object = static_cast<SpecialObject*>(callee.object());
  Value made;
  switch (object->special) {
    case Special::Method:
    case Special::Function: {
      const auto& method = *static_cast<const MethodObject*>(object);
      GRETA_TRY(method.function(*this, method.self, arguments, &made));
      break;
    }
    case Special::Macro:
      GRETA_TRY(call_macro(*static_cast<const MacroObject*>(object), arguments, &made));
      break;
    case Special::Loop: {
      const Value* items = nullptr;
      GRETA_TRY(bind("loop()", arguments, {"iterable"}, 1, &items));
      const Value copy = *items;
      GRETA_TRY(call_loop(*static_cast<LoopObject*>(object), copy, &made));
      break;
    }
    case Special::Joiner: {
      auto& joiner = *static_cast<JoinerObject*>(object);
      GRETA_TRY(bind("joiner()", arguments, {}, 0, nullptr));
      made = joiner.used ? joiner.separator : text("");
      joiner.used = true;
      break;
    }
    case Special::Namespace:
    case Special::Cycler:
      return fail(Code::Argument, "this object is not callable");
  }
  *result = std::move(made);
  return {};
}

// ---- filters and tests ------------------------------------------------------------------------

// `head`: what a block's chain of filters starts from.
Status Run::filter_node(const Node& node, Frame* frame, const Value* head, Value* result) {
  Value subject;
  if (!node.kids[0])
    subject = *head;
  else if (head && node.kids[0]->form == Form::Filter) {
    const Level level(this);
    GRETA_TRY(check_depth());
    GRETA_TRY(filter_node(*node.kids[0], frame, head, &subject));
  } else {
    GRETA_TRY(evaluate(*node.kids[0], frame, &subject));
  }
  Arguments arguments;
  GRETA_TRY(read_arguments(node, frame, &arguments));
  if (!node.filter) return fail(Code::Unsupported, "there is no filter \"%s\"", node.text.c_str());
  Value made;
  GRETA_TRY(node.filter(*this, subject, arguments, &made));
  *result = std::move(made);
  return {};
}

Status Run::test_node(const Node& node, Frame* frame, Value* result) {
  Value subject;
  GRETA_TRY(evaluate(*node.kids[0], frame, &subject));
  Arguments arguments;
  GRETA_TRY(read_arguments(node, frame, &arguments));
  if (!node.test) return fail(Code::Unsupported, "there is no test \"%s\"", node.text.c_str());
  bool yes = false;
  GRETA_TRY(node.test(*this, subject, arguments, &yes));
  *result = yes;
  return {};
}

Status Run::filter(const std::string& name, const Value& subject, const Arguments& arguments, Value* result) {
  const Function function = find_filter(name);
  if (!function) return fail(Code::Unsupported, "there is no filter \"%s\"", name.c_str());
  GRETA_TRY(step());
  return function(*this, subject, arguments, result);
}

Status Run::test(const std::string& name, const Value& subject, const Arguments& arguments, bool* result) {
  const Predicate predicate = find_test(name);
  if (!predicate) return fail(Code::Unsupported, "there is no test \"%s\"", name.c_str());
  GRETA_TRY(step());
  return predicate(*this, subject, arguments, result);
}

// ---- macros -----------------------------------------------------------------------------------

Value Run::make_macro(const Node& node, Frame* frame) {
  if (node.form == Form::Macro) keep(frame);  // the macro is a variable of the frame that it holds
  return Value(Kind::Object, new MacroObject(node, frame, &budget));
}

Status Run::call_macro(const MacroObject& macro, Arguments& arguments, Value* result) {
  const Level level(this);
  GRETA_TRY(check_depth());
  if (!macro.frame) return fail(Code::Argument, "the caller of a call block that is over was called");
  const Ref<Frame> frame(new Frame(macro.frame.get(), &budget));
  GRETA_TRY(give_arguments(macro.node, arguments, frame.get()));
  Flow flow = Flow::Next;
  return capture(macro.node.body, frame.get(), &flow, result);
}

// The macro's parameters, and what it takes beside them, as variables of its frame. A function of its own,
// whose stack is free again when the body runs.
Status Run::give_arguments(const Node& node, Arguments& arguments, Frame* frame) {
  const char* const title = node.form == Form::Macro ? node.text.c_str() : "caller";
  const size_t count = node.parameters.size();
  std::vector<bool> used(arguments.names.size());
  const auto named = [&](std::string_view name) -> const Value* {
    for (size_t i = 0; i < used.size(); ++i)
      if (!used[i] && arguments.names[i].first == name) return used[i] = true, &arguments.names[i].second;
    return nullptr;
  };
  for (size_t i = 0; i < count; ++i) {
    const Parameter& parameter = node.parameters[i];
    const std::string& name = program.names[parameter.name];
    const Value* given = i < arguments.places.size() ? &arguments.places[i] : named(name);
    GRETA_TRY(step());
    if (given) {
      frame->set(parameter.name, *given);
    } else if (parameter.fallback) {
      Value value;
      GRETA_TRY(evaluate(*parameter.fallback, frame, &value));
      frame->set(parameter.name, std::move(value));
    } else {
      frame->set(parameter.name, undefined("parameter '" + name + "' was not provided"));
    }
  }
  if (node.uses_caller) {
    const Value* caller = named("caller");
    frame->set(kCaller, caller && !caller->is_none() ? *caller : undefined("No caller defined"));
  }
  Value others = dict();
  for (size_t i = 0; i < used.size(); ++i) {
    if (used[i]) continue;
    if (!node.catches_kwargs)
      return fail(Code::Argument, "macro '%s' takes no keyword argument '%s'", title,
                  arguments.names[i].first.c_str());
    others.set(text(arguments.names[i].first), arguments.names[i].second);
  }
  if (node.catches_kwargs) frame->set(kKwargs, others);
  std::vector<Value> more;
  for (size_t i = count; i < arguments.places.size(); ++i) more.push_back(arguments.places[i]);
  if (node.catches_varargs)
    frame->set(kVarargs, sequence(std::move(more), Flavor::Tuple));
  else if (!more.empty())
    return fail(Code::Argument, "macro '%s' takes not more than %zu argument(s)", title, count);
  return {};
}

}  // namespace greta::jinja
