// Charsmap: walks the double array.
#include "engine/tokenizer_charsmap.h"

namespace greta {
namespace {

// A unit: label in bits 0 to 7 (and 31, which no label of a node has), bit 8: a key ends here, base in bits
// 10 to 30, shifted by eight more if bit 9 is set.
uint32_t label(uint32_t unit) { return unit & 0x800000FF; }
bool ends_key(uint32_t unit) { return unit & 0x100; }
uint32_t base(uint32_t unit) { return unit >> 10 << ((unit & 0x200) >> 6); }
uint32_t value(uint32_t unit) { return unit & 0x7FFFFFFF; }

constexpr char kKey[] = "tokenizer.ggml.precompiled_charsmap";

}  // namespace

Status Charsmap::open(const Gguf& gguf) {
  const GgufValue* map = gguf.find(kKey);
  if (!map) return {};
  if (map->type != ValueType::Array || (map->element != ValueType::U8 && map->element != ValueType::I8))
    return fail(Code::File, "%s is not an array of bytes", kKey);
  if (map->count == 0) return {};
  const uint64_t units = map->count < 4 ? 0 : load_unaligned<uint32_t>(map->data);
  if (units == 0 || units % 4 || units > map->count - 4)
    return fail(Code::File, "%s has %llu bytes and claims %llu of units, expected a multiple of 4 that fits",
                kKey, (unsigned long long)map->count, (unsigned long long)units);
  units_ = {map->data + 4, units / 4};
  replacements_ = {reinterpret_cast<const char*>(map->data) + 4 + units, map->count - 4 - units};
  return {};
}

Status Charsmap::match(std::string_view text, uint32_t* out_bytes, std::string_view* out_replacement,
                       uint64_t* steps) const {
  *out_bytes = 0;
  if (units_.count == 0) return {};
  uint32_t offset = 0;
  uint32_t node = base(units_[0]);
  const auto outside = [&](uint32_t index) {
    return fail(Code::File, "%s leads to unit %u, but has %llu", kKey, index,
                (unsigned long long)units_.count);
  };
  for (uint32_t i = 0; i < text.size() && i < kMaxKeyBytes && text[i]; ++i) {
    ++*steps;
    node ^= uint8_t(text[i]);
    if (node >= units_.count) return outside(node);
    const uint32_t unit = units_[node];
    if (label(unit) != uint8_t(text[i])) break;
    node ^= base(unit);
    if (!ends_key(unit)) continue;
    if (node >= units_.count) return outside(node);
    *out_bytes = i + 1;
    offset = value(units_[node]);
  }
  if (*out_bytes == 0) return {};
  const size_t end = offset < replacements_.size() ? replacements_.find('\0', offset) : replacements_.npos;
  if (end == replacements_.npos || end - offset > kMaxReplacementBytes)
    return fail(Code::File, "%s has no replacement of at most %u bytes at %u", kKey, kMaxReplacementBytes,
                offset);
  *out_replacement = replacements_.substr(offset, end - offset);
  return {};
}

}  // namespace greta
