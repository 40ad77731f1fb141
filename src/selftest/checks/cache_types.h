// The types of the KV cache by index, for checks.
#pragma once
#include "selftest/checks/rows.h"

namespace greta::selftest {

constexpr const char* kCacheTypes[] = {
#define CACHE_TYPE(name) #name,
#include "kernels/abi/cache_types.def"
#undef CACHE_TYPE
};
constexpr uint32_t kCacheTypeCount = sizeof kCacheTypes / sizeof kCacheTypes[0];

inline uint32_t cache_page_bytes(uint32_t cache_type, uint32_t heads, uint32_t width) {
  QuantType type;
  cache_quant(cache_type, &type);
  return uint32_t(quant_bytes(type, uint64_t(heads) * kPageTokens * width));
}

inline uint32_t cache_block_of(uint32_t cache_type) {
  QuantType type;
  cache_quant(cache_type, &type);
  return quant_info(type).block;
}

}  // namespace greta::selftest
