// What the ops' files share: reading calls, declaring accesses, counting bytes.
#pragma once
#include <cstddef>

#include "compute/kernel_table.h"

namespace greta {

constexpr uint64_t kFloatBytes = sizeof(float);

// Heads of `width` values fit these pages.
inline bool check_page(const char* op, uint32_t heads, uint32_t width, const CachePages& pages, Reason& why) {
  QuantType type;
  if (!cache_quant(pages.type, &type)) return why.no("%s: no cache type %u", op, pages.type);
  if (width % quant_info(type).block)
    return why.no("%s: heads of %u values in a %s cache, whose blocks have %u", op, width,
                  quant_info(type).name, quant_info(type).block);
  const uint64_t needed = quant_bytes(type, uint64_t(heads) * kPageTokens * width);
  if (needed > pages.bytes)
    return why.no("%s: a page of %u bytes for %u heads of %u values, which need %llu", op, pages.bytes, heads,
                  width, (unsigned long long)needed);
  return true;
}

inline bool check_single(std::span<const Call> calls, Reason& why) {
  if (calls.size() == 1) return true;
  return why.no("%s leads a sequence of %zu ops", op_name(calls[0].op), calls.size());
}

// A size that must not be zero.
inline bool check_size(const char* op, const char* what, uint64_t size, Reason& why) {
  return size || why.no("%s: %s is 0", op, what);
}

// The weight against its type's block and, where it has one, its slice.
inline bool check_weight(const char* op, const Tensor& weight, Reason& why) {
  const QuantInfo& info = quant_info(weight.type);
  if (!weight.n || !weight.depth || !weight.count)
    return why.no("%s: weight [%u][%u] x %u is empty", op, weight.n, weight.depth, weight.count);
  if (weight.parts) return why.no("%s: a weight in %zu parts, each is a call", op, weight.parts->size());
  if (weight.depth % info.block)
    return why.no("%s: rows of %u weights are not whole %s blocks of %u", op, weight.depth, info.name,
                  info.block);
  const uint64_t needed = tensor_bytes(weight.type, weight.layout, weight.n, weight.depth, weight.count);
  if (weight.slice.buffer && weight.slice.bytes < needed)
    return why.no("%s: weight [%u][%u] x %u of type %s needs %llu bytes, its slice has %llu", op, weight.n,
                  weight.depth, weight.count, info.name, (unsigned long long)needed,
                  (unsigned long long)weight.slice.bytes);
  return true;
}

// Only some of its rows are filled, so initialisation is not checked.
inline void read_step(const Call& call, Launch* out) { out->read(call.slot[kStep], true); }

// Of a step's runs (kernels/abi/step_runs.h): at most as many as rows, and as sequences.
inline uint32_t most_runs(uint32_t bucket) { return std::min<uint32_t>(bucket, kMaxStepSequences); }

// The states of a conv1d or a scan, of which only those of the step's runs are touched.
inline void use_states(const Call& call, Launch* out) {
  out->note(call.slot[kPool], Access::kReadWrite, true);
  out->read(call.slot[kRuns], true);
  read_step(call, out);
}

inline bool same_place(const Slice& a, const Slice& b) {
  return a.buffer == b.buffer && a.offset == b.offset;
}

// Groups of a row whose values are split into tiles; a row of the table without a tile takes them all.
inline uint32_t tiles_of(const KernelRow& row, uint64_t values) {
  return row.tile > 1 ? uint32_t(divide_up(values, row.tile)) : 1;
}

// One group for each row of the plan and tile of its `width` values.
inline void groups_row_tiles(std::span<const Call> calls, const KernelRow& row, uint32_t bucket,
                             uint32_t (&out)[3]) {
  out[0] = bucket;
  out[1] = tiles_of(row, calls[0].width);
  out[2] = 1;
}

// One group for each row of the plan.
inline void groups_rows(std::span<const Call>, const KernelRow&, uint32_t bucket, uint32_t (&out)[3]) {
  out[0] = bucket;
  out[1] = out[2] = 1;
}

inline uint32_t stride_or(uint32_t stride, uint32_t dense) { return stride ? stride : dense; }

inline bool check_stride(const char* op, uint32_t stride, uint32_t width, Reason& why) {
  if (!stride || stride >= width) return true;
  return why.no("%s: %u values every %u", op, width, stride);
}

// What follows makes float16 of all that `call` made, `width` values to a row.
inline bool makes_halves(const Call& call, const Call& convert, uint32_t width) {
  return convert.op == Op::Convert && convert.form == Form::F16 &&
         same_place(convert.slot[kX], call.slot[kY]) && convert.width == width && !convert.weight.n;
}

}  // namespace greta
