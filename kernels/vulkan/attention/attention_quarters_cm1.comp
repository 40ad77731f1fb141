// attention_quarters_cm1: attention_tiles_cm1 for heads whose sums need the registers of four subgroups, as
// those of 512 values. Four subgroups then have the same queries, and a quarter of the columns each. A group
// has half as many queries and twice as many threads, and keys and values of a tile take turns in shared
// memory.
//   grid, bytes  as in attention_tiles_cm1
//   a tile       32 queries x 32 positions; its keys and values of 512 are 64 KiB from the caches
#define SUBGROUPS_OF_QUERIES 4
#define QUERIES 32
#include "kernels/vulkan/attention/attention_tiles_cm1.comp"
