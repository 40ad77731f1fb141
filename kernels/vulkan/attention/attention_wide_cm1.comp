// attention_wide_cm1: attention_tiles_cm1 for heads whose sums take the registers of two subgroups.
#define SUBGROUPS_OF_QUERIES 2
#include "kernels/vulkan/attention/attention_tiles_cm1.comp"
