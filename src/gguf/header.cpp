// GgufHeader::parse walks through the header once. It compares every length with the bytes that remain before
// it uses it, and sizes nothing by a count from the file.
#include "gguf/header.h"

#include <algorithm>
#include <numeric>

namespace greta {

using Number = unsigned long long;  // what %llu takes

// ---- bytes ------------------------------------------------------------------------------------

constexpr uint64_t kFirstRead = 64 << 10, kLargestRead = 4 << 20;

Status HeaderBytes::open(const Source& source, uint32_t part) {
  source_ = &source;
  part_ = part;
  size_ = source.size(part);
  if (size_ == 0) return fail(Code::File, "the file is empty, expected a GGUF model");
  memory_ = source.memory(part);
  return {};
}

Status HeaderBytes::resize(uint64_t bytes) {
  // The system would promise pages that it does not have and kill the process later, so free memory is
  // checked.
  const bool too_much =
      bytes > held_bytes_ + kLargestRead / 2 && bytes - held_bytes_ > memory_available_bytes();
  void* const moved = too_much ? nullptr : realloc(held_.get(), bytes);
  if (!moved)
    return fail(Code::Memory, "a header of %llu bytes or more: there is no memory for it", Number(bytes));
  static_cast<void>(held_.release());
  held_.reset(static_cast<uint8_t*>(moved));
  return {};
}

// Reads in steps that double, up to a few MB.
Status HeaderBytes::ensure(uint64_t end) {
  while (!memory_ && held_bytes_ < end) {
    const uint64_t more = std::min(size_ - held_bytes_, std::clamp(held_bytes_, kFirstRead, kLargestRead));
    GRETA_TRY(resize(held_bytes_ + more));
    GRETA_TRY(source_->read_at(part_, held_bytes_, held_.get() + held_bytes_, more));
    held_bytes_ += more;
  }
  return {};
}

Status HeaderBytes::trim(uint64_t end) {
  if (memory_) return {};
  GRETA_TRY(resize(end));
  held_bytes_ = end;
  return {};
}

// ---- cursor -----------------------------------------------------------------------------------

struct GgufHeader::Cursor {
  HeaderBytes& bytes;
  uint64_t at = 0;
  uint32_t part = 0;
  std::vector<uint64_t> names;  // offsets of the keys, then of the tensors' names, for bind()

  uint64_t remaining() const { return bytes.size() - at; }

  Status need(uint64_t count, const char* what) {
    if (count > remaining())
      return fail(Code::File, "truncated: %s at offset %llu needs %llu bytes, the file has %llu left", what,
                  Number(at), Number(count), Number(remaining()));
    if (at + count > kMaxHeaderBytes)
      return fail(Code::Unsupported, "%s at offset %llu ends beyond the largest header of %llu bytes", what,
                  Number(at), Number(kMaxHeaderBytes));
    return bytes.ensure(at + count);
  }

  template <class T>
  Status read(T* out, const char* what) {
    GRETA_TRY(need(sizeof(T), what));
    *out = load_unaligned<T>(bytes.data() + at);
    at += sizeof(T);
    return {};
  }

  std::string_view view(uint64_t from, uint64_t count) const {
    return {reinterpret_cast<const char*>(bytes.data() + from), count};
  }

  // Reads a key or the name of a tensor, which has 1 to `most` bytes and no control characters.
  Status name(uint64_t most, const char* what, std::string_view* out) {
    uint64_t count;
    GRETA_TRY(read(&count, what));
    if (count == 0 || count > most)
      return fail(Code::File, "%s at offset %llu has %llu bytes, expected 1 to %llu", what, Number(at - 8),
                  Number(count), Number(most));
    GRETA_TRY(need(count, what));
    *out = view(at, count);
    for (const char c : *out)
      if (uint8_t(c) < 0x20 || c == 0x7f)
        return fail(Code::File, "%s %s at offset %llu has a control character in it", what,
                    Quoted(*out).c_str(), Number(at));
    names.push_back(at);
    at += count;
    return {};
  }
};

// ---- the three sections -----------------------------------------------------------------------

Status GgufHeader::parse_start(Cursor& cursor, uint64_t* out_tensors, uint64_t* out_values) {
  GRETA_TRY(cursor.need(4, "the magic"));
  const std::string_view magic = cursor.view(0, 4);
  if (magic == "FUGG")
    return fail(Code::Unsupported, "a byte-swapped GGUF file, expected a little-endian one");
  if (magic != "GGUF")
    return fail(Code::File, "not a GGUF file: it starts with %s, expected \"GGUF\"", Quoted(magic).c_str());
  cursor.at = 4;
  GRETA_TRY(cursor.read(&version, "the version"));
  if (version != 0 && (version & 0xffff) == 0)
    return fail(Code::Unsupported, "a big-endian GGUF file (version %u), expected a little-endian one",
                __builtin_bswap32(version));
  if (version == 1)
    return fail(Code::Unsupported, "GGUF version 1 is obsolete, expected 2 or 3: convert the model again");
  if (version != 2 && version != 3)
    return fail(Code::Unsupported, "GGUF version %u, expected 2 or 3", version);
  GRETA_TRY(cursor.read(out_tensors, "the number of tensors"));
  GRETA_TRY(cursor.read(out_values, "the number of metadata entries"));
  // An entry takes at least 14 bytes (a key of 1, a value of 1), a tensor at least 33.
  if (*out_values > kMaxPairs || *out_values > cursor.remaining() / 14)
    return fail(Code::File,
                "the header counts %llu metadata entries, expected at most %llu in a file of %llu bytes",
                Number(*out_values), Number(std::min(kMaxPairs, cursor.remaining() / 14)),
                Number(cursor.bytes.size()));
  if (*out_tensors > kMaxTensors || *out_tensors > cursor.remaining() / 33)
    return fail(Code::File, "the header counts %llu tensors, expected at most %llu in a file of %llu bytes",
                Number(*out_tensors), Number(std::min(kMaxTensors, cursor.remaining() / 33)),
                Number(cursor.bytes.size()));
  return {};
}

static Status check_type(uint32_t type, const char* what, uint64_t offset) {
  if (type < kValueTypes) return {};
  return fail(Code::File, "%s at offset %llu is %u, expected 0 to %u", what, Number(offset), type,
              kValueTypes - 1);
}

Status GgufHeader::parse_type(Cursor& cursor, GgufValue* value) {
  uint32_t type;
  GRETA_TRY(cursor.read(&type, "the type of the value"));
  GRETA_TRY(check_type(type, "the type of the value", cursor.at - 4));
  value->type = value->element = ValueType(type);
  if (value->type != ValueType::Array) return {};
  GRETA_TRY(cursor.read(&type, "the type of the elements"));
  GRETA_TRY(check_type(type, "the type of the elements", cursor.at - 4));
  value->element = ValueType(type);
  if (value->element == ValueType::Array)
    return fail(Code::Unsupported, "an array of arrays at offset %llu, expected numbers or strings",
                Number(cursor.at - 4));
  return cursor.read(&value->count, "the length of the array");
}

Status GgufHeader::parse_payload(Cursor& cursor, GgufValue* value) {
  GRETA_TRY(parse_type(cursor, value));
  const bool text = value->element == ValueType::String;
  const uint64_t least = text ? 8 : value_bytes(value->element);
  if (value->count > cursor.remaining() / least)
    return fail(Code::File,
                "truncated: %llu values of %llu bytes or more at offset %llu, the file has %llu bytes left",
                Number(value->count), Number(least), Number(cursor.at), Number(cursor.remaining()));
  value->offset = cursor.at;
  if (!text) {
    value->bytes = value->count * least;
    GRETA_TRY(cursor.need(value->bytes, "the value"));
    cursor.at += value->bytes;
    const uint8_t first = value->bytes ? cursor.bytes.data()[value->offset] : 0;
    if (value->type != ValueType::Bool || first <= 1) return {};
    return fail(Code::File, "a bool at offset %llu is %u, expected 0 or 1", Number(value->offset), first);
  }
  for (uint64_t i = 0; i < value->count; ++i) {
    uint64_t bytes;
    GRETA_TRY(cursor.read(&bytes, "the length of a string"));
    GRETA_TRY(cursor.need(bytes, "a string"));
    cursor.at += bytes;
  }
  if (value->type == ValueType::String) value->offset += 8;
  value->bytes = cursor.at - value->offset;
  return {};
}

Status GgufHeader::parse_value(Cursor& cursor) {
  GgufValue value;
  GRETA_TRY(cursor.name(kMaxKeyBytes, "a key", &value.key));
  const uint64_t key_at = cursor.names.back(), key_bytes = value.key.size();
  const Status status = parse_payload(cursor, &value);
  if (!status.ok()) return within(status, "key %s", Quoted(cursor.view(key_at, key_bytes)).c_str());
  values.push_back(value);  // its views are set by bind()
  return {};
}

Status GgufHeader::parse_shape(Cursor& cursor, GgufTensor* tensor) {
  GRETA_TRY(cursor.read(&tensor->dims, "the number of dimensions"));
  if (tensor->dims < 1 || tensor->dims > kMaxDims)
    return fail(Code::File, "%u dimensions at offset %llu, expected 1 to %u", tensor->dims,
                Number(cursor.at - 4), kMaxDims);
  uint64_t weights = 1;
  for (uint32_t i = 0; i < tensor->dims; ++i) {
    GRETA_TRY(cursor.read(&tensor->ne[i], "a dimension"));
    if (tensor->ne[i] == 0 || !checked_multiply(weights, tensor->ne[i], &weights) || weights >> 60)
      return fail(Code::File, "dimension %u is %llu, expected at least 1 and fewer than 2^60 weights in all",
                  i, Number(tensor->ne[i]));
  }
  uint32_t type;
  GRETA_TRY(cursor.read(&type, "the tensor's type"));
  const QuantInfo* info = quant_from_gguf(type, &tensor->type);
  if (!info)
    return fail(Code::Unsupported, "tensor type %u at offset %llu is not one that this reader knows", type,
                Number(cursor.at - 4));
  if (tensor->ne[0] % info->block != 0)
    return fail(Code::File, "rows of %llu weights of type %s, expected a multiple of %u",
                Number(tensor->ne[0]), info->name, info->block);
  tensor->bytes = quant_bytes(tensor->type, weights);  // below 2^63: at most 8 bytes for a weight
  return cursor.read(&tensor->offset, "the tensor's offset");
}

Status GgufHeader::parse_tensor(Cursor& cursor) {
  GgufTensor tensor;
  GRETA_TRY(cursor.name(kMaxTensorNameBytes, "a tensor's name", &tensor.name));
  const uint64_t name_at = cursor.names.back(), name_bytes = tensor.name.size();
  const Status status = parse_shape(cursor, &tensor);
  if (!status.ok()) return within(status, "tensor %s", Quoted(cursor.view(name_at, name_bytes)).c_str());
  tensor.part = cursor.part;
  tensors.push_back(tensor);
  return {};
}

// ---- after the walk ---------------------------------------------------------------------------

void GgufHeader::bind(const Cursor& cursor) {
  const uint8_t* base = bytes.data();
  // A name's length lies in the 8 bytes before it.
  const auto name = [&](size_t i) {
    const uint64_t at = cursor.names[i];
    return std::string_view(reinterpret_cast<const char*>(base + at),
                            load_unaligned<uint64_t>(base + at - 8));
  };
  for (size_t i = 0; i < values.size(); ++i) {
    values[i].key = name(i);
    values[i].data = base + values[i].offset;
  }
  for (size_t i = 0; i < tensors.size(); ++i) tensors[i].name = name(values.size() + i);
}

Status GgufHeader::index_values() {
  value_order.resize(values.size());
  std::iota(value_order.begin(), value_order.end(), 0u);
  std::sort(value_order.begin(), value_order.end(), [&](uint32_t a, uint32_t b) {
    return values[a].key != values[b].key ? values[a].key < values[b].key : a < b;
  });
  for (size_t i = 1; i < value_order.size(); ++i)
    if (values[value_order[i]].key == values[value_order[i - 1]].key)
      return fail(Code::File,
                  "key %s: there are two entries of this name, with values at offsets %llu and %llu",
                  Quoted(values[value_order[i]].key).c_str(), Number(values[value_order[i - 1]].offset),
                  Number(values[value_order[i]].offset));
  return {};
}

// Makes offsets absolute, and checks that the bytes of each tensor lie in the file and belong to no other.
Status GgufHeader::place_tensors() {
  for (GgufTensor& tensor : tensors) {
    if (tensor.offset % alignment != 0)
      return fail(Code::File, "tensor %s: offset %llu, expected a multiple of the alignment %llu",
                  Quoted(tensor.name).c_str(), Number(tensor.offset), Number(alignment));
    uint64_t end;
    if (!checked_add(tensor.offset, data_start, &tensor.offset) ||
        !checked_add(tensor.offset, tensor.bytes, &end) || end > bytes.size())
      return fail(Code::File,
                  "tensor %s: %llu bytes from offset %llu lie beyond the end of the file of %llu bytes: "
                  "truncated, or its dimensions are wrong",
                  Quoted(tensor.name).c_str(), Number(tensor.bytes), Number(tensor.offset),
                  Number(bytes.size()));
  }
  std::vector<uint32_t> order(tensors.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return tensors[a].offset != tensors[b].offset ? tensors[a].offset < tensors[b].offset : a < b;
  });
  for (size_t i = 1; i < order.size(); ++i) {
    const GgufTensor& first = tensors[order[i - 1]];
    const GgufTensor& second = tensors[order[i]];
    if (first.offset + first.bytes > second.offset)
      return fail(Code::File, "tensor %s: its data at offset %llu overlaps that of %s, which ends at %llu",
                  Quoted(second.name).c_str(), Number(second.offset), Quoted(first.name).c_str(),
                  Number(first.offset + first.bytes));
  }
  return {};
}

Status GgufHeader::parse(Source& source, uint32_t part) {
  GRETA_TRY(bytes.open(source, part));
  Cursor cursor{bytes, 0, part, {}};
  uint64_t tensor_count, value_count;
  GRETA_TRY(parse_start(cursor, &tensor_count, &value_count));
  for (uint64_t i = 0; i < value_count; ++i)
    GRETA_TRY(within(parse_value(cursor), "metadata entry %llu of %llu", Number(i + 1), Number(value_count)));
  for (uint64_t i = 0; i < tensor_count; ++i)
    GRETA_TRY(within(parse_tensor(cursor), "tensor %llu of %llu", Number(i + 1), Number(tensor_count)));
  GRETA_TRY(bytes.trim(cursor.at));
  bind(cursor);
  GRETA_TRY(index_values());
  bool found;
  GRETA_TRY(get_integer("general.alignment", UINT64_MAX, &alignment, &found));
  if (alignment < 8 || alignment > kMaxAlignment || (alignment & (alignment - 1)) != 0)
    return fail(Code::File, "general.alignment is %llu, expected a power of two from 8 to %llu",
                Number(alignment), Number(kMaxAlignment));
  data_start = round_up(cursor.at, alignment);
  return place_tensors();
}

// ---- look-up ----------------------------------------------------------------------------------

const GgufValue* GgufHeader::find(std::string_view key) const {
  const auto found = std::lower_bound(value_order.begin(), value_order.end(), key,
                                      [&](uint32_t i, std::string_view k) { return values[i].key < k; });
  return found != value_order.end() && values[*found].key == key ? &values[*found] : nullptr;
}

}  // namespace greta
