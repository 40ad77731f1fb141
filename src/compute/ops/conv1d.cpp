// conv1d: a causal convolution of each channel, whose last inputs are a state of the sequence, alone or
// between the product that makes its input and the one that gates its result. A group has a tile of channels.
// It also has a row of the plan, and the kernel says which rows it goes over; or, where the row of the table
// has tile_tokens, a block of so many rows of a run.
#include "compute/ops/forms.h"

namespace greta {

// A product of rows of `channels` values, whose results follow each other without gaps.
static bool multiplies_rows(const Call& call, uint32_t channels) {
  return call.op == Op::Multiply && call.multiply.factor == kFactorItself && call.multiply.heads == 1 &&
         !call.multiply.each_head && call.width == channels;
}

// The calls are multiply, conv1d, multiply, and convert where there is one. All inputs lie equally far apart.
static bool check_gated(std::span<const Call> calls, Reason& why) {
  const Call &before = calls[0], &conv = calls[1], &gated = calls[2];
  const uint32_t channels = conv.weight.n, stride = stride_or(before.x_stride, channels);
  if (!multiplies_rows(before, channels) || !multiplies_rows(gated, channels) ||
      !same_place(conv.slot[kX], before.slot[kY]) || !same_place(gated.slot[kX2], conv.slot[kY]) ||
      conv.x_stride || conv.y_stride || conv.conv1d.silu || channels % 4 || stride % 4 ||
      stride_or(before.multiply.by_stride, channels) != stride ||
      stride_or(gated.x_stride, channels) != stride ||
      stride_or(gated.multiply.by_stride, channels) != channels)
    return why.no("conv1d: %u channels do not fuse with products of %u values every %u", channels,
                  before.width, stride);
  if (calls.size() == 3 || makes_halves(gated, calls[3], channels) ||
      makes_rounded(gated, calls[3], channels))
    return true;
  return why.no("conv1d: %u gated channels do not fuse with a form of %u", channels, calls[3].width);
}

static bool fits(std::span<const Call> calls, const KernelRow&, Reason& why) {
  if (calls.size() > 1 ? !check_gated(calls, why) : !check_single(calls, why)) return false;
  const Call& call = lead_call(calls);
  const uint32_t channels = call.weight.n, width = call.weight.depth;
  if (width < 2 || width > kMaxConvWidth)
    return why.no("conv1d: a width of %u, it can be 2 to %u", width, uint32_t(kMaxConvWidth));
  if (!check_weight("conv1d", call.weight, why)) return false;
  const uint64_t state = conv_state_values(channels, width);
  if (call.conv1d.state_stride && call.conv1d.state_stride < state)
    return why.no("conv1d: states of %llu values every %u", (unsigned long long)state,
                  call.conv1d.state_stride);
  if (state > UINT32_MAX) return why.no("conv1d: a state of %llu values", (unsigned long long)state);
  return check_stride("conv1d", call.x_stride, channels, why) &&
         check_stride("conv1d", call.y_stride, channels, why);
}

static void groups(std::span<const Call> calls, const KernelRow& row, uint32_t bucket, uint32_t (&out)[3]) {
  out[0] = uint32_t(divide_up(lead_call(calls).weight.n, row.tile));
  out[1] = bucket;
  // The blocks of a run begin with it, and the last one may lack rows.
  if (row.tile_tokens) out[1] = uint32_t(divide_up(bucket, row.tile_tokens)) + most_runs(bucket);
  out[2] = 1;
}

static uint32_t state_stride_of(const Call& conv) {
  return stride_or(conv.conv1d.state_stride, uint32_t(conv_state_values(conv.weight.n, conv.weight.depth)));
}

static void pack_gated(std::span<const Call> calls, Launch* out) {
  const Call &before = calls[0], &conv = calls[1], &gated = calls[2];
  Conv1dGatedBlock block = {};
  block.x = before.slot[kX].address();
  block.by = before.slot[kX2].address();
  block.gate = gated.slot[kX].address();
  block.weight = conv.weight.slice.address();
  block.bias = conv.slot[kBias].address();
  block.y = gated.slot[kY].address();
  block.state = conv.slot[kPool].address();
  block.step = conv.slot[kStep].address();
  block.runs = conv.slot[kRuns].address();
  block.channels = conv.weight.n;
  block.width = conv.weight.depth;
  block.stride = stride_or(before.x_stride, conv.weight.n);
  block.state_stride = state_stride_of(conv);
  for (const Slice& input :
       {before.slot[kX], before.slot[kX2], gated.slot[kX], conv.weight.slice, conv.slot[kBias]})
    out->read(input);
  out->write(gated.slot[kY]);
  if (calls.size() > 3) pack_form(calls[3], &block, out);
  out->set_block(block);
  use_states(conv, out);
}

static void pack(std::span<const Call> calls, const KernelRow&, Launch* out) {
  if (calls.size() > 1) return pack_gated(calls, out);
  const Call& call = calls[0];
  Conv1dBlock block = {};
  block.x = call.slot[kX].address();
  block.weight = call.weight.slice.address();
  block.bias = call.slot[kBias].address();
  block.y = call.slot[kY].address();
  block.state = call.slot[kPool].address();
  block.step = call.slot[kStep].address();
  block.runs = call.slot[kRuns].address();
  block.channels = call.weight.n;
  block.width = call.weight.depth;
  block.silu = call.conv1d.silu;
  block.x_stride = stride_or(call.x_stride, call.weight.n);
  block.y_stride = stride_or(call.y_stride, call.weight.n);
  block.state_stride = state_stride_of(call);
  block.rows = out->bucket;
  out->set_block(block);
  out->read(call.slot[kX]);
  out->read(call.weight.slice);
  out->read(call.slot[kBias]);
  out->write(call.slot[kY]);
  use_states(call, out);
}

static Cost cost(std::span<const Call> calls, uint32_t rows, uint32_t) {
  const Call& call = lead_call(calls);
  const Tensor& weight = call.weight;
  const uint64_t values = uint64_t(rows) * weight.n, of_row = calls.size() > 1 ? 4 : 2;
  return {(of_row * values + 2 * conv_state_values(weight.n, weight.depth)) * kFloatBytes,
          (2 * weight.depth + (call.conv1d.silu ? 8 : 0)) * values};
}

extern const OpInfo op_conv1d = {fits, groups, pack, cost};

}  // namespace greta
