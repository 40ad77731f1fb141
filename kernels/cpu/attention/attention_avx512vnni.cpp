// attention_avx512vnni: one group is one token and one KV head.
#include "kernels/cpu/simd/avx512vnni/attention.h"

extern "C" void KERNEL_NAME(const void* block, uint32_t first_group, uint32_t group_count, Scratch* scratch) {
  attention_groups<Vec>(*(const AttentionBlock*)block, first_group, group_count, scratch);
}
