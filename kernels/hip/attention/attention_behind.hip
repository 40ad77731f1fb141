// attention_behind: attention_lone of the positions behind the prefixes that rows share
// (kernels/abi/shared_prefix.h). The last group of a row also merges the partial results of its prefix
// (attention_prefix.h), which lie behind its own in `scratch`. Grid, group, shared memory and bytes are as in
// attention_lone. The argument block is AttentionBlock in kernels/abi/ops.h.
namespace {
constexpr bool kLone = true, kBehind = true;  // range.h
}
#include "kernels/hip/attention/attention_split.h"
