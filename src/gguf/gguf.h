// GGUF is the format of model files: metadata (typed key-value pairs) and a directory of tensors. The header
// is checked completely while it is opened, so that whoever reads it later need not.
//
//   "GGUF" u32 version  u64 tensors  u64 pairs        (versions 2 and 3 are alike, and little-endian)
//   pairs:    string key  u32 type  value              string: u64 bytes, text
//   tensors:  string name  u32 dims  u64 ne[dims]  u32 type  u64 offset
//   data:     at the next multiple of general.alignment; offsets count from there
//
// Nothing is copied out of the header: keys, texts and arrays are views of its bytes. These lie once on the
// heap, unless they are the caller's memory.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "compute/quant_type.h"
#include "gguf/array.h"
#include "gguf/source.h"
#include "platform/platform.h"

namespace greta {

// A file that goes beyond one of these limits is refused.
constexpr uint64_t kMaxHeaderBytes = 1ull << 30;
constexpr uint64_t kMaxPairs = 1ull << 16;
constexpr uint64_t kMaxTensors = 1ull << 16;
constexpr uint64_t kMaxKeyBytes = 1ull << 16;
constexpr uint64_t kMaxTensorNameBytes = 64;
constexpr uint64_t kMaxAlignment = 1ull << 20;
constexpr uint32_t kMaxDims = 4;

struct GgufValue {
  std::string_view key;
  ValueType type = ValueType::U8;
  ValueType element = ValueType::U8;  // of an array; else the type itself
  uint64_t count = 1;                 // elements of an array; else 1
  const uint8_t* data = nullptr;      // the scalar, the text of a string, the elements of an array
  uint64_t bytes = 0;                 // how many of them `data` points to
  uint64_t offset = 0;                // where `data` lies in the file
};

struct GgufTensor {
  std::string_view name;
  QuantType type = QuantType::f32;
  uint32_t dims = 0;
  uint64_t ne[kMaxDims] = {1, 1, 1, 1};  // ne[0] is the length of a row; 1 beyond dims
  uint32_t part = 0;                     // the part of the source that holds the data
  uint64_t offset = 0;                   // from the start of that part
  uint64_t bytes = 0;
};

struct GgufHeader;

class Gguf {
 public:
  Gguf();
  ~Gguf();
  Gguf(Gguf&&) noexcept;
  Gguf& operator=(Gguf&&) noexcept;

  // Reads and checks the header of every part. After a failure only destruction is allowed.
  Status open(Source&& source);

  const char* name() const { return source_.name(0); }  // for messages
  uint32_t version() const;
  uint64_t held_bytes() const;  // the heap memory of the headers
  Source& source() { return source_; }
  const Source& source() const { return source_; }

  // ---- metadata of part 0 ----
  const std::vector<GgufValue>& values() const;       // in file order, known and unknown
  const GgufValue* find(std::string_view key) const;  // null if absent
  Status require(std::string_view key) const;         // fails if absent

  // These leave `*out` as it is, the default, when the key is absent. They fail with a sentence when the
  // value has another type or does not fit. Any integer type serves for an integer, and any finite number for
  // an f32.
  Status get_u32(std::string_view key, uint32_t* out) const;
  Status get_f32(std::string_view key, float* out) const;
  Status get_bool(std::string_view key, bool* out) const;
  Status get_string(std::string_view key, std::string_view* out) const;

  // Writes out[count], a value for each layer, from an array of that length or from a scalar that serves for
  // all. Booleans count as 0 and 1.
  Status get_layers_u32(std::string_view key, uint32_t count, uint32_t* out) const;

  Status get_strings(std::string_view key, StringArray* out) const;
  Status get_f32_array(std::string_view key, PackedArray<float>* out) const;
  Status get_i32_array(std::string_view key, PackedArray<int32_t>* out) const;  // i32 or u32 elements

  // ---- tensors of all parts, in file order ----
  const std::vector<GgufTensor>& tensors() const { return tensors_; }
  const GgufTensor* find_tensor(std::string_view name) const;  // null if absent

 private:
  Status open_parts();
  Status check_split() const;
  Status index_tensors();
  Status get_array(std::string_view key, ValueType element, ValueType other, const GgufValue** out) const;

  Source source_;
  std::vector<GgufHeader> headers_;  // one for each part
  std::vector<GgufTensor> tensors_;
  std::vector<uint32_t> tensor_order_;  // indices of tensors_ by name
};

// Appends a number, a bool, or all elements of an array of these. Returns false for texts.
bool gguf_numbers(const GgufValue& value, std::vector<double>* out);

// A value as short text for people: numbers, quoted strings, the first elements of an array.
std::string gguf_text(const GgufValue& value, uint32_t max_bytes);

}  // namespace greta
