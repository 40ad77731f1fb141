// One rendering: its variables, its output, and what is left of its limits. Work and memory are counted
// before they are spent, by `step` and `room`.
#pragma once
#include <string>
#include <vector>

#include "text/jinja/callables.h"
#include "text/jinja/template.h"

namespace greta::jinja {

struct Arguments {
  std::vector<Value> places;                         // by position
  std::vector<std::pair<std::string, Value>> names;  // name=value
};

enum class Flow : uint8_t { Next, Break, Continue };

struct Run {
  Run(const Program& of, const Value& with, int64_t now, const Limits& within);
  ~Run();
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  // ---- limits ----
  Status step(uint64_t count = 1) {
    if (count > steps_left || budget.used > budget.limit) return exhausted(false);
    steps_left -= count;
    return {};
  }
  Status room(uint64_t bytes);    // fails if this many more bytes are too many; counts as work, too
  Status exhausted(bool memory);  // the failure of `room` (memory) or `step`
  struct Level {                  // one level deeper, for as long as it lives
    explicit Level(Run* run) : run_(*run) { ++run_.depth; }
    ~Level() { --run_.depth; }
    Run& run_;
  };
  Status check_depth();

  // ---- making values ----
  Value text(std::string&& bytes, bool markup = false);
  Value text(std::string_view bytes, bool markup = false) { return text(std::string(bytes), markup); }
  Value text(const char* bytes) { return text(std::string(bytes)); }
  Value sequence(std::vector<Value>&& items, Flavor flavor = Flavor::List);
  Value pair(Value first, Value second);
  Value dict();
  Value undefined(std::string&& hint);
  Value method(const FunctionRow& function, const Value& self);
  // Keeps an object that may be part of a ring of references until the end of the run, when it is emptied.
  void keep(Object* object);
  void keep(Frame* frame);

  // ---- the language ----
  Status evaluate(const Node& node, Frame* frame, Value* out);
  Status execute(const std::vector<Node*>& body, Frame* frame, Flow* flow);
  Status call(const Value& callee, Arguments& arguments, Value* out);
  Status call_loop(LoopObject& loop, const Value& items, Value* out);
  Status attribute(const Value& object, std::string_view name, Value* out);
  Status item(const Value& object, const Value& index, Value* out);
  // The filter or test (by `form`) of this name.
  Status apply(Form form, const std::string& name, const Value& subject, const Arguments& arguments,
               Value* out);
  Status print(std::string_view bytes);
  Status pull(LoopObject& loop, Value* item, bool* ended);

  const Program& program;
  const Value& context;
  const int64_t now_s;
  const Limits& limits;
  Budget budget;
  uint64_t steps_left;
  uint32_t depth = 0;
  std::string* out = nullptr;  // what output is appended to now
  uint64_t buffered = 0;       // bytes in all outputs that are being written
  uint32_t error_line = 0;     // of the innermost node that failed

 private:
  Status evaluate_node(const Node& node, Frame* frame, Value* out);
  Status name(const Node& node, Frame* frame, Value* out);
  Status items(const Node& node, Frame* frame, Value* out);
  Status dict_display(const Node& node, Frame* frame, Value* out);
  Status condition(const Node& node, Frame* frame, Value* out);
  Status binary(const Node& node, Frame* frame, Value* out);
  Status sign(const Node& node, Frame* frame, Value* out);
  Status concat(const Node& node, Frame* frame, Value* out);
  Status compare(const Node& node, Frame* frame, Value* out);
  Status item_node(const Node& node, Frame* frame, Value* out);
  Status call_node(const Node& node, Frame* frame, Value* out);
  Status apply_node(const Node& node, Frame* frame, const Value* head, Value* out);
  Status read_arguments(const Node& node, Frame* frame, Arguments* out);

  Status execute_node(const Node& node, Frame* frame, Flow* flow);
  Status print_node(const Node& node, Frame* frame);
  Status if_node(const Node& node, Frame* frame, Flow* flow);
  Status for_node(const Node& node, Frame* frame, Flow* flow);
  Status set_block(const Node& node, Frame* frame, Flow* flow);
  Status filter_block(const Node& node, Frame* frame, Flow* flow);
  Status with_node(const Node& node, Frame* frame, Flow* flow);
  Status call_block(const Node& node, Frame* frame);
  Status loop(const Node& node, Frame* frame, const Value& items, uint32_t depth0, Flow* flow);
  Status assign(const Node& target, const Value& value, Frame* frame);
  template <class Write>
  Status capture(Value* out, Write&& write);
  Status capture(const std::vector<Node*>& body, Frame* frame, Flow* flow, Value* out);
  Status call_macro(const MacroObject& macro, Arguments& arguments, Value* out);
  [[gnu::noinline]] Status give_arguments(const Node& node, Arguments& arguments, Frame* frame);
  Value make_macro(const Node& node, Frame* frame);

  std::vector<const Value*> known_;  // what the context has for each of the program's names
  std::vector<Ref<Object>> kept_;
  std::vector<Ref<Frame>> kept_frames_;
};

// ---- iteration and operators ----
Status start(const Value& value, Cursor* out);                          // fails if it cannot be looped over
Status collect(Run& run, const Value& value, std::vector<Value>* out);  // gives all its items
Status length_of(const Value& value, int64_t* out);
Status operate(Run& run, const std::string& op, const Value& a, const Value& b, Value* out);
Status add(Run& run, const Value& a, const Value& b, Value* out);
Status equal(Run& run, const Value& a, const Value& b, bool* out, uint32_t depth = 0);
Status less(Run& run, const Value& a, const Value& b, bool* out, uint32_t depth = 0);
Status holds(Run& run, Comparison how, const Value& a, const Value& b, bool* out);
// Finds the value of a key of any type, or null if there is none. Keys that are lists or dicts are refused.
Status find_key(Run& run, const Dict& dict, const Value& key, const Value** out);
Status contains(Run& run, const Value& container, const Value& item, bool* out);
Status slice(Run& run, const Value& object, const Value parts[3], Value* out);
Status to_text(Run& run, const Value& value, std::string* out);  // str()
Status format_percent(Run& run, const Value& form, const Value& values, Value* out);

Status undefined_error(const Value& undefined);
// Checks the arguments and calls a function of the library. `*result` must not be part of an argument.
Status invoke(Run& run, const FunctionRow& row, const Value& self, const Arguments& arguments, Value* result);

}  // namespace greta::jinja
