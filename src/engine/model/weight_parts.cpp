#include "engine/model/weight_parts.h"

#include <algorithm>

namespace greta {

Status cut_tensor(const Tensor& whole, uint64_t limit, std::vector<Tensor>* out) {
  const uint64_t matrix_bytes = tensor_bytes(whole.type, whole.layout, whole.n, whole.depth, 1);
  const bool by_rows = whole.count == 1 || matrix_bytes > limit;
  const uint32_t all = by_rows ? whole.n : whole.count, step = by_rows ? std::min(kPackRows, whole.n) : 1;
  const uint64_t step_bytes =
      by_rows ? tensor_bytes(whole.type, whole.layout, step, whole.depth, 1) : matrix_bytes;
  if (step_bytes > limit)
    return fail(Code::Unsupported, "%u rows of it have %llu bytes, a buffer of this device has at most %llu",
                step, (unsigned long long)step_bytes, (unsigned long long)limit);
  const uint32_t most = uint32_t(std::min<uint64_t>(limit / step_bytes * step, all));
  out->clear();
  for (uint32_t matrix = 0; matrix < (by_rows ? whole.count : 1); ++matrix)
    for (uint32_t first = 0, count; first < all; first += count) {
      count = std::min(most, all - first);
      Tensor part = whole;
      if (by_rows) part.n = count;
      part.count = by_rows ? 1 : count;
      out->push_back(part);
    }
  return {};
}

namespace {

// The slice from its float number `value` on.
Slice values_from(const Slice& slice, uint64_t value) {
  if (!slice.buffer) return {};
  const uint64_t bytes = value * sizeof(float);
  return {slice.buffer, slice.offset + bytes, slice.bytes - bytes};
}

// Each call writes only the rows of y of those tokens or slots whose weights lie in its part.
Status add_chosen(const Call& call, uint32_t bucket, GretaGraph* graph) {
  const uint32_t n = call.weight.n;
  uint64_t row = 0;  // counted over all matrices
  for (const Tensor& weight : *call.weight.parts) {
    Call part = call;
    part.weight = weight;
    const uint32_t first = uint32_t(call.op == Op::Embed ? row : row / n);
    (call.op == Op::Embed ? part.embed.first : part.matmul_expert.first) = first;
    if (call.op == Op::MatmulExpert && weight.n < n) {  // it computes some columns of y
      part.y_stride = call.y_stride ? call.y_stride : n;
      part.slot[kY] = values_from(call.slot[kY], row % n);
      part.slot[kBias] = values_from(call.slot[kBias],
                                     uint64_t(first) * (n - weight.n) + row % n);  // a bias has n values
    }
    GRETA_TRY(graph->add({&part, 1}, bucket));
    row += uint64_t(weight.n) * weight.count;
  }
  return {};
}

// Each part computes some columns of y. If y is a single row they are written in place, else to temporary
// memory, from where they are copied between the others.
Status add_rows(const Call& call, uint32_t bucket, GretaGraph* graph) {
  std::vector<Call> moves;
  uint64_t first = 0;
  for (const Tensor& weight : *call.weight.parts) {
    Call part = call;
    part.weight = weight;
    part.slot[kBias] = values_from(call.slot[kBias], first);
    part.slot[kY] = values_from(call.slot[kY], first);
    if (bucket == 1) {
      part.slot[kY].bytes = weight.n * sizeof(float);
    } else {
      const Slice y = part.slot[kY];
      part.slot[kY] = graph->temporary(uint64_t(bucket) * weight.n * sizeof(float));
      // With scale 1 and no cap this is a copy.
      Call move = CallMaker{call.slot[kStep]}.softcap(part.slot[kY], y, weight.n, 0, 1);
      move.rows_of = call.rows_of == kRowsTokens ? kRowsTokens : kRowsOutputs;
      move.y_stride = call.weight.n;
      moves.push_back(move);
    }
    GRETA_TRY(graph->add({&part, 1}, bucket));
    first += weight.n;
  }
  for (const Call& move : moves) GRETA_TRY(graph->add({&move, 1}, bucket));
  return {};
}

}  // namespace

Status add_parts(const Call& call, uint32_t bucket, GretaGraph* graph) {
  return call.op == Op::Matmul ? add_rows(call, bucket, graph) : add_chosen(call, bucket, graph);
}

}  // namespace greta
