// Checks the double array when it is opened, and walks it for each match.
#include "text/tokenizer/charsmap.h"

namespace greta {
namespace {

// A unit has its label in bits 0 to 7 (and 31, which no label of a node has). Bit 8 says that a key ends
// here. The base lies in bits 10 to 30, and is shifted by eight more if bit 9 is set.
uint32_t label(uint32_t unit) { return unit & 0x800000FF; }
bool is_value(uint32_t unit) { return unit >> 31; }
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
  for (uint32_t index = 0; index < units_.count; ++index) GRETA_TRY(check_unit(index));
  return {};
}

// Checks that the unit's children, which its base and any byte tell, and the value of a key that ends here
// lie within the map.
Status Charsmap::check_unit(uint32_t index) const {
  const uint32_t unit = units_[index];
  if (index != 0 && is_value(unit)) return {};
  const uint32_t below = index ^ base(unit);
  if ((below | 0xFF) >= units_.count)
    return fail(Code::File, "%s leads to unit %u, but has %llu", kKey, below | 0xFF,
                (unsigned long long)units_.count);
  if (!ends_key(unit)) return {};
  const uint32_t offset = value(units_[below]);
  const size_t end = offset < replacements_.size() ? replacements_.find('\0', offset) : replacements_.npos;
  if (end == replacements_.npos || end - offset > kMaxReplacementBytes)
    return fail(Code::File, "%s has no replacement of at most %u bytes at %u", kKey, kMaxReplacementBytes,
                offset);
  return {};
}

void Charsmap::match(std::string_view text, uint32_t* out_bytes, std::string_view* out_replacement,
                     uint64_t* steps) const {
  *out_bytes = 0;
  if (units_.count == 0) return;
  uint32_t offset = 0;
  uint32_t node = base(units_[0]);
  for (uint32_t i = 0; i < text.size() && i < kMaxKeyBytes && text[i]; ++i) {
    ++*steps;
    node ^= uint8_t(text[i]);
    const uint32_t unit = units_[node];
    if (label(unit) != uint8_t(text[i])) break;
    node ^= base(unit);
    if (!ends_key(unit)) continue;
    *out_bytes = i + 1;
    offset = value(units_[node]);
  }
  if (*out_bytes) *out_replacement = replacements_.substr(offset, replacements_.find('\0', offset) - offset);
}

}  // namespace greta
