// attention_tiles_mfma: attention of many tokens on CDNA (tiles.h).
namespace {
constexpr unsigned kQueries = 64, kSharing = 1, kWidest = 128;  // TILE in CMakeLists.txt, tiles.h
}
#include "kernels/hip/attention/tiles.h"

KERNEL(GROUP) void KERNEL_NAME(AttentionBlock p) {
  if (p.key_width <= 64 && p.value_width <= 64)
    attend_heads<64>(p);
  else
    attend_heads<128>(p);
}
