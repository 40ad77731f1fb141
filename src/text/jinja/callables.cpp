#include "text/jinja/callables.h"

#include "text/jinja/library/library.h"
#include "text/jinja/print.h"

namespace greta::jinja {

constexpr size_t kPlainVariables = 12;  // of a frame that is searched from one end to the other

void Frame::drop_children(Pending* pending) {
  for (Variable& variable : variables) pending->drop(&variable.value);
  pending->drop(parent.release());
}

Value* Frame::own(uint32_t name) {
  if (!index.empty()) {
    const auto found = index.find(name);
    return found == index.end() ? nullptr : &variables[found->second].value;
  }
  for (Variable& variable : variables)
    if (variable.name == name) return &variable.value;
  return nullptr;
}

const Value* Frame::find(uint32_t name, uint32_t* hops) {
  for (Frame* frame = this; frame; frame = frame->parent.get(), ++*hops)
    if (const Value* found = frame->own(name)) return found;
  return nullptr;
}

void Frame::set(uint32_t name, Value value) {
  if (Value* there = own(name)) {
    *there = std::move(value);
    return;
  }
  variables.push_back({name, std::move(value)});
  charge(sizeof(Variable) + 48);
  if (variables.size() <= kPlainVariables) return;
  for (size_t i = index.size(); i < variables.size(); ++i) index[variables[i].name] = uint32_t(i);
}

void Frame::clear() {
  variables.clear();
  index.clear();
}

bool Cursor::next(Budget* budget, Value* out) {
  if (Sequence* sequence = sequence_of(source)) {
    size_t& index = sequence->flavor == Flavor::Generator ? sequence->taken : at;
    if (index >= sequence->items.size()) return false;
    *out = sequence->items[index++];
    return true;
  }
  if (source.is_dict()) {
    const auto entries = source.entries();
    if (at >= entries.size()) return false;
    *out = entries[at++].key;
    return true;
  }
  const std::string_view text = source.as_string();
  if (at >= text.size()) return false;
  const uint32_t bytes = decode_utf8(text, at).bytes;
  *out = Value(Kind::String, new Text(std::string(text.substr(at, bytes)), budget));
  at += bytes;
  return true;
}

int64_t Cursor::left() const {
  if (const Sequence* sequence = sequence_of(source))
    return sequence->flavor == Flavor::Generator ? -1 : int64_t(sequence->items.size() - at);
  if (source.is_dict()) return int64_t(source.size() - at);
  int64_t count = 0;
  for (const char c : source.as_string().substr(at)) count += (c & 0xC0) != 0x80;
  return count;
}

void LoopObject::drop_children(Pending* pending) {
  for (Value* value : {&cursor.source, &current, &before, &after, &changed}) pending->drop(value);
  pending->drop(outer.release());
}

Status append_callable(const Value& value, uint64_t max_bytes, uint32_t depth, std::string* out) {
  if (const NamespaceObject* space = namespace_of(value)) {
    *out += "<Namespace {";
    for (const Value::Entry& entry : space->attributes.entries) {
      if (&entry != space->attributes.entries.data()) *out += ", ";
      GRETA_TRY(append_repr(entry.key, max_bytes, out, depth + 1));
      *out += ": ";
      GRETA_TRY(append_repr(entry.value, max_bytes, out, depth + 1));
    }
    *out += "}>";
    return {};
  }
  if (const auto* macro = static_cast<const MacroObject*>(special_of(value, Special::Macro))) {
    *out += macro->node.form == Form::Macro ? "<Macro '" + macro->node.text + "'>" : "<Macro anonymous>";
  } else if (const auto* method = static_cast<const MethodObject*>(special_of(value, Special::Method))) {
    *out += std::string("<built-in method ") + method->function.name + ">";
  } else if (const auto* loop = static_cast<const LoopObject*>(special_of(value, Special::Loop))) {
    const int64_t left = loop->cursor.left(), seen = loop->index0 + 1 + loop->has_after;
    const int64_t length = loop->length >= 0 ? loop->length : left < 0 ? seen : left + seen;
    *out += "<LoopContext " + std::to_string(loop->index0 + 1) + "/" + std::to_string(length) + ">";
  } else {
    *out += special_of(value, Special::Cycler) ? "<Cycler>" : "<Joiner>";
  }
  return {};
}

}  // namespace greta::jinja
