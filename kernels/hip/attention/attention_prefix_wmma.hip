// attention_prefix_wmma: attention over shared pages on RDNA3 and RDNA4 (attention_prefix.h).
// Two waves have the same queries.
namespace {
constexpr unsigned kQueries = 64, kSharing = 2, kWidest = 128;  // TILE in CMakeLists.txt, tiles.h
}
#include "kernels/hip/attention/attention_prefix.h"
