#include "text/jinja/value.h"

#include <cmath>

#include "text/jinja/objects.h"
#include "text/unicode/unicode.h"

namespace greta::jinja {

constexpr size_t kPlainEntries = 8;  // of a dict that is searched from one end to the other

// ---- objects ----------------------------------------------------------------------------------

void Pending::drop(Value* value) {
  drop(value->object());
  new (value) Value(nullptr);  // so that the reference is not released twice
}

void Pending::destroy() {
  while (first) {
    Object* object = first;
    first = object->next;
    object->drop_children(this);
    delete object;
  }
}

uint64_t Text::length() const {
  int64_t known = counted.load(std::memory_order_relaxed);
  if (known < 0) {
    known = 0;
    for (const char c : text) known += (c & 0xC0) != 0x80;
    counted.store(known, std::memory_order_relaxed);
  }
  return uint64_t(known);
}

void Sequence::drop_children(Pending* pending) {
  for (Value& item : items) pending->drop(&item);
}

void Dict::drop_children(Pending* pending) {
  for (Value::Entry& entry : entries) {
    pending->drop(&entry.key);
    pending->drop(&entry.value);
  }
}

// ---- dicts ------------------------------------------------------------------------------------

// Keys of one class are compared by their values. Values of classes from 3 on cannot be keys.
static int key_class(const Value& v) {
  if (v.is_none()) return 0;
  if (is_numeric(v)) return 1;
  if (v.is_string()) return 2;
  return v.kind() == Kind::Tuple ? 3 : 4;
}

bool is_hashable(const Value& value) {
  if (key_class(value) < 3) return true;
  if (value.kind() != Kind::Tuple) return false;
  for (const Value& item : value.items())
    if (key_class(item) >= 3) return false;
  return true;
}

static int compare_numbers(const Value& a, const Value& b) {
  if (!a.is_float() && !b.is_float()) return whole_of(a) < whole_of(b) ? -1 : whole_of(a) > whole_of(b);
  const double x = real_of(a), y = real_of(b);
  if (std::isnan(x) || std::isnan(y)) return int(std::isnan(x)) - int(std::isnan(y));
  return x < y ? -1 : x > y;
}

int compare_keys(const Value& a, const Value& b) {
  const int class_a = key_class(a), class_b = key_class(b);
  if (class_a != class_b) return class_a < class_b ? -1 : 1;
  if (class_a == 1) return compare_numbers(a, b);
  if (class_a == 2) return a.as_string().compare(b.as_string());
  if (class_a != 3) return 0;
  const auto x = a.items(), y = b.items();
  for (size_t i = 0; i < x.size() && i < y.size(); ++i)
    if (const int order = x[i].kind() == Kind::Tuple ? 0 : compare_keys(x[i], y[i])) return order;
  return x.size() < y.size() ? -1 : x.size() > y.size();
}

int compare_keys(const Value& a, std::string_view b) {
  const int class_a = key_class(a);
  return class_a != 2 ? class_a - 2 : a.as_string().compare(b);
}

template <class Key>
int64_t Dict::index_of(const Key& key) const {
  if (!order.empty()) {
    const auto found = order.find(key);
    return found == order.end() ? -1 : int64_t(*found);
  }
  for (size_t i = 0; i < entries.size(); ++i)
    if (compare_keys(entries[i].key, key) == 0) return int64_t(i);
  return -1;
}

template <class Key>
const Value* Dict::find(const Key& key) const {
  const int64_t at = index_of(key);
  return at < 0 ? nullptr : &entries[size_t(at)].value;
}
template const Value* Dict::find(const Value& key) const;
template const Value* Dict::find(const std::string_view& key) const;

void Dict::set(Value key, Value value) {
  if (const int64_t at = index_of(key); at >= 0) {
    entries[size_t(at)].value = std::move(value);
    return;
  }
  const size_t before = entries.capacity();
  entries.push_back({std::move(key), std::move(value)});
  charge((entries.capacity() - before) * sizeof(Value::Entry));
  if (entries.size() <= kPlainEntries) return;
  for (size_t i = order.size(); i < entries.size(); ++i) {
    order.insert(uint32_t(i));
    charge(48);  // a node of the tree
  }
}

// ---- values -----------------------------------------------------------------------------------

Value::Value(std::string_view text) : kind_(Kind::String) {
  if (!text.empty())
    as_.object = new Text(is_valid_utf8(text) ? std::string(text) : valid_utf8(text), nullptr);
}

Value Value::list(std::vector<Value> items) {
  return Value(Kind::List, new Sequence(std::move(items), Flavor::List, nullptr));
}

Value Value::dict() { return Value(Kind::Dict, new Dict(nullptr)); }

Value::Value(const Value& other) noexcept : kind_(other.kind_), mark_(other.mark_), as_(other.as_) {
  if (Object* shared = object()) shared->references.fetch_add(1, std::memory_order_relaxed);
}

Value::~Value() {
  if (Object* held = object()) {
    Pending pending;
    pending.drop(held);
    pending.destroy();
  }
}

bool Value::is_true() const {
  if (is_bool()) return as_.flag;
  if (is_int()) return as_.number != 0;
  if (is_float()) return as_.real != 0;
  if (is_string()) return !as_string().empty();
  if (kind_ == Kind::Object) return true;
  if (kind_ != Kind::Iterable) return size() > 0;
  const Sequence& sequence = *static_cast<const Sequence*>(as_.object);
  return sequence.flavor == Flavor::Generator || !sequence.items.empty();
}

std::string_view Value::as_string() const {
  return is_string() && as_.object ? std::string_view(static_cast<const Text*>(as_.object)->text)
                                   : std::string_view();
}

size_t Value::size() const { return is_dict() ? entries().size() : items().size(); }

std::span<const Value> Value::items() const {
  if (kind_ != Kind::List && kind_ != Kind::Tuple) return {};
  return static_cast<const Sequence*>(as_.object)->items;
}

std::span<const Value::Entry> Value::entries() const {
  if (!is_dict()) return {};
  return static_cast<const Dict*>(as_.object)->entries;
}

const Value* Value::find(std::string_view key) const {
  return is_dict() ? static_cast<const Dict*>(as_.object)->find(key) : nullptr;
}

const Value& Value::operator[](std::string_view key) const {
  static const Value nothing{};
  const Value* found = find(key);
  return found ? *found : nothing;
}

void Value::push(Value item) {
  if (!is_list()) return;
  auto& sequence = *static_cast<Sequence*>(as_.object);
  const size_t before = sequence.items.capacity();
  sequence.items.push_back(std::move(item));
  sequence.charge((sequence.items.capacity() - before) * sizeof(Value));
}

void Value::set(Value key, Value value) {
  if (is_dict()) static_cast<Dict*>(as_.object)->set(std::move(key), std::move(value));
}

const char* Value::type_name() const {
  constexpr const char* kNames[] = {"Undefined", "NoneType", "bool", "int", "float", "str",
                                    "list",      "tuple",    "dict", "",    "object"};  // by kind
  constexpr const char* kIterables[] = {"list",  "tuple",     "tuple",       "generator",
                                        "range", "dict_keys", "dict_values", "dict_items"};  // by flavor
  if (is_markup()) return "Markup";
  if (kind_ != Kind::Iterable) return kNames[size_t(kind_)];
  return kIterables[size_t(static_cast<const Sequence*>(as_.object)->flavor)];
}

}  // namespace greta::jinja
