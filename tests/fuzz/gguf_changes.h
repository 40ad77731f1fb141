// A GGUF file taken apart, changed in one place, and put together again, so that a change reaches what lies
// behind the reader: sizes that contradict each other under a header that is right.
#pragma once
#include <algorithm>
#include <cstring>
#include <random>

#include "gguf/gguf.h"
#include "gguf_text.h"

namespace greta::fuzz {

using Random = std::minstd_rand;

struct GgufParts {
  struct Value {
    std::string key;
    uint32_t type, element;  // the element's type for an array
    uint64_t count;          // of an array
    std::string payload;     // a scalar, the bytes of a text, the elements of an array
  };
  struct Tensor {
    std::string name;
    uint32_t dims, type;
    uint64_t ne[kMaxDims], offset;  // from the first tensor's data
  };
  std::vector<Value> values;
  std::vector<Tensor> tensors;
  std::string data;

  // False for bytes that the reader refuses.
  bool take(const uint8_t* bytes, size_t size) {
    Source source;
    Gguf gguf;
    if (!size || !source.open_memory(bytes, size).ok() || !gguf.open(std::move(source)).ok()) return false;
    for (const GgufValue& v : gguf.values())
      values.push_back({std::string(v.key), uint32_t(v.type), uint32_t(v.element), v.count,
                        std::string(reinterpret_cast<const char*>(v.data), v.bytes)});
    uint64_t first = size;
    for (const GgufTensor& t : gguf.tensors()) first = std::min(first, t.offset);
    for (const GgufTensor& t : gguf.tensors()) {
      Tensor tensor = {std::string(t.name), t.dims, quant_info(t.type).gguf_id, {}, t.offset - first};
      std::copy(t.ne, t.ne + kMaxDims, tensor.ne);
      tensors.push_back(tensor);
    }
    data.assign(reinterpret_cast<const char*>(bytes) + first, size - first);
    return true;
  }

  std::string file() const {
    std::string out = "GGUF";
    GgufText::put<uint32_t>(&out, 3);
    GgufText::put<uint64_t>(&out, tensors.size());
    GgufText::put<uint64_t>(&out, values.size());
    for (const Value& v : values) {
      GgufText::put_text(&out, v.key);
      GgufText::put(&out, v.type);
      if (v.type == 9) GgufText::put(&out, v.element), GgufText::put(&out, v.count);
      if (v.type == 8) GgufText::put<uint64_t>(&out, v.payload.size());
      out += v.payload;
    }
    for (const Tensor& t : tensors) {
      GgufText::put_text(&out, t.name);
      GgufText::put(&out, t.dims);
      for (uint32_t i = 0; i < std::min(t.dims, kMaxDims); ++i) GgufText::put(&out, t.ne[i]);
      GgufText::put(&out, t.type);
      GgufText::put(&out, t.offset);
    }
    out.resize((out.size() + 31) / 32 * 32);  // the default alignment
    return out + data;
  }
};

// A number near `from`, or one at which arithmetic turns.
inline uint64_t other_number(uint64_t from, Random& random) {
  const uint64_t turns[] = {0,
                            1,
                            2,
                            3,
                            31,
                            32,
                            127,
                            255,
                            256,
                            65535,
                            1u << 20,
                            1u << 24,
                            INT32_MAX,
                            UINT32_MAX,
                            uint64_t(1) << 32,
                            uint64_t(1) << 42,
                            INT64_MAX,
                            UINT64_MAX};
  switch (random() % 6) {
    case 0:
      return from + 1;
    case 1:
      return from - 1;
    case 2:
      return from * 2;
    case 3:
      return from / 2;
    case 4:
      return from * (random() % 9);
    default:
      return turns[random() % std::size(turns)];
  }
}

inline void change_number(std::string* payload, size_t at, size_t bytes, Random& random) {
  uint64_t number = 0;
  memcpy(&number, payload->data() + at, bytes);
  const uint32_t reals[] = {0x7FC00000, 0x7F800000, 0xFF800000, 0, 0x80000000, 1, 0x3F800000, 0x7F7FFFFF};
  number =
      bytes == 4 && random() % 3 == 0 ? reals[random() % std::size(reals)] : other_number(number, random);
  memcpy(payload->data() + at, &number, bytes);
}

inline void change_value(GgufParts* file, Random& random) {
  if (file->values.empty()) return;
  const size_t chosen = random() % file->values.size();
  GgufParts::Value& v = file->values[chosen];
  const auto* const other = &file->values[random() % file->values.size()];
  static constexpr size_t kBytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  const uint32_t type = v.type == 9 ? v.element : v.type;
  const size_t bytes = type < std::size(kBytes) ? kBytes[type] : 0;
  switch (random() % 10) {
    case 0:
      file->values.erase(file->values.begin() + ptrdiff_t(chosen));
      return;
    case 1:
      v.type = random() % 13;
      return;
    case 2:
      v.key = other->key;
      return;
    case 3:
      v.payload = other->payload, v.type = other->type, v.element = other->element, v.count = other->count;
      return;
    case 4:
      v.count = other_number(v.count, random);
      return;
    case 5:
      if (!v.payload.empty()) v.payload[random() % v.payload.size()] = char(random());
      return;
    default:
      break;
  }
  if (bytes && v.payload.size() >= bytes)
    change_number(&v.payload, random() % (v.payload.size() / bytes) * bytes, bytes, random);
}

inline void change_tensor(GgufParts* file, Random& random) {
  if (file->tensors.empty()) return;
  const size_t chosen = random() % file->tensors.size();
  GgufParts::Tensor& t = file->tensors[chosen];
  const GgufParts::Tensor other = file->tensors[random() % file->tensors.size()];
  switch (random() % 7) {
    case 0:
      file->tensors.erase(file->tensors.begin() + ptrdiff_t(chosen));
      return;
    case 1:
      t.type = random() % 42;
      return;
    case 2:
      t.dims = random() % 5;
      return;
    case 3:
      t.offset = random() % 2 ? other.offset : other_number(t.offset, random);
      return;
    case 4:
      t.name = other.name;
      return;
    case 5:
      std::swap(t.ne[0], t.ne[1]);
      return;
    default:
      t.ne[random() % kMaxDims] = other_number(t.ne[random() % kMaxDims], random);
  }
}

inline void change_weights(GgufParts* file, Random& random) {
  if (file->data.empty()) return;
  size_t at = random() % file->data.size();
  const bool extreme = random() % 2;
  for (uint32_t left = 1 + random() % 64; left && at < file->data.size(); --left, ++at)
    file->data[at] = char(extreme ? 0xFF : random());
}

}  // namespace greta::fuzz
