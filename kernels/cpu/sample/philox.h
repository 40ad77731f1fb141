// Philox4x32-10 (Salmon et al. 2011): a draw is a pure function of a key and a counter, so the same
// seed and position give the same token after a fork, a restore or a change of batch.
#pragma once
#include <stdint.h>

namespace {

struct Philox {
  uint32_t word[4];
};

inline Philox philox4x32(Philox counter, uint32_t key0, uint32_t key1) {
  Philox c = counter;
  for (uint32_t round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t(0xd2511f53u) * c.word[0], b = uint64_t(0xcd9e8d57u) * c.word[2];
    c = {{uint32_t(b >> 32) ^ c.word[1] ^ key0, uint32_t(b), uint32_t(a >> 32) ^ c.word[3] ^ key1,
          uint32_t(a)}};
    key0 += 0x9e3779b9u;
    key1 += 0xbb67ae85u;
  }
  return c;
}

// Uniform in [0, 1), of 24 bits.
inline float philox_uniform(uint32_t seed_low, uint32_t seed_high, uint32_t position) {
  const Philox counter = {{position, 0, 0, 0}};
  return float(philox4x32(counter, seed_low, seed_high).word[0] >> 8) * 0x1p-24f;
}

}  // namespace
