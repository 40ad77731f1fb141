// The types of GGUF's values, and views of its arrays. The bytes lie in the header at any alignment.
#pragma once
#include <cstdint>
#include <cstring>
#include <string_view>

namespace greta {

enum class ValueType : uint32_t { U8, I8, U16, I16, U32, I32, F32, Bool, String, Array, U64, I64, F64 };
constexpr uint32_t kValueTypes = 13;

uint32_t value_bytes(ValueType type);  // of one scalar; 0 for strings and arrays
const char* value_type_name(ValueType type);

// Reads a number at any alignment.
template <class T>
T load_unaligned(const uint8_t* from) {
  T value;
  memcpy(&value, from, sizeof value);
  return value;
}

// An array of numbers.
template <class T>
struct PackedArray {
  const uint8_t* data = nullptr;  // [count] T
  uint64_t count = 0;
  T operator[](uint64_t i) const { return load_unaligned<T>(data + i * sizeof(T)); }
};

// An array of strings, which is read in order. Their lengths were checked when the file was opened.
struct StringArray {
  const uint8_t* data = nullptr;  // [count] { u64 bytes, text }
  uint64_t count = 0;

  struct Iterator {
    const uint8_t* at;
    uint64_t left;
    std::string_view operator*() const {
      return {reinterpret_cast<const char*>(at + 8), load_unaligned<uint64_t>(at)};
    }
    Iterator& operator++() {
      if (--left) at += 8 + load_unaligned<uint64_t>(at);
      return *this;
    }
    bool operator!=(const Iterator& other) const { return left != other.left; }
  };
  Iterator begin() const { return {data, count}; }
  Iterator end() const { return {nullptr, 0}; }
};

}  // namespace greta
