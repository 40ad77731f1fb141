// Texts that are measured.
#pragma once
#include <cstdint>
#include <random>
#include <vector>

namespace greta::cli {

// Any ids would do, since speed does not depend on them; but they are the same each time for a seed.
inline std::vector<int32_t> some_tokens(uint32_t vocab_size, size_t count, uint32_t seed = 1) {
  std::mt19937 random(seed);
  std::vector<int32_t> tokens(count);
  for (int32_t& token : tokens) token = static_cast<int32_t>(random() % vocab_size);
  return tokens;
}

}  // namespace greta::cli
