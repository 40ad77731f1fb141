// The objects that values hold on the heap, and the budget that they are charged to while a template renders.
#pragma once
#include <array>
#include <memory>
#include <set>

#include "text/jinja/value.h"

namespace greta::jinja {

// Counts the memory of living objects that one rendering made.
struct Budget {
  uint64_t limit = 0, used = 0;
};

struct Object {
  explicit Object(Budget* from = nullptr) : budget(from) {}
  virtual ~Object() {
    if (budget) budget->used -= bytes;
  }
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;

  // Counts `more` bytes as this object's.
  void charge(uint64_t more) {
    bytes += more;
    if (budget) budget->used += more;
  }
  // Hands over the values that it holds, so that destroying a deep structure takes no recursion.
  virtual void drop_children(struct Pending*) {}

  std::atomic<uint32_t> references = 1;
  Object* next = nullptr;  // in the list of those that wait to be destroyed
  Budget* budget;          // null outside of a rendering
  uint64_t bytes = 0;      // what it has charged
};

// The objects whose last reference is gone.
struct Pending {
  Object* first = nullptr;
  void drop(Object* object) {
    if (object && object->references.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      object->next = first;
      first = object;
    }
  }
  void drop(Value* value);
  void destroy();
};

// An owner of one reference.
template <class T>
class Ref {
 public:
  Ref() = default;
  explicit Ref(T* object) : object_(object) {}  // takes over the reference
  Ref(const Ref& other) : object_(other.object_) {
    if (object_) object_->references.fetch_add(1, std::memory_order_relaxed);
  }
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref& operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() {
    Pending pending;
    pending.drop(object_);
    pending.destroy();
  }
  T* get() const { return object_; }
  T* operator->() const { return object_; }
  T& operator*() const { return *object_; }
  explicit operator bool() const { return object_ != nullptr; }
  T* release() { return std::exchange(object_, nullptr); }
  static Ref share(T* object) {
    object->references.fetch_add(1, std::memory_order_relaxed);
    return Ref(object);
  }

 private:
  T* object_ = nullptr;
};

struct Text : Object {
  Text(std::string&& bytes_of_it, Budget* from) : Object(from), text(std::move(bytes_of_it)) {
    charge(sizeof(Text) + (text.capacity() > 15 ? text.capacity() : 0));
  }
  uint64_t length() const;  // in code points
  std::string text;
  mutable std::atomic<int64_t> counted = -1;
};

enum class Flavor : uint8_t { List, Tuple, Group, Generator, Range, Keys, Values, Items };

struct Sequence : Object {
  Sequence(std::vector<Value>&& values, Flavor kind, Budget* from)
      : Object(from), items(std::move(values)), flavor(kind) {
    charge(sizeof(Sequence) + items.capacity() * sizeof(Value));
  }
  void drop_children(Pending* pending) override;
  std::vector<Value> items;
  Flavor flavor;
  size_t taken = 0;                   // how many items a generator has given out
  std::array<int64_t, 3> range = {};  // start, stop, step
};

// A dict's key, and the order of keys. A key is None, a number (by value: 1 == 1.0 == true), a text, or a
// tuple of these.
bool is_hashable(const Value& value);
int compare_keys(const Value& a, const Value& b);
int compare_keys(const Value& a, std::string_view b);
inline int compare_keys(std::string_view a, const Value& b) { return -compare_keys(b, a); }

struct Dict : Object {
  explicit Dict(Budget* from) : Object(from), order(ByKey{&entries}) { charge(sizeof(Dict)); }
  void drop_children(Pending* pending) override;
  template <class Key>  // Value or std::string_view
  const Value* find(const Key& key) const;
  void set(Value key, Value value);

  struct ByKey {
    const std::vector<Value::Entry>* entries;
    using is_transparent = void;
    const Value& key(uint32_t index) const { return (*entries)[index].key; }
    template <class Key>
    const Key& key(const Key& itself) const {
      return itself;
    }
    template <class A, class B>
    bool operator()(const A& a, const B& b) const {
      return compare_keys(key(a), key(b)) < 0;
    }
  };
  std::vector<Value::Entry> entries;
  // Indices of entries by key, used once there are many. It is a tree, since a hostile template could choose
  // keys that collide in a hash table.
  std::set<uint32_t, ByKey> order;

 private:
  template <class Key>
  int64_t index_of(const Key& key) const;
};

inline const Text* text_of(const Value& v) {
  return v.is_string() ? static_cast<const Text*>(v.object()) : nullptr;
}
inline Sequence* sequence_of(const Value& v) {
  const Kind kind = v.kind();
  const bool is = kind == Kind::List || kind == Kind::Tuple || kind == Kind::Iterable;
  return is ? static_cast<Sequence*>(v.object()) : nullptr;
}
// A bool counts as an integer, as in Python.
inline bool is_numeric(const Value& v) { return v.is_number() || v.is_bool(); }
inline int64_t whole_of(const Value& v) { return v.is_bool() ? v.as_bool() : v.as_int(); }
inline double real_of(const Value& v) { return v.is_float() ? v.as_double() : double(whole_of(v)); }

inline Dict* dict_of(const Value& v) { return v.is_dict() ? static_cast<Dict*>(v.object()) : nullptr; }

}  // namespace greta::jinja
