// A value of a template, or of a JSON document. It is small and cheap to copy: texts and containers are
// counted objects on the heap that copies share. So a container is changed only while it is being built, by
// whoever builds it; templates never change one. Destruction does not recurse.
//
// Texts are always valid UTF-8, since what comes in is made so.
#pragma once
#include <atomic>
#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "platform/platform.h"

namespace greta::jinja {

enum class Kind : uint8_t {
  Undefined,  // the value of an unknown name
  None,       // JSON's null
  Bool,
  Int,
  Float,
  String,
  List,
  Tuple,
  Dict,      // in the order of insertion; JSON's object
  Iterable,  // what Python hands out for looping: generators, views of a dict, ranges
  Object,    // namespaces, macros, methods and the like, which only templates make
};

struct Object;  // on the heap

class Value {
 public:
  struct Entry;  // of a dict

  Value() = default;  // undefined
  Value(std::nullptr_t) : kind_(Kind::None) {}
  Value(bool value) : kind_(Kind::Bool) { as_.flag = value; }
  template <std::integral T>
  Value(T value) : kind_(Kind::Int) {
    as_.number = int64_t(value);
  }
  Value(double value) : kind_(Kind::Float) { as_.real = value; }
  Value(std::string_view text);
  Value(const char* text) : Value(std::string_view(text)) {}
  Value(const std::string& text) : Value(std::string_view(text)) {}
  static Value list(std::vector<Value> items = {});
  static Value dict();

  Value(const Value& other) noexcept;
  Value(Value&& other) noexcept : kind_(other.kind_), mark_(other.mark_), as_(other.as_) {
    other.kind_ = Kind::Undefined;
    other.as_.object = nullptr;
  }
  Value& operator=(Value other) noexcept {
    std::swap(kind_, other.kind_);
    std::swap(mark_, other.mark_);
    std::swap(as_, other.as_);
    return *this;
  }
  ~Value();

  Kind kind() const { return kind_; }
  bool is_undefined() const { return kind_ == Kind::Undefined; }
  bool is_none() const { return kind_ == Kind::None; }
  bool is_bool() const { return kind_ == Kind::Bool; }
  bool is_int() const { return kind_ == Kind::Int; }
  bool is_float() const { return kind_ == Kind::Float; }
  bool is_number() const { return is_int() || is_float(); }
  bool is_string() const { return kind_ == Kind::String; }
  bool is_list() const { return kind_ == Kind::List; }
  bool is_dict() const { return kind_ == Kind::Dict; }
  bool is_true() const;  // as Python's bool() has it: 0, "", empty containers, None and undefined are false

  // The value that it holds; false, 0 or "" if it is of another kind.
  bool as_bool() const { return is_bool() && as_.flag; }
  int64_t as_int() const { return is_int() ? as_.number : 0; }
  double as_double() const { return is_float() ? as_.real : double(as_int()); }
  std::string_view as_string() const;

  // For lists, tuples and dicts. Other kinds have nothing.
  size_t size() const;
  std::span<const Value> items() const;                 // of a list or tuple
  std::span<const Entry> entries() const;               // of a dict
  const Value* find(std::string_view key) const;        // null if absent
  const Value& operator[](std::string_view key) const;  // undefined if absent

  // Build a value: `push` works on a list and `set` on a dict. On other kinds they do nothing.
  void push(Value item);
  void set(Value key, Value value);  // a key that is there already keeps its place

  const char* type_name() const;  // Python's: "str", "dict"

  // ---- for the interpreter itself ----
  // Takes over the object's one reference.
  Value(Kind kind, Object* object, bool mark = false) : kind_(kind), mark_(mark) { as_.object = object; }
  Object* object() const { return holds_object() ? as_.object : nullptr; }
  bool is_markup() const { return mark_; }  // a text that is safe in HTML (the filter "safe")

 private:
  bool holds_object() const { return kind_ == Kind::Undefined || kind_ >= Kind::String; }
  Kind kind_ = Kind::Undefined;
  bool mark_ = false;
  union {
    Object* object = nullptr;  // null for a plain undefined and an empty text
    bool flag;
    int64_t number;
    double real;
  } as_;
};

struct Value::Entry {
  Value key, value;
};

}  // namespace greta::jinja
