// Weights of more bytes than one buffer may have: they lie in parts, each in one buffer, and a call on such a
// weight becomes a call for each part.
#pragma once
#include "graph/graph.h"

namespace greta {

inline uint64_t bytes_of(const Tensor& t) { return tensor_bytes(t.type, t.layout, t.n, t.depth, t.count); }

// A tensor's parts, or the tensor itself as its only one.
inline std::span<const Tensor> parts_of(const Tensor& tensor) {
  return tensor.parts ? std::span<const Tensor>(*tensor.parts) : std::span<const Tensor>(&tensor, 1);
}

// Parts of at most `limit` bytes: whole matrices, or where one is above it rows of each.
Status cut_tensor(const Tensor& whole, uint64_t limit, std::vector<Tensor>* out);

// Plans a call (embed, matmul, matmul_expert) whose weight lies in parts.
Status add_parts(const Call& call, uint32_t bucket, GretaGraph* graph);

}  // namespace greta
