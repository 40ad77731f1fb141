// The tensor types of GGUF as data: one row each in quant_types.def.
#pragma once
#include <cstdint>

namespace greta {

enum class QuantType : uint8_t {
#define QUANT_TYPE(name, id, block, bytes) name,
#include "compute/quant_types.def"
#undef QUANT_TYPE
  count
};

struct QuantInfo {
  const char* name;  // "q4_k": also the decode header's name
  uint32_t gguf_id;
  uint32_t block;  // weights in a block
  uint32_t block_bytes;
};

const QuantInfo& quant_info(QuantType type);
const QuantInfo* quant_from_gguf(uint32_t gguf_id, QuantType* out);  // null for an id not in the table
const QuantInfo* quant_from_name(const char* name, QuantType* out);  // "q8_0", "f16"; null if unknown

// The type of `cache_type`, an index of kernels/abi/cache_types.def; false if there is none.
bool cache_quant(uint32_t cache_type, QuantType* out);

// Bytes of `count` weights in GGUF order; count is a multiple of the block.
inline uint64_t quant_bytes(QuantType type, uint64_t count) {
  return count / quant_info(type).block * quant_info(type).block_bytes;
}

}  // namespace greta
