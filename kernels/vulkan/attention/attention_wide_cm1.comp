// attention_wide_cm1: attention_tiles_cm1 for heads whose sums need the registers of two subgroups. Two
// subgroups then have the same queries. Grid, shared memory and bytes are as in attention_tiles_cm1; a group
// has twice as many threads.
#define SUBGROUPS_OF_QUERIES 2
#include "kernels/vulkan/attention/attention_tiles_cm1.comp"
