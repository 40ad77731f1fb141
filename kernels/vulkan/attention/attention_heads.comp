// attention_heads: attention_split of one token whose queries, key and, where the cache has blocks, value are as the
// matmuls have made them: groups norm and rotate what they need, and that which takes the newest position stores it.
#define MAKES_HEADS
#include "kernels/vulkan/attention/attention_split.comp"
