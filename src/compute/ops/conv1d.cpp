// conv1d: a causal convolution of each channel, whose last inputs are a state of the sequence. Group = a tile
// of channels and a row of the plan; which rows it goes over, the kernel says.
#include "compute/ops/parts.h"

namespace greta {

static bool fits(std::span<const Call> calls, const KernelRow&, Reason& why) {
  if (!check_single(calls, why)) return false;
  const Call& call = calls[0];
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
  out[0] = uint32_t(divide_up(calls[0].weight.n, row.tile));
  out[1] = bucket;
  out[2] = 1;
}

static void pack(std::span<const Call> calls, const KernelRow&, Launch* out) {
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
  block.state_stride =
      stride_or(call.conv1d.state_stride, uint32_t(conv_state_values(call.weight.n, call.weight.depth)));
  block.rows = out->bucket;
  out->set_block(block);
  out->read(call.slot[kX]);
  out->read(call.weight.slice);
  out->read(call.slot[kBias]);
  out->write(call.slot[kY]);
  use_states(call, out);
}

static Cost cost(std::span<const Call> calls, uint32_t rows, uint32_t) {
  const Tensor& weight = calls[0].weight;
  const uint64_t values = uint64_t(rows) * weight.n;
  return {(2 * values + 2 * conv_state_values(weight.n, weight.depth)) * kFloatBytes,
          (2 * weight.depth + (calls[0].conv1d.silu ? 8 : 0)) * values};
}

extern const OpInfo op_conv1d = {fits, groups, pack, cost};

}  // namespace greta
