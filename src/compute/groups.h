// Weights of 4 bits in groups, as GPTQ, AWQ and compressed-tensors store them, and what they are in GGUF.
//
// A weight is scale * (quant - zero), with one scale and one zero for each `group` values of a row. That is
// exact in a type whose values are scale * integer, with a float16 scale for each 32 values.
#pragma once
#include "compute/quant_type.h"
#include "platform/platform.h"

namespace greta {

enum class GroupOrder : uint8_t { Gptq, GptqV2, Awq, Compressed, count };

// A matrix [n][depth]. The words lie in memory of the host, at any address.
struct GroupedWeights {
  GroupOrder order = GroupOrder::Gptq;
  uint64_t n = 0, depth = 0, group = 0;
  bool bfloat_scales = false;  // else float16
  bool round_scales = false;   // scales that float16 does not hold become the nearest one
  const uint8_t* quants = nullptr;
  const uint8_t* scales = nullptr;
  const uint8_t* zeros = nullptr;  // null: all are 8
  uint64_t quant_bytes = 0, scale_bytes = 0, zero_bytes = 0;
};

// Fails with Code::Argument unless the sizes fit each other.
Status check_group_sizes(const GroupedWeights& weights);
// Also fails with Code::Unsupported where float16 cannot hold a scale.
Status check_groups(const GroupedWeights& weights);
// The smallest type that holds them. They were checked.
QuantType type_of_groups(const GroupedWeights& weights);
// Writes `count` rows from `first` on in the order of GGUF. Their sizes were checked. Fails where the type
// cannot hold a zero, or float16 cannot hold a scale.
Status write_groups(const GroupedWeights& weights, QuantType type, uint64_t first, uint64_t count,
                    uint8_t* out);

}  // namespace greta
