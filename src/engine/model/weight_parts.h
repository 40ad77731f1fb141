// Weights that are larger than one buffer may be. They lie in parts, each in a buffer of its own, and a call
// on such a weight becomes one call for each part.
#pragma once
#include "graph/graph.h"

namespace greta {

inline uint64_t bytes_of(const Tensor& t) { return tensor_bytes(t.type, t.layout, t.n, t.depth, t.count); }
inline uint64_t padded_bytes(const Tensor& tensor) { return round_up(bytes_of(tensor), 256); }

// A tensor's parts, or the tensor itself as its only one.
inline std::span<const Tensor> parts_of(const Tensor& tensor) {
  return tensor.parts ? std::span<const Tensor>(*tensor.parts) : std::span<const Tensor>(&tensor, 1);
}

// Cuts a tensor into parts of at most `limit` bytes. A part has whole matrices, or some rows of a larger one.
Status cut_tensor(const Tensor& whole, uint64_t limit, std::vector<Tensor>* out);

// Plans a call (embed, matmul, matmul_expert) whose weight lies in parts.
Status add_parts(const Call& call, uint32_t bucket, GretaGraph* graph);

}  // namespace greta
