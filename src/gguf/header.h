// The header of one GGUF file, parsed and checked. This is the reader behind class Gguf.
#pragma once
#include <cstdlib>
#include <memory>

#include "gguf/gguf.h"

namespace greta {

// The bytes of a part from its start, as far as they are needed. They are the caller's memory, or are read
// bit by bit onto the heap, so that a false length costs no more memory than the source has bytes to give.
// They are never a mapped file.
class HeaderBytes {
 public:
  Status open(const Source& source, uint32_t part);
  Status ensure(uint64_t end);  // makes [0, end) readable; end <= size()
  const uint8_t* data() const { return memory_ ? memory_ : held_.get(); }
  uint64_t size() const { return size_; }  // of the part
  uint64_t held_bytes() const { return held_bytes_; }
  Status trim(uint64_t end);  // keeps [0, end)

 private:
  Status resize(uint64_t bytes);

  struct Free {
    void operator()(uint8_t* bytes) const { free(bytes); }
  };
  const Source* source_ = nullptr;
  uint32_t part_ = 0;
  uint64_t size_ = 0, held_bytes_ = 0;
  const uint8_t* memory_ = nullptr;
  std::unique_ptr<uint8_t, Free> held_;  // [held_bytes_]; grown by realloc, which moves pages without a copy
};

// An integer of any type of the file: its 64 bits, and whether they mean a negative number.
struct GgufInteger {
  bool negative = false;
  uint64_t bits = 0;
};
bool gguf_integer(ValueType type, const uint8_t* data, GgufInteger* out);  // false if not an integer type

struct GgufHeader {
  HeaderBytes bytes;
  uint32_t version = 0;
  std::vector<GgufValue> values;
  std::vector<uint32_t> value_order;  // indices of values by key
  std::vector<GgufTensor> tensors;    // their offsets are absolute
  uint64_t alignment = 32;
  uint64_t data_start = 0;

  // Parses part `part`. The sentences of failures do not name the file; the caller does.
  Status parse(Source& source, uint32_t part);

  const GgufValue* find(std::string_view key) const;

  // Reads an integer from 0 to `most`. If the key is absent, `*out` is untouched and `*found` is false.
  Status get_integer(std::string_view key, uint64_t most, uint64_t* out, bool* found) const;

 private:
  struct Cursor;
  Status parse_start(Cursor& cursor, uint64_t* out_tensors, uint64_t* out_values);
  static Status parse_type(Cursor& cursor, GgufValue* value);
  static Status parse_payload(Cursor& cursor, GgufValue* value);
  static Status parse_shape(Cursor& cursor, GgufTensor* tensor);
  Status parse_value(Cursor& cursor);
  Status parse_tensor(Cursor& cursor);
  void bind(const Cursor& cursor);  // turns offsets into views, once the bytes stand still
  Status index_values();
  Status place_tensors();
};

Status gguf_wrong_type(const GgufValue& value, const char* expected);

}  // namespace greta
