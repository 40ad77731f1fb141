// Reads tensor types one weight at a time, by what the GGUF specification says of their blocks. Values are
// float32, rounded where the format rounds, so that decoders can be compared bit for bit.
#pragma once
#include <cstdint>
#include <cstring>
#include <random>
#include <span>

namespace greta::reference {

using Random = std::mt19937_64;

struct Quant {
  const char* name;  // as in quant_types.def
  uint32_t block, bytes;
  float (*weight)(const uint8_t* block, uint32_t i);
  // Sets the floating-point fields of a block of random bytes so that weights are about `size`.
  void (*resize)(uint8_t* block, double size, Random& random);
};

// The oracles of all types that a QUANT_TYPE row lists. Each type's file defines its own, quant_<name>.
std::span<const Quant* const> quants();
const Quant* find_quant(const char* name);

double half_value(uint16_t bits);
uint16_t half_bits(double value);  // nearest
double gaussian(Random& random);

inline float half_at(const uint8_t* at) {
  uint16_t bits;
  memcpy(&bits, at, 2);
  return float(half_value(bits));
}
inline void put_half(uint8_t* at, double value) {
  const uint16_t bits = half_bits(value);
  memcpy(at, &bits, 2);
}

// `count` bits of a block, from bit `first` of byte `byte` on.
inline uint32_t bits_at(const uint8_t* block, uint32_t byte, uint32_t first, uint32_t count) {
  return (block[byte] >> first) & ((1u << count) - 1);
}

// A 4-bit float: sign, 2 bits of exponent, 1 of mantissa. There is no negative zero.
inline float e2m1_value(uint32_t bits) {
  static constexpr float kSizes[] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
  const float size = kSizes[bits & 7];
  return bits & 8 && size > 0 ? -size : size;
}

inline uint32_t word_at(const uint8_t* at) {
  return at[0] | at[1] << 8 | at[2] << 16 | uint32_t(at[3]) << 24;
}

}  // namespace greta::reference
