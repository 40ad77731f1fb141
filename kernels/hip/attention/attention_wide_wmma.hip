// attention_wide_wmma: attention of many tokens on RDNA3 and RDNA4, for heads of up to 256 values (tiles.h).
// Two waves have the same queries.
namespace {
constexpr unsigned kQueries = 64, kSharing = 2, kWidest = 256;  // TILE in CMakeLists.txt, tiles.h
}
#include "kernels/hip/attention/tiles.h"

KERNEL(GROUP) void KERNEL_NAME(AttentionBlock p) { attend_heads<256>(p); }
