// Reads metadata by its types: what a value is, whether it fits, and how it is shown.
#include <cmath>
#include <utility>

#include "gguf/header.h"

namespace greta {
namespace {

struct TypeInfo {
  const char* name;
  uint32_t bytes;
};
constexpr TypeInfo kTypes[kValueTypes] = {{"u8", 1},  {"i8", 1},  {"u16", 2},  {"i16", 2},    {"u32", 4},
                                          {"i32", 4}, {"f32", 4}, {"bool", 1}, {"string", 0}, {"array", 0},
                                          {"u64", 8}, {"i64", 8}, {"f64", 8}};

std::string type_text(const GgufValue& value) {
  if (value.type != ValueType::Array) return value_type_name(value.type);
  return "array of " + std::to_string(value.count) + " " + value_type_name(value.element);
}

std::string integer_text(const GgufInteger& value) {
  return value.negative ? std::to_string(int64_t(value.bits)) : std::to_string(value.bits);
}

bool real(ValueType type, const uint8_t* data, double* out) {
  GgufInteger integer;
  if (type == ValueType::F32)
    *out = load_unaligned<float>(data);
  else if (type == ValueType::F64)
    *out = load_unaligned<double>(data);
  else if (gguf_integer(type, data, &integer))
    *out = integer.negative ? double(int64_t(integer.bits)) : double(integer.bits);
  else
    return false;
  return true;
}

Status check_range(const GgufValue& value, const GgufInteger& integer, uint64_t most) {
  if (!integer.negative && integer.bits <= most) return {};
  return fail(Code::File, "key %s: %s, expected 0 to %llu", Quoted(value.key).c_str(),
              integer_text(integer).c_str(), (unsigned long long)most);
}

Status to_f32(const GgufValue& value, const uint8_t* data, float* out) {
  double number;
  if (!real(value.element, data, &number)) return gguf_wrong_type(value, "a number");
  if (!std::isfinite(number) || !std::isfinite(float(number)))
    return fail(Code::File, "key %s: %g, expected a finite 32-bit number", Quoted(value.key).c_str(), number);
  *out = float(number);
  return {};
}

}  // namespace

uint32_t value_bytes(ValueType type) { return kTypes[uint32_t(type)].bytes; }
const char* value_type_name(ValueType type) { return kTypes[uint32_t(type)].name; }

bool gguf_integer(ValueType type, const uint8_t* data, GgufInteger* out) {
  const auto load = [&](auto number) {
    number = load_unaligned<decltype(number)>(data);
    return *out = {std::cmp_less(number, 0), uint64_t(number)}, true;
  };
  if (type == ValueType::U8) return load(uint8_t());
  if (type == ValueType::I8) return load(int8_t());
  if (type == ValueType::U16) return load(uint16_t());
  if (type == ValueType::I16) return load(int16_t());
  if (type == ValueType::U32) return load(uint32_t());
  if (type == ValueType::I32) return load(int32_t());
  if (type == ValueType::U64) return load(uint64_t());
  return type == ValueType::I64 && load(int64_t());
}

Status gguf_wrong_type(const GgufValue& value, const char* expected) {
  return fail(Code::File, "key %s: its value is of type %s, expected %s", Quoted(value.key).c_str(),
              type_text(value).c_str(), expected);
}

Status GgufHeader::get_integer(std::string_view key, uint64_t most, uint64_t* out, bool* found) const {
  const GgufValue* value = find(key);
  *found = value != nullptr;
  if (!value) return {};
  GgufInteger integer;
  if (!gguf_integer(value->type, value->data, &integer)) return gguf_wrong_type(*value, "an integer");
  GRETA_TRY(check_range(*value, integer, most));
  *out = integer.bits;
  return {};
}

Status Gguf::get_u32(std::string_view key, uint32_t* out) const {
  uint64_t integer = *out;
  bool found;
  GRETA_TRY(within(headers_[0].get_integer(key, UINT32_MAX, &integer, &found), "%s", name()));
  *out = uint32_t(integer);
  return {};
}

Status Gguf::get_f32(std::string_view key, float* out) const {
  const GgufValue* value = find(key);
  if (!value) return {};
  if (value->type == ValueType::Array) return within(gguf_wrong_type(*value, "a number"), "%s", name());
  return within(to_f32(*value, value->data, out), "%s", name());
}

Status Gguf::get_bool(std::string_view key, bool* out) const {
  const GgufValue* value = find(key);
  if (!value) return {};
  if (value->type != ValueType::Bool) return within(gguf_wrong_type(*value, "a bool"), "%s", name());
  *out = *value->data != 0;
  return {};
}

Status Gguf::get_string(std::string_view key, std::string_view* out) const {
  const GgufValue* value = find(key);
  if (!value) return {};
  if (value->type != ValueType::String) return within(gguf_wrong_type(*value, "a string"), "%s", name());
  *out = {reinterpret_cast<const char*>(value->data), value->bytes};
  return {};
}

// ---- arrays -----------------------------------------------------------------------------------

// The bytes from one layer's value to the next: 0 for a scalar. Fails unless an array has `count` values.
static Status layer_data(const GgufValue& value, uint32_t count, uint32_t* out_step) {
  if (value_bytes(value.element) == 0) return gguf_wrong_type(value, "a number, or an array of them");
  if (value.type == ValueType::Array && value.count != count)
    return fail(Code::File, "key %s: an array of %llu values, expected %u, one for each layer (block_count)",
                Quoted(value.key).c_str(), (unsigned long long)value.count, count);
  *out_step = value.type == ValueType::Array ? value_bytes(value.element) : 0;
  return {};
}

Status Gguf::get_layers_u32(std::string_view key, uint32_t count, uint32_t* out) const {
  const GgufValue* value = find(key);
  if (!value) return {};
  uint32_t step = 0;
  GRETA_TRY(within(layer_data(*value, count, &step), "%s", name()));
  for (uint32_t i = 0; i < count; ++i) {
    const uint8_t* data = value->data + uint64_t(i) * step;
    GgufInteger integer{false, *data != 0};
    if (value->element != ValueType::Bool && !gguf_integer(value->element, data, &integer))
      return within(gguf_wrong_type(*value, "an integer, or an array of them"), "%s", name());
    GRETA_TRY(within(check_range(*value, integer, UINT32_MAX), "%s", name()));
    out[i] = uint32_t(integer.bits);
  }
  return {};
}

Status Gguf::get_array(std::string_view key, ValueType element, ValueType other,
                       const GgufValue** out) const {
  *out = find(key);
  if (!*out) return {};
  const GgufValue& value = **out;
  if (value.type == ValueType::Array && (value.element == element || value.element == other)) return {};
  const std::string expected = std::string("an array of ") + value_type_name(element);
  return within(gguf_wrong_type(value, expected.c_str()), "%s", name());
}

Status Gguf::get_strings(std::string_view key, StringArray* out) const {
  const GgufValue* value;
  GRETA_TRY(get_array(key, ValueType::String, ValueType::String, &value));
  if (value) *out = {value->data, value->count};
  return {};
}

Status Gguf::get_f32_array(std::string_view key, PackedArray<float>* out) const {
  const GgufValue* value;
  GRETA_TRY(get_array(key, ValueType::F32, ValueType::F32, &value));
  if (value) *out = {value->data, value->count};
  return {};
}

Status Gguf::get_i32_array(std::string_view key, PackedArray<int32_t>* out) const {
  const GgufValue* value;
  GRETA_TRY(get_array(key, ValueType::I32, ValueType::U32, &value));
  if (value) *out = {value->data, value->count};
  return {};
}

bool gguf_numbers(const GgufValue& value, std::vector<double>* out) {
  const uint32_t bytes = value_bytes(value.element);
  for (uint64_t i = 0; bytes && i < value.count; ++i) {
    const uint8_t* data = value.data + i * bytes;
    double number = *data;
    if (value.element != ValueType::Bool) real(value.element, data, &number);
    out->push_back(number);
  }
  return bytes != 0;
}

// ---- text -------------------------------------------------------------------------------------

static std::string scalar_text(ValueType type, const uint8_t* data) {
  GgufInteger integer;
  if (gguf_integer(type, data, &integer)) return integer_text(integer);
  if (type == ValueType::Bool) return *data ? "true" : "false";
  double number = 0;
  real(type, data, &number);
  char text[40];
  format_text(text, sizeof text, "%.9g", number);
  return text;
}

std::string gguf_text(const GgufValue& value, uint32_t max_bytes) {
  const auto quoted = [&](std::string_view text) {
    std::string out = "\"";
    const std::string valid = valid_utf8(text.substr(0, max_bytes));
    for (const char c : valid) {
      if (c == '\n')
        out += "\\n";
      else if (c == '"' || c == '\\')
        (out += '\\') += c;
      else
        out += uint8_t(c) < 0x20 || c == 0x7f ? ' ' : c;
    }
    return out + (text.size() > max_bytes ? "\"..." : "\"");
  };
  if (value.type == ValueType::String)
    return quoted({reinterpret_cast<const char*>(value.data), value.bytes});
  if (value.type != ValueType::Array) return scalar_text(value.type, value.data);
  std::string out = "[";
  StringArray::Iterator next = StringArray{value.data, value.count}.begin();
  for (uint64_t i = 0; i < value.count; ++i) {
    if (i) out += ", ";
    if (out.size() >= max_bytes) return out + "...] (" + std::to_string(value.count) + ")";
    if (value.element != ValueType::String) {
      out += scalar_text(value.element, value.data + i * value_bytes(value.element));
    } else {
      out += quoted(*next);
      ++next;
    }
  }
  return out + "]";
}

}  // namespace greta
