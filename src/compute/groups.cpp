#include "compute/groups.h"

#include <algorithm>
#include <cstring>

namespace greta {

namespace {

using Number = unsigned long long;  // for %llu

constexpr uint32_t kBlock = 32;          // values under a scale, in GGUF
constexpr uint32_t kWord = 8;            // quants or zeros in a word of 32 bits
constexpr uint64_t kMostValues = uint64_t(1) << 40;
constexpr int32_t kMiddle = 8;           // the zero of weights without zeros
constexpr uint16_t kHalfInfinity = 0x7c00;

struct GroupType {
  QuantType type;
  int32_t lowest;
};
constexpr GroupType kTypes[] = {
#define GROUP_TYPE(name, lowest) {QuantType::name, lowest},
#include "compute/group_types.def"
};

uint32_t word_at(const uint8_t* words, uint64_t index) {
  uint32_t word;
  memcpy(&word, words + index * sizeof word, sizeof word);
  return word;
}

// Where AWQ keeps column `column` of a word: columns 0, 2, 4, 6, 1, 3, 5, 7 follow each other.
uint32_t awq_place(uint64_t column) { return uint32_t(column % kWord / 2 + column % 2 * 4); }

uint64_t groups_of(const GroupedWeights& w) { return w.depth / w.group; }

int32_t zero_of(const GroupedWeights& w, uint64_t row, uint64_t group) {
  if (!w.zeros) return kMiddle;
  const bool by_rows = w.order == GroupOrder::Compressed;  // [n / 8][groups], else [groups][n / 8]
  const uint32_t word = word_at(w.zeros, by_rows ? row / kWord * groups_of(w) + group
                                                 : group * (w.n / kWord) + row / kWord);
  const uint32_t place = w.order == GroupOrder::Awq ? awq_place(row) : uint32_t(row % kWord);
  return int32_t(word >> 4 * place & 15) + (w.order == GroupOrder::Gptq);
}

// The quants of values first .. first + 31 of a row.
void read_quants(const GroupedWeights& w, uint64_t row, uint64_t first, uint8_t (&out)[kBlock]) {
  for (uint32_t j = 0; j < kBlock; ++j) {
    const uint64_t k = first + j;
    if (w.order == GroupOrder::Awq)  // [depth][n / 8]
      out[j] = uint8_t(word_at(w.quants, k * (w.n / kWord) + row / kWord) >> 4 * awq_place(row) & 15);
    else if (w.order == GroupOrder::Compressed)  // [n][depth / 8]
      out[j] = uint8_t(word_at(w.quants, row * (w.depth / kWord) + k / kWord) >> 4 * (k % kWord) & 15);
    else  // [depth / 8][n]
      out[j] = uint8_t(word_at(w.quants, k / kWord * w.n + row) >> 4 * (k % kWord) & 15);
  }
}

uint16_t scale_bits(const GroupedWeights& w, uint64_t row, uint64_t group) {
  const bool by_rows = w.order == GroupOrder::Compressed;  // [n][groups], else [groups][n]
  uint16_t bits;
  memcpy(&bits, w.scales + (by_rows ? row * groups_of(w) + group : group * w.n + row) * sizeof bits,
         sizeof bits);
  return bits;
}

// The float16 nearest to a bfloat16, and whether it is the same number. Infinity stands for what is none.
uint16_t half_of_bfloat(uint16_t bits, bool* same) {
  const uint16_t sign = bits & 0x8000u;
  const int32_t exponent = (bits >> 7 & 255) - 127;
  const uint32_t mantissa = bits & 127;
  *same = exponent <= 15;
  if (exponent > 15) return sign | kHalfInfinity;
  if (exponent >= -14) return uint16_t(sign | (exponent + 15) << 10 | mantissa << 3);
  if (exponent == -127) {  // 0, or far below the least float16
    *same = mantissa == 0;
    return sign;
  }
  const uint32_t whole = 128 | mantissa;  // times 2^(exponent - 7), in units of 2^-24
  const int32_t left = exponent + 17;
  if (left >= 0) return uint16_t(sign | whole << left);
  const int32_t right = std::min(-left, 16);
  const uint32_t kept = whole >> right, lost = whole & ((1u << right) - 1), half = 1u << (right - 1);
  *same = lost == 0;
  return uint16_t(sign | (kept + (lost > half || (lost == half && kept & 1))));
}

// The scale as float16, and whether that may stand for it.
bool read_scale(const GroupedWeights& w, uint64_t row, uint64_t group, uint16_t* out) {
  bool same = true;
  *out = scale_bits(w, row, group);
  if (w.bfloat_scales) *out = half_of_bfloat(*out, &same);
  const bool finite = (*out & kHalfInfinity) != kHalfInfinity;
  return finite && (same || w.round_scales);
}

Status check_bytes(const char* what, uint64_t given, uint64_t wanted, const GroupedWeights& w) {
  if (given == wanted) return {};
  return fail(Code::Argument, "%s: %llu bytes, expected %llu for a matrix [%llu][%llu] in groups of %llu",
              what, Number(given), Number(wanted), Number(w.n), Number(w.depth), Number(w.group));
}

const GroupType* group_type(QuantType type) {
  for (const GroupType& each : kTypes)
    if (each.type == type) return &each;
  return nullptr;
}

// A block: the scale, the fifth bits if there are any, the low bits.
void write_block(const GroupType& type, uint16_t scale, const uint8_t (&quants)[kBlock], int32_t zero,
                 uint8_t* out) {
  constexpr uint32_t kHalf = kBlock / 2;
  uint32_t high = 0;
  uint8_t* const low = out + quant_info(type.type).block_bytes - kHalf;
  memcpy(out, &scale, sizeof scale);
  memset(low, 0, kHalf);
  for (uint32_t j = 0; j < kBlock; ++j) {
    const uint32_t value = uint32_t(quants[j] - zero - type.lowest);
    low[j % kHalf] |= uint8_t((value & 15) << (j < kHalf ? 0 : 4));
    high |= (value >> 4 & 1) << j;
  }
  if (low != out + sizeof scale) memcpy(out + sizeof scale, &high, sizeof high);
}

}  // namespace

Status check_group_sizes(const GroupedWeights& w) {
  if (!w.n || !w.depth || w.n > UINT32_MAX || w.depth > UINT32_MAX || w.n > kMostValues / w.depth)
    return fail(Code::Argument, "groups: a matrix [%llu][%llu]", Number(w.n), Number(w.depth));
  if (!w.group || w.group % kBlock || w.depth % w.group)
    return fail(Code::Argument,
                "groups: rows of %llu values in groups of %llu, expected groups of a multiple of %u in a row",
                Number(w.depth), Number(w.group), kBlock);
  const bool words_of_rows = w.order == GroupOrder::Awq || (w.zeros && w.order != GroupOrder::Compressed);
  if (words_of_rows && w.n % kWord)
    return fail(Code::Argument, "groups: %llu rows, expected a multiple of the %u that a word holds",
                Number(w.n), kWord);
  const uint64_t scales = w.n * groups_of(w);
  GRETA_TRY(check_bytes("quants", w.quant_bytes, w.n * w.depth / 2, w));
  GRETA_TRY(check_bytes("scales", w.scale_bytes, scales * sizeof(uint16_t), w));
  if (!w.zeros) return w.zero_bytes ? fail(Code::Argument, "zeros is NULL") : Status{};
  return check_bytes("zeros", w.zero_bytes, (w.n + kWord - 1) / kWord * groups_of(w) * sizeof(uint32_t), w);
}

Status check_groups(const GroupedWeights& w) {
  GRETA_TRY(check_group_sizes(w));
  for (uint64_t row = 0; row < w.n; ++row)
    for (uint64_t group = 0; group < groups_of(w); ++group) {
      uint16_t half;
      if (read_scale(w, row, group, &half)) continue;
      return fail(Code::Unsupported,
                  "groups: float16 cannot hold the scale of group %llu of row %llu (bits %04x)",
                  Number(group), Number(row), scale_bits(w, row, group));
    }
  return {};
}

QuantType type_of_groups(const GroupedWeights& w) {
  for (uint64_t row = 0; w.zeros && row < w.n; ++row)
    for (uint64_t group = 0; group < groups_of(w); ++group)
      if (zero_of(w, row, group) != kMiddle) return kTypes[1].type;
  return kTypes[0].type;
}

Status write_groups(const GroupedWeights& w, QuantType type, uint64_t first, uint64_t count, uint8_t* out) {
  const GroupType* const to = group_type(type);
  if (!to)
    return fail(Code::Argument, "groups: weights in groups cannot become type %s", quant_info(type).name);
  for (uint64_t row = first; row < first + count; ++row)
    for (uint64_t k = 0; k < w.depth; k += kBlock) {
      const uint64_t group = k / w.group;
      const int32_t zero = zero_of(w, row, group);
      uint8_t quants[kBlock];
      uint16_t scale;
      if (to == kTypes && zero != kMiddle)
        return fail(Code::Argument,
                    "groups: the zero of group %llu of row %llu is %d, type %s has 8 in all groups",
                    Number(group), Number(row), zero, quant_info(type).name);
      if (!read_scale(w, row, group, &scale))
        return fail(Code::Unsupported, "groups: float16 cannot hold the scale of group %llu of row %llu",
                    Number(group), Number(row));
      read_quants(w, row, k, quants);
      write_block(*to, scale, quants, zero, out);
      out += quant_info(type).block_bytes;
    }
  return {};
}

}  // namespace greta
