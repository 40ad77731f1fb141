// What values hold on the heap, and the budget that it is taken from while a template renders.
#pragma once
#include <memory>
#include <set>

#include "text/jinja/value.h"

namespace greta::jinja {

// Memory of the objects that one rendering made and that are alive.
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
  // Hands over what it holds, so that a deep structure is not destroyed by recursion.
  virtual void drop_children(struct Pending*) {}

  std::atomic<uint32_t> references = 1;
  Object* next = nullptr;  // of those that wait to be destroyed
  Budget* budget;          // null outside of a rendering
  uint64_t bytes = 0;      // charged to it
};

// Objects whose last reference is gone.
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
  size_t taken = 0;       // of a generator: items that are gone
  int64_t range[3] = {};  // start, stop, step
};

struct Dict : Object {
  explicit Dict(Budget* from) : Object(from), order(ByKey{&entries}) { charge(sizeof(Dict)); }
  void drop_children(Pending* pending) override;
  const Value* find(const Value& key) const;
  const Value* find(std::string_view key) const;
  void set(Value key, Value value);

  struct ByKey {
    const std::vector<Value::Entry>* entries;
    using is_transparent = void;
    bool operator()(uint32_t a, uint32_t b) const;
    bool operator()(uint32_t a, const Value& b) const;
    bool operator()(const Value& a, uint32_t b) const;
    bool operator()(uint32_t a, std::string_view b) const;
    bool operator()(std::string_view a, uint32_t b) const;
  };
  std::vector<Value::Entry> entries;
  // Indices of entries by key, in use once there are many. A tree: keys may be chosen to collide.
  std::set<uint32_t, ByKey> order;

 private:
  template <class Key>
  int64_t index_of(const Key& key) const;
};

// What may be a dict's key, and its order: numbers (by value, as 1 == 1.0 == true), texts, None, and
// tuples of those.
bool is_hashable(const Value& value);
int compare_keys(const Value& a, const Value& b);

inline const Text* text_of(const Value& v) {
  return v.is_string() ? static_cast<const Text*>(v.object()) : nullptr;
}
inline Sequence* sequence_of(const Value& v) {
  const Kind kind = v.kind();
  const bool is = kind == Kind::List || kind == Kind::Tuple || kind == Kind::Iterable;
  return is ? static_cast<Sequence*>(v.object()) : nullptr;
}
inline Dict* dict_of(const Value& v) { return v.is_dict() ? static_cast<Dict*>(v.object()) : nullptr; }

}  // namespace greta::jinja
