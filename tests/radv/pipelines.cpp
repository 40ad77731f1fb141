#include "radv/pipelines.h"

#include <algorithm>
#include <cstring>

#include "kernels/abi/scan_chunk.h"

namespace greta::test {

// What kernels are specialised by.
struct Shape {
  uint32_t depth;  // of a weight
  uint32_t heads, kv_heads, key_width, value_width;
  uint32_t cache_type;  // index in kernels/abi/cache_types.def: 1 f16, 2 q8_0
  float softcap = 0;
};
constexpr Shape kShapes[] = {
    {4096, 32, 8, 128, 128, 1}, {14336, 32, 8, 128, 128, 2},  // of 8 billion weights
    {4096, 64, 8, 128, 128, 1}, {4096, 8, 4, 256, 256, 1, 50}, {4096, 24, 8, 80, 80, 1},  // other heads
    {4096, 32, 4, 512, 512, 1},                                                           // of Gemma 4
    {4096, 16, 1, 576, 512, 1}, {4096, 16, 1, 576, 512, 2},                               // latent attention
};

std::string Pipeline::name() const {
  std::string text = row->name;
  for (size_t i = 0; i < constants.size(); ++i) text += (i ? "," : " ") + std::to_string(constants[i]);
  return text;
}

// The constants in a plan of `bucket` tokens. None where the row does not take heads of this shape.
static std::vector<uint32_t> constants_of(const KernelRow& row, const Shape& shape, uint32_t bucket) {
  // Whatever its op is, a call has the fields of all ops: no model makes such calls, and no operand is read.
  std::vector<Call> calls(row.op_count);
  const CachePages pages = {UINT32_MAX, shape.cache_type};
  Buffer scratch;
  for (uint32_t i = 0; i < row.op_count; ++i) {
    Call& call = calls[i];
    call.op = row.ops[i];
    call.weight = {row.type, row.layout, shape.depth, shape.depth};
    call.width = shape.key_width;
    call.norm = {shape.heads, 1e-5f};
    call.rope = {shape.heads, shape.key_width};
    call.kv_write = {shape.heads, pages};
    call.attention = {.heads = shape.heads,
                      .kv_heads = shape.kv_heads,
                      .key_width = shape.key_width,
                      .value_width = shape.value_width,
                      .softcap = shape.softcap,
                      .keys = pages,
                      .values = pages,
                      .rows = row.prefix == Prefix::None ? AttentionRows::All : AttentionRows::Lone,
                      .prefix = row.prefix};
    if (row.prefix != Prefix::None) call.slot[kScratch] = {&scratch, 0, 0};
    call.experts.used = 8;
    call.scan.heads = shape.heads;
    call.scan.key_width = std::min(shape.key_width / 64 * 64, 256u);  // as its rows in tiles want it
    if (call.op == Op::Conv1d) call.weight.depth = 4;  // the width of a convolution
    call.gemm = {.m = shape.depth, .n = shape.depth, .k = shape.depth, .type = kGemmF16};
    call.gemm.a_stride = call.gemm.b_stride = call.gemm.y_stride = shape.depth;
    if (call.op != Op::Scan || row.op_count == 1) continue;
    call.scan.groups = shape.heads / 2;
    call.scan.key_width = call.scan.value_width = 128;
  }
  const bool makes_heads = row.ops[0] != Op::Attention && lead_call(calls).op == Op::Attention;
  if (makes_heads && shape.key_width != shape.value_width) return {};
  Reason unasked;
  if (row.ops[0] == Op::Attention && row.shared_bytes && !lead_of(calls).fits(calls, row, unasked)) return {};
  const bool in_chunks = row.ops[0] == Op::Scan && row.shared_bytes;
  if (in_chunks && scan_chunk_bytes(calls[0].scan.key_width) > row.shared_bytes) return {};
  Launch launch;
  launch.bucket = bucket;
  lead_of(calls).pack(calls, row, &launch);
  uint32_t values[kMaxConstants + 1];
  const uint32_t count = kernel_constants(row, launch.fields(), values);
  return {values, values + count};
}

std::vector<Pipeline> pipelines_of_table() {
  std::vector<Pipeline> out;
  for (const KernelRow& row : kernel_table()) {
    if (strcmp(row.backend, "vulkan") != 0) continue;
    for (const Shape& shape : kShapes)
      for (const uint32_t bucket : {row.tokens_min, row.tokens_max}) {
        Pipeline made = {&row, constants_of(row, shape, bucket)};
        if (made.constants.empty()) continue;
        const bool there = std::any_of(out.begin(), out.end(), [&](const Pipeline& p) {
          return p.row->code.code.data() == row.code.code.data() && p.constants == made.constants;
        });
        if (!there) out.push_back(std::move(made));
      }
  }
  return out;
}

}  // namespace greta::test
