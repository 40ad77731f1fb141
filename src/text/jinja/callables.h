// Objects that only templates make (namespaces, macros, methods, loops), and frames that hold variables.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "text/jinja/objects.h"
#include "text/jinja/syntax.h"

namespace greta::jinja {

// The variables of a block that has a scope of its own.
struct Frame : Object {
  Frame(Frame* outer, Budget* from) : Object(from), parent(outer ? Ref<Frame>::share(outer) : Ref<Frame>()) {
    charge(sizeof(Frame));
  }
  void drop_children(Pending* pending) override;
  const Value* find(uint32_t name, uint32_t* hops);  // searches outwards, too; adds how many frames it left
  Value* own(uint32_t name);                         // searches here alone; null if absent
  void set(uint32_t name, Value value);              // sets it here
  void clear();

  struct Variable {
    uint32_t name;
    Value value;
  };
  Ref<Frame> parent;
  std::vector<Variable> variables;
  std::map<uint32_t, uint32_t> index;  // of variables by name, in use once there are many
  bool kept = false;                   // the run holds it until its end
};

enum class Special : uint8_t { Namespace, Macro, Method, Loop, Cycler, Joiner };

struct SpecialObject : Object {
  SpecialObject(Special which, Budget* from) : Object(from), special(which) {}
  Special special;
};

struct NamespaceObject : SpecialObject {
  explicit NamespaceObject(Budget* from) : SpecialObject(Special::Namespace, from), attributes(from) {}
  void drop_children(Pending* pending) override { attributes.drop_children(pending); }
  Dict attributes;
};

struct MacroObject : SpecialObject {
  MacroObject(const Node& what, Frame* where, Budget* from)
      : SpecialObject(Special::Macro, from), node(what), frame(Ref<Frame>::share(where)) {
    charge(sizeof(MacroObject));
  }
  void drop_children(Pending* pending) override { pending->drop(frame.release()); }
  const Node& node;  // a Macro, or the CallBlock whose body it calls
  Ref<Frame> frame;  // null once a call block is over
};

// A method of a value, or a function if that is undefined.
struct MethodObject : SpecialObject {
  MethodObject(const FunctionRow& row, const Value& of, Budget* from)
      : SpecialObject(Special::Method, from), function(row), self(of) {
    charge(sizeof(MethodObject));
  }
  void drop_children(Pending* pending) override { pending->drop(&self); }
  const FunctionRow& function;
  Value self;
};

// Goes through anything that a template can loop over.
struct Cursor {
  Value source;
  size_t at = 0;  // an index, or a byte of a text
  // Returns false at the end. `source` is a sequence, a dict, a text, or undefined.
  bool next(Budget* budget, Value* out);
  // How many items are left; -1 if only going there can tell.
  int64_t left() const;
};

struct LoopObject : SpecialObject {
  LoopObject(const Node& what, Frame* where, Budget* from)
      : SpecialObject(Special::Loop, from), node(what), outer(Ref<Frame>::share(where)) {
    charge(sizeof(LoopObject));
  }
  void drop_children(Pending* pending) override;

  const Node& node;  // the For
  Ref<Frame> outer;  // the frame that it stands in; null once the loop is over
  Cursor cursor;
  Value current, before, after, changed;
  bool has_after = false, ended = false;
  bool filtered = false;  // the items that the cursor has left have passed the loop's filter
  int64_t index0 = -1, length = -1;
  uint32_t depth0 = 0;
};

struct CyclerObject : SpecialObject {
  explicit CyclerObject(Budget* from) : SpecialObject(Special::Cycler, from) {}
  void drop_children(Pending* pending) override {
    for (Value& item : items) pending->drop(&item);
  }
  std::vector<Value> items;
  size_t at = 0;
};

struct JoinerObject : SpecialObject {
  explicit JoinerObject(Budget* from) : SpecialObject(Special::Joiner, from) {}
  void drop_children(Pending* pending) override { pending->drop(&separator); }
  Value separator;
  bool used = false;
};

inline SpecialObject* special_of(const Value& v, Special which) {
  if (v.kind() != Kind::Object) return nullptr;
  auto* object = static_cast<SpecialObject*>(v.object());
  return object->special == which ? object : nullptr;
}
inline NamespaceObject* namespace_of(const Value& v) {
  return static_cast<NamespaceObject*>(special_of(v, Special::Namespace));
}

// Appends the repr() of such an object.
Status append_callable(const Value& value, uint64_t max_bytes, uint32_t depth, std::string* out);

}  // namespace greta::jinja
