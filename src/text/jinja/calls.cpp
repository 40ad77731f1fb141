// Calls of filters, tests, methods, functions and macros.
#include "text/jinja/library/library.h"
#include "text/jinja/run.h"

namespace greta::jinja {

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
  if (const SpecialObject* macro = special_of(callee, Special::Macro))
    return call_macro(*static_cast<const MacroObject*>(macro), arguments, result);
  if (const SpecialObject* method = special_of(callee, Special::Method)) {
    const auto& bound = *static_cast<const MethodObject*>(method);
    return invoke(*this, bound.function, bound.self, arguments, result);
  }
  if (special_of(callee, Special::Loop)) return invoke(*this, loop_call, callee, arguments, result);
  if (special_of(callee, Special::Joiner)) return invoke(*this, joiner_call, callee, arguments, result);
  return fail(Code::Argument, "'%s' object is not callable", callee.type_name());
}

// ---- filters and tests ------------------------------------------------------------------------

static Status unknown_function(Form form, const std::string& name) {
  return fail(Code::Unsupported, "there is no %s \"%s\"", form == Form::Filter ? "filter" : "test",
              name.c_str());
}

// Evaluates a Filter or a Test. `head` is the text of a block, to which its chain of filters applies; it is
// null outside of blocks.
Status Run::apply_node(const Node& node, Frame* frame, const Value* head, Value* result) {
  Value subject;
  const Node* const operand = node.kids[0];
  if (!operand) {
    subject = *head;
  } else if (head && operand->form == Form::Filter) {
    const Level level(this);
    GRETA_TRY(check_depth());
    GRETA_TRY(apply_node(*operand, frame, head, &subject));
  } else {
    GRETA_TRY(evaluate(*operand, frame, &subject));
  }
  Arguments arguments;
  GRETA_TRY(read_arguments(node, frame, &arguments));
  if (!node.function) return unknown_function(node.form, node.text);
  return invoke(*this, *node.function, subject, arguments, result);
}

Status Run::apply(Form form, const std::string& name, const Value& subject, const Arguments& arguments,
                  Value* result) {
  const FunctionRow* row = form == Form::Filter ? find_filter(name) : find_test(name);
  if (!row) return unknown_function(form, name);
  GRETA_TRY(step());
  return invoke(*this, *row, subject, arguments, result);
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

// Makes the macro's parameters and further arguments variables of its frame. This is a function of its own so
// that its stack is free again when the macro's body runs.
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
    Value value;
    if (given)
      value = *given;
    else if (parameter.otherwise)
      GRETA_TRY(evaluate(*parameter.otherwise, frame, &value));
    else
      value = undefined("parameter '" + name + "' was not provided");
    frame->set(parameter.name, std::move(value));
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
