// Statements, and what belongs to the run as a whole.
#include "text/jinja/run.h"

#include "text/jinja/library/library.h"

namespace greta::jinja {

Run::Run(const Program& of, const Value& with, int64_t now, const Limits& within)
    : program(of), context(with), now_s(now), limits(within), steps_left(within.steps) {
  budget.limit = within.memory_bytes;
  known_.reserve(program.names.size());
  for (const std::string& known : program.names) known_.push_back(context.find(known));
}

// Frames and namespaces may hold each other in rings, which are cut here.
Run::~Run() {
  for (const Ref<Frame>& frame : kept_frames_) frame->clear();
  Pending pending;
  for (const Ref<Object>& object : kept_) object->drop_children(&pending);
  pending.destroy();
}

// ---- limits -----------------------------------------------------------------------------------

Status Run::exhausted(bool memory) {
  if (memory || budget.used > budget.limit)
    return fail(Code::Full, "the template needs more than %llu bytes of memory",
                (unsigned long long)budget.limit);
  return fail(Code::Full, "the template takes more than %llu steps", (unsigned long long)limits.steps);
}

Status Run::room(uint64_t bytes) {
  if (bytes > budget.limit || budget.used > budget.limit - bytes) return exhausted(true);
  return step(1 + bytes / 64);
}

Status Run::check_depth() {
  if (depth <= limits.depth) return {};
  return fail(Code::Full, "more than %u calls and blocks within each other", limits.depth);
}

// ---- values -----------------------------------------------------------------------------------

Value Run::text(std::string&& bytes, bool markup) {
  if (bytes.empty()) return Value(Kind::String, nullptr, markup);
  return Value(Kind::String, new Text(std::move(bytes), &budget), markup);
}

Value Run::sequence(std::vector<Value>&& items, Flavor flavor) {
  const bool tuple = flavor == Flavor::Tuple || flavor == Flavor::Group;
  const Kind kind = flavor == Flavor::List ? Kind::List : tuple ? Kind::Tuple : Kind::Iterable;
  return Value(kind, new Sequence(std::move(items), flavor, &budget));
}

Value Run::pair(Value first, Value second) {
  std::vector<Value> both;
  both.reserve(2);
  both.push_back(std::move(first));
  both.push_back(std::move(second));
  return sequence(std::move(both), Flavor::Tuple);
}

Value Run::dict() { return Value(Kind::Dict, new Dict(&budget)); }

Value Run::undefined(std::string&& hint) {
  return Value(Kind::Undefined, new Text(std::move(hint), &budget));
}

Value Run::method(const FunctionRow& function, const Value& self) {
  return Value(Kind::Object, new MethodObject(function, self, &budget));
}

void Run::keep(Object* object) { kept_.push_back(Ref<Object>::share(object)); }

void Run::keep(Frame* frame) {
  for (; frame && !frame->kept; frame = frame->parent.get()) {
    frame->kept = true;
    kept_frames_.push_back(Ref<Frame>::share(frame));
  }
}

// ---- output -----------------------------------------------------------------------------------

Status Run::print(std::string_view bytes) {
  buffered += bytes.size();
  if (buffered > limits.output_bytes)
    return fail(Code::Full, "the template writes more than %llu bytes",
                (unsigned long long)limits.output_bytes);
  out->append(bytes);
  return step(bytes.size() / 64);
}

// Gives as a text what `write` writes.
template <class Write>
Status Run::capture(Value* result, Write&& write) {
  std::string text;
  std::string* const before = std::exchange(out, &text);
  const Status status = write();
  out = before;
  buffered -= text.size();
  GRETA_TRY(status);
  *result = this->text(std::move(text));
  return {};
}

Status Run::capture(const std::vector<Node*>& body, Frame* frame, Flow* flow, Value* result) {
  return capture(result, [&] { return execute(body, frame, flow); });
}

// ---- statements -------------------------------------------------------------------------------

Status Run::execute(const std::vector<Node*>& body, Frame* frame, Flow* flow) {
  const Level level(this);
  GRETA_TRY(check_depth());
  for (const Node* node : body) {
    const Status status = execute_node(*node, frame, flow);
    if (!status.ok()) {
      if (!error_line) error_line = node->line;
      return status;
    }
    if (*flow != Flow::Next) return {};
  }
  return {};
}

Status Run::execute_node(const Node& node, Frame* frame, Flow* flow) {
  GRETA_TRY(step());
  switch (node.form) {
    case Form::Data:
      return print(node.constant.as_string());
    case Form::Output:
      return print_node(node, frame);
    case Form::If:
      return if_node(node, frame, flow);
    case Form::For:
      return for_node(node, frame, flow);
    case Form::Set: {
      Value value;
      GRETA_TRY(evaluate(*node.kids[0], frame, &value));
      return assign(*node.targets[0], value, frame);
    }
    case Form::SetBlock:
      return set_block(node, frame, flow);
    case Form::Macro:
      frame->set(node.targets[0]->name, make_macro(node, frame));
      return {};
    case Form::CallBlock:
      return call_block(node, frame);
    case Form::FilterBlock:
      return filter_block(node, frame, flow);
    case Form::With:
      return with_node(node, frame, flow);
    case Form::Scope: {
      const Ref<Frame> inner(new Frame(frame, &budget));
      return execute(node.body, inner.get(), flow);
    }
    case Form::Break:
      *flow = Flow::Break;
      return {};
    case Form::Continue:
      *flow = Flow::Continue;
      return {};
    default:
      return fail(Code::Argument, "not a statement");
  }
}

Status Run::print_node(const Node& node, Frame* frame) {
  Value value;
  GRETA_TRY(evaluate(*node.kids[0], frame, &value));
  if (value.is_string()) return print(value.as_string());
  std::string text;
  GRETA_TRY(to_text(*this, value, &text));
  return print(text);
}

Status Run::if_node(const Node& node, Frame* frame, Flow* flow) {
  for (const Node* link = &node;;) {
    Value test;
    GRETA_TRY(evaluate(*link->kids[0], frame, &test));
    if (test.is_true()) return execute(link->body, frame, flow);
    if (!link->is_chain) return link->other.empty() ? Status{} : execute(link->other, frame, flow);
    link = link->other[0];
    GRETA_TRY(step());
  }
}

Status Run::for_node(const Node& node, Frame* frame, Flow* flow) {
  Value items;
  GRETA_TRY(evaluate(*node.kids[0], frame, &items));
  return loop(node, frame, items, 0, flow);
}

Status Run::loop(const Node& node, Frame* frame, const Value& items, uint32_t depth0, Flow* flow) {
  const Value holder(Kind::Object, new LoopObject(node, frame, &budget));
  auto& state = *static_cast<LoopObject*>(holder.object());
  GRETA_TRY(start(items, &state.cursor));
  state.depth0 = depth0;
  const struct Over {  // whoever keeps the loop must not keep its frame, which may refer back to them
    LoopObject& state;
    ~Over() {
      state.outer = {};
      state.ended = true;
    }
  } over{state};
  Ref<Frame> inner(new Frame(frame, &budget));
  bool whole = false;  // an iteration came to the end of the body; without one, Jinja takes the else
  for (;;) {
    Value item;
    bool ended = false;
    if (state.has_after)
      item = std::move(state.after);
    else
      GRETA_TRY(pull(state, &item, &ended));
    state.has_after = false;
    if (ended) break;
    GRETA_TRY(step());
    ++state.index0;
    state.before = std::move(state.current);
    state.current = item;
    if (inner->references.load(std::memory_order_relaxed) > 1)
      inner = Ref<Frame>(new Frame(frame, &budget));  // a macro has kept the frame of the last iteration
    else
      inner->clear();
    inner->set(kLoop, holder);
    GRETA_TRY(assign(*node.targets[0], item, inner.get()));
    GRETA_TRY(execute(node.body, inner.get(), flow));
    if (*flow == Flow::Break) break;
    whole |= *flow == Flow::Next;
    *flow = Flow::Next;
  }
  *flow = Flow::Next;
  if (whole || node.other.empty()) return {};
  const Ref<Frame> rest(new Frame(frame, &budget));
  return execute(node.other, rest.get(), flow);
}

// Takes the next item that the loop's filter lets through. The filter is asked only when the item is needed,
// so it sees what the body has changed.
Status Run::pull(LoopObject& loop, Value* item, bool* ended) {
  const Node* filter = loop.filtered ? nullptr : loop.node.kids[1];
  for (;;) {
    GRETA_TRY(step());
    *ended = loop.ended || !loop.cursor.next(&budget, item);
    if (*ended || !filter) return loop.ended = *ended, Status{};
    const Ref<Frame> frame(new Frame(loop.outer.get(), &budget));
    GRETA_TRY(assign(*loop.node.targets[0], *item, frame.get()));
    Value keep;
    GRETA_TRY(evaluate(*filter, frame.get(), &keep));
    if (keep.is_true()) return {};
  }
}

Status Run::call_loop(LoopObject& loop_object, const Value& items, Value* result) {
  if (!loop_object.outer) return fail(Code::Argument, "a loop that is over was called");
  if (!loop_object.node.recursive)
    return fail(Code::Argument, "only a loop that is marked \"recursive\" can be called");
  const Level level(this);
  GRETA_TRY(check_depth());
  Flow flow = Flow::Next;
  const Ref<Frame> outer = loop_object.outer;
  return capture(result,
                 [&] { return loop(loop_object.node, outer.get(), items, loop_object.depth0 + 1, &flow); });
}

Status Run::assign(const Node& target, const Value& value, Frame* frame) {
  if (target.form == Form::Name) {
    frame->set(target.name, value);
    return {};
  }
  if (target.form == Form::NamespaceTarget) {
    uint32_t hops = 0;
    const Value* found = frame->find(target.name, &hops);
    NamespaceObject* space = found ? namespace_of(*found) : nullptr;
    if (!space) return fail(Code::Argument, "only a namespace has attributes that can be set");
    space->attributes.set(text(target.text), value);
    return {};
  }
  std::vector<Value> items;
  Cursor cursor;
  GRETA_TRY(start(value, &cursor));
  for (Value item; cursor.next(&budget, &item);) {
    GRETA_TRY(step());
    if (items.size() == target.kids.size())
      return fail(Code::Argument, "too many values to unpack (expected %zu)", target.kids.size());
    items.push_back(std::move(item));
  }
  if (items.size() < target.kids.size())
    return fail(Code::Argument, "not enough values to unpack (expected %zu, got %zu)", target.kids.size(),
                items.size());
  for (size_t i = 0; i < items.size(); ++i) GRETA_TRY(assign(*target.kids[i], items[i], frame));
  return {};
}

Status Run::set_block(const Node& node, Frame* frame, Flow* flow) {
  const Ref<Frame> inner(new Frame(frame, &budget));
  Value value;
  GRETA_TRY(capture(node.body, inner.get(), flow, &value));
  if (*flow != Flow::Next) return {};
  if (node.kids[0]) GRETA_TRY(apply_node(*node.kids[0], inner.get(), &value, &value));
  return assign(*node.targets[0], value, frame);
}

Status Run::filter_block(const Node& node, Frame* frame, Flow* flow) {
  const Ref<Frame> inner(new Frame(frame, &budget));
  Value value;
  GRETA_TRY(capture(node.body, inner.get(), flow, &value));
  if (*flow != Flow::Next) return {};
  GRETA_TRY(apply_node(*node.kids[0], inner.get(), &value, &value));
  if (!value.is_string())
    return fail(Code::Argument, "a filter block's filter must give a string, not %s", value.type_name());
  return print(value.as_string());
}

Status Run::with_node(const Node& node, Frame* frame, Flow* flow) {
  const Ref<Frame> inner(new Frame(frame, &budget));
  for (size_t i = 0; i < node.kids.size(); ++i) {
    Value value;
    GRETA_TRY(evaluate(*node.kids[i], frame, &value));
    GRETA_TRY(assign(*node.targets[i], value, inner.get()));
  }
  return execute(node.body, inner.get(), flow);
}

Status Run::call_block(const Node& node, Frame* frame) {
  const Node& call_of = *node.kids[0];
  Value callee, result;
  GRETA_TRY(evaluate(*call_of.kids[0], frame, &callee));
  Arguments arguments;
  GRETA_TRY(read_arguments(call_of, frame, &arguments));
  const Value caller = make_macro(node, frame);
  arguments.names.emplace_back("caller", caller);
  const Status status = call(callee, arguments, &result);
  static_cast<MacroObject*>(caller.object())->frame = {};  // the frame may hold the caller in turn
  GRETA_TRY(status);
  std::string text;
  GRETA_TRY(to_text(*this, result, &text));
  return print(text);
}

// ---- templates --------------------------------------------------------------------------------

Template::Template() = default;
Template::~Template() = default;
Template::Template(Template&&) noexcept = default;
Template& Template::operator=(Template&&) noexcept = default;

Status Template::parse(std::string_view text) {
  if (text.size() > kMaxTemplateBytes)
    return fail(Code::Full, "a template of %zu bytes, at most %llu are read", text.size(),
                (unsigned long long)kMaxTemplateBytes);
  auto program = std::make_unique<Program>();
  GRETA_TRY(parse_program(text, program.get()));
  program_ = std::move(program);
  return {};
}

Status Template::render(const Value& context, int64_t now_s, const Limits& limits, std::string* out) const {
  if (!program_) return fail(Code::Argument, "no template was parsed");
  if (!context.is_dict())
    return fail(Code::Argument, "a template's context is a dict, not %s", context.type_name());
  std::string text;
  Run run(*program_, context, now_s, limits);
  run.out = &text;
  const Ref<Frame> root(new Frame(nullptr, &run.budget));
  Flow flow = Flow::Next;
  const Status status = run.execute(program_->body, root.get(), &flow);
  if (!status.ok()) return within(status, "line %u", run.error_line);
  out->append(text);
  return {};
}

}  // namespace greta::jinja
