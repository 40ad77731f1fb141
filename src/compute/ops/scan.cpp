// scan: a recurrence over the rows of each sequence, whose state is a matrix for each head, alone or with the
// convolution before it and the norm and the gate of its heads behind it. Group = a tile of the state's
// columns, which are the values of all heads, or with more than the scan a head; and a run of the step.
#include "compute/ops/forms.h"
#include "kernels/abi/scan_chunk.h"

namespace greta {

static uint64_t columns_of(const Call::Scan& scan) { return uint64_t(scan.heads) * scan.value_width; }

static bool check_strides(const Call::Scan& scan, Reason& why) {
  const uint64_t state = scan_state_values(scan.heads, scan.key_width, scan.value_width);
  if (state > UINT32_MAX || uint64_t(scan.groups) * scan.key_width > UINT32_MAX)
    return why.no("scan: a state of %llu values", (unsigned long long)state);
  return check_stride("scan", scan.key_stride, scan.groups * scan.key_width, why) &&
         check_stride("scan", scan.value_stride, uint32_t(columns_of(scan)), why) &&
         check_stride("scan", scan.dt_stride, scan.heads, why) &&
         check_stride("scan", scan.state_stride, uint32_t(state), why);
}

// Whether `slice` begins `values` floats behind `from`.
static bool lies_behind(const Slice& slice, const Slice& from, uint64_t values) {
  return slice.buffer == from.buffer && slice.offset == from.offset + values * kFloatBytes;
}

// The convolution makes queries, keys and values, in this order and without gaps, and has its state in front
// of the scan's.
static bool check_conv1d(const Call& conv, const Call& call, Reason& why) {
  const Call::Scan& scan = call.scan;
  const uint64_t keys = uint64_t(scan.groups) * scan.key_width, channels = 2 * keys + columns_of(scan);
  const Slice &y = conv.slot[kY], &states = conv.slot[kPool], &own = call.slot[kPool];
  if (conv.weight.n == channels && conv.weight.depth >= 2 && conv.weight.depth <= kMaxConvWidth &&
      conv.conv1d.silu && !conv.slot[kBias].buffer && !conv.x_stride && !conv.y_stride &&
      lies_behind(call.slot[kX], y, 0) && lies_behind(call.slot[kX2], y, keys) &&
      lies_behind(call.slot[kX3], y, 2 * keys) && scan.key_stride == channels &&
      scan.value_stride == channels && !scan.dt_stride && own.buffer == states.buffer &&
      own.offset >= states.offset && scan.state_stride && scan.state_stride == conv.conv1d.state_stride &&
      scan.state_stride % 4 == 0 && own.offset % 16 == 0 && states.offset % 16 == 0)
    return check_weight("scan", conv.weight, why);
  return why.no("scan: %u heads of %u values do not fuse with a convolution of %u channels", scan.heads,
                scan.value_width, conv.weight.n);
}

// What a kernel deals to its threads: columns in fours, and keys.
static bool check_threads(const Call::Scan& scan, uint32_t threads, Reason& why) {
  const uint32_t quads = scan.value_width / 4;
  const uint32_t slices = quads ? std::min(threads / quads, scan.key_width) : 0;
  if (slices && scan.value_width % 16 == 0 && scan.key_width % slices == 0 && scan.key_width / slices <= 16 &&
      2 * scan.key_width + scan.value_width <= threads)
    return true;
  return why.no("scan: heads of %u x %u values do not fuse for %u threads", scan.key_width, scan.value_width,
                threads);
}

// The calls are conv1d, scan, norm, gate, and convert where there is one.
static bool check_sequence(std::span<const Call> calls, const KernelRow& row, Reason& why) {
  const Call& call = calls[1];
  const Call::Scan& scan = call.scan;
  if (calls.size() < 4 || scan_form(scan.form) != kScanDelta || !scan.groups || scan.heads % scan.groups ||
      !call.slot[kCounters].buffer || uint64_t(row.tokens_max) * scan.groups > kCounterCount)
    return why.no("scan: does not fuse with this sequence of %zu ops", calls.size());
  const Call& norm = calls[2];
  if (!same_place(norm.slot[kX], call.slot[kY]) || norm.norm.heads != scan.heads ||
      norm.width != scan.value_width || norm.weight.n != 1 || norm.weight.depth != norm.width)
    return why.no("scan: %u heads of %u values before a norm of %u of %u", scan.heads, scan.value_width,
                  norm.norm.heads, norm.width);
  return check_conv1d(calls[0], call, why) && check_threads(scan, row.code.group_size[0], why) &&
         check_gated_norm(calls.subspan(2), why) && check_weight("scan", norm.weight, why);
}

static bool fits(std::span<const Call> calls, const KernelRow& row, Reason& why) {
  if (calls.size() > 1 ? !check_sequence(calls, row, why) : !check_single(calls, why)) return false;
  const Call& call = lead_call(calls);
  const Call::Scan& scan = call.scan;
  if (!check_size("scan", "heads", scan.heads, why)) return false;
  if (!check_size("scan", "width of keys", scan.key_width, why)) return false;
  if (!check_size("scan", "width of values", scan.value_width, why)) return false;
  if (!scan.groups || scan.heads % scan.groups)
    return why.no("scan: %u heads in %u groups", scan.heads, scan.groups);
  if (scan.key_width > kMaxScanKeys)
    return why.no("scan: keys of %u values, at most %u", scan.key_width, uint32_t(kMaxScanKeys));
  const uint32_t form = scan_form(scan.form);
  if (form > kScanSelective || scan.form > (form | kScanTiled)) return why.no("scan: no form %u", scan.form);
  if (form == kScanDelta && !call.slot[kX5].buffer) return why.no("scan: a delta rule without strengths");
  if (form == kScanSelective && scan.value_width != 1)
    return why.no("scan: channels of %u values in a selective scan", scan.value_width);
  if (call.slot[kX].buffer != call.slot[kX2].buffer)
    return why.no("scan: queries and keys are parts of different rows");
  if (!check_strides(scan, why)) return false;
  // Rows that deal a tile's keys to threads give each of them a multiple of 8.
  if (row.tile_tokens &&
      (form == kScanSelective || scan.value_width % row.tile || scan.key_width % (8 * row.tile_tokens)))
    return why.no("scan: heads of %u x %u values are no whole tiles", scan.key_width, scan.value_width);
  if (row.shared_bytes && scan_chunk_bytes(scan.key_width) > row.shared_bytes)
    return why.no("scan: keys of %u values, at most 128 in chunks", scan.key_width);
  return true;
}

static void groups(std::span<const Call> calls, const KernelRow& row, uint32_t bucket, uint32_t (&out)[3]) {
  const Call::Scan& scan = lead_call(calls).scan;
  out[0] = calls.size() > 1 ? scan.heads : uint32_t(divide_up(columns_of(scan), row.tile));
  out[1] = most_runs(bucket);
  out[2] = 1;
}

static void pack_sequence(std::span<const Call> calls, Launch* out) {
  const Call &conv = calls[0], &call = calls[1], &norm = calls[2], &gate = calls[3];
  const Call::Scan& scan = call.scan;
  ScanGated all = {};
  ScanGatedBlock& block = all.block;
  block.x = conv.slot[kX].address();
  block.weight = conv.weight.slice.address();
  block.state = conv.slot[kPool].address();
  block.dt = call.slot[kX4].address();
  block.strength = call.slot[kX5].address();
  block.a = call.slot[kTable].address();
  block.dt_bias = call.slot[kBias].address();
  block.gain = norm.weight.slice.address();
  block.gate = gate.slot[kX].address();
  block.y = gate.slot[kY].address();
  block.step = call.slot[kStep].address();
  block.runs = call.slot[kRuns].address();
  block.counters = call.slot[kCounters].address();
  block.state_stride = scan.state_stride;
  block.scan_at = uint32_t((call.slot[kPool].offset - conv.slot[kPool].offset) / kFloatBytes);
  ScanGatedConstants& constants = all.constants;
  constants = {scan.heads,        scan.groups,      scan.key_width,       scan.value_width,
               conv.weight.depth, scan.form,        gate.gate.activation, 0,
               scan.epsilon,      norm.norm.epsilon};
  for (const Slice& input : {conv.slot[kX], conv.weight.slice, call.slot[kX4], call.slot[kX5],
                             call.slot[kTable], call.slot[kBias], norm.weight.slice, gate.slot[kX]})
    out->read(input);
  out->write(gate.slot[kY]);
  if (calls.size() > 4) {
    block.rounded = calls[4].slot[kY].address();
    constants.halves = calls[4].form != Form::Q8X16;
    out->write(calls[4].slot[kY]);
  }
  out->note(call.slot[kCounters], Access::kReadWrite, false);
  out->note(conv.slot[kPool], Access::kReadWrite, true);
  use_states(call, out);
  out->set_block(all);
}

static void pack(std::span<const Call> calls, const KernelRow&, Launch* out) {
  if (calls.size() > 1) return pack_sequence(calls, out);
  const Call& call = calls[0];
  const Call::Scan& scan = call.scan;
  ScanBlock block = {};
  block.key = call.slot[kX2].address();
  block.value = call.slot[kX3].address();
  block.dt = call.slot[kX4].address();
  block.with_value = call.slot[kX5].address();
  block.y = call.slot[kY].address();
  block.state = call.slot[kPool].address();
  block.a = call.slot[kTable].address();
  block.dt_bias = call.slot[kBias].address();
  block.step = call.slot[kStep].address();
  block.runs = call.slot[kRuns].address();
  block.form = scan.form;
  block.heads = scan.heads;
  block.groups = scan.groups;
  block.key_width = scan.key_width;
  block.value_width = scan.value_width;
  block.query_at = uint32_t((call.slot[kX].offset - call.slot[kX2].offset) / kFloatBytes);
  block.key_stride = stride_or(scan.key_stride, scan.groups * scan.key_width);
  block.value_stride = stride_or(scan.value_stride, uint32_t(columns_of(scan)));
  block.dt_stride = stride_or(scan.dt_stride, scan.heads);
  block.state_stride =
      stride_or(scan.state_stride, uint32_t(scan_state_values(scan.heads, scan.key_width, scan.value_width)));
  block.epsilon = scan.epsilon;
  block.most_runs = most_runs(out->bucket);
  out->set_block(block);
  for (const Slot input : {kX, kX2, kX3, kX4, kX5, kTable, kBias}) out->read(call.slot[input]);
  out->write(call.slot[kY]);
  use_states(call, out);
}

// Each row may be a sequence of its own, whose state comes in and goes out.
static Cost cost(std::span<const Call> calls, uint32_t rows, uint32_t) {
  const Call::Scan& scan = lead_call(calls).scan;
  const uint64_t state = scan_state_values(scan.heads, scan.key_width, scan.value_width);
  const uint64_t inputs = 2 * columns_of(scan) + 2 * uint64_t(scan.groups) * scan.key_width + 2 * scan.heads;
  return {(2 * state + inputs) * rows * kFloatBytes,
          (scan_form(scan.form) == kScanDelta ? 8 : 6) * state * rows};
}

extern const OpInfo op_scan = {fits, groups, pack, cost};

}  // namespace greta
