// attention_prefix_mfma: attention over shared pages on CDNA (attention_prefix.h).
namespace {
constexpr unsigned kQueries = 64, kSharing = 1, kWidest = 128;  // TILE in CMakeLists.txt, tiles.h
}
#include "kernels/hip/attention/attention_prefix.h"
