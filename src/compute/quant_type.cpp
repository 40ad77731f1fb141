#include "compute/quant_type.h"

#include <cstring>

namespace greta {

static constexpr QuantInfo kQuants[] = {
#define QUANT_TYPE(name, id, block, bytes) {#name, id, block, bytes},
#include "compute/quant_types.def"
#undef QUANT_TYPE
};

const QuantInfo& quant_info(QuantType type) { return kQuants[uint32_t(type)]; }

const QuantInfo* quant_from_gguf(uint32_t gguf_id, QuantType* out) {
  for (uint32_t i = 0; i < uint32_t(QuantType::count); ++i)
    if (kQuants[i].gguf_id == gguf_id) return *out = QuantType(i), &kQuants[i];
  return nullptr;
}

const QuantInfo* quant_from_name(const char* name, QuantType* out) {
  for (uint32_t i = 0; i < uint32_t(QuantType::count); ++i)
    if (!strcmp(kQuants[i].name, name)) return *out = QuantType(i), &kQuants[i];
  return nullptr;
}

bool cache_quant(uint32_t cache_type, QuantType* out) {
  static constexpr QuantType kTypes[] = {
#define CACHE_TYPE(name) QuantType::name,
#include "kernels/abi/cache_types.def"
#undef CACHE_TYPE
  };
  if (cache_type >= sizeof kTypes / sizeof kTypes[0]) return false;
  *out = kTypes[cache_type];
  return true;
}

}  // namespace greta
