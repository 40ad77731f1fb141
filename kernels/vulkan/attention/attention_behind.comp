// attention_behind: attention_lone of the positions behind the prefixes that rows share
// (kernels/abi/shared_prefix.h). The last group of a row also merges the partial results of its prefix
// (attention_prefix_cm1), which lie behind its own in `scratch`. Grid, group, shared memory and bytes are as
// in attention_lone. The argument block is AttentionBlock in kernels/abi/ops.h.
#include "kernels/vulkan/attention/queries_given.h"
#include "kernels/vulkan/attention/ranges_behind_prefixes.h"
#include "kernels/vulkan/attention/split.h"
