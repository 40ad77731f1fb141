// scan: a recurrence over the rows of each sequence, whose state is a matrix for each head. Group = a tile of
// the state's columns, which are the values of all heads, and a run of the step.
#include "compute/ops/parts.h"

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

static bool fits(std::span<const Call> calls, const KernelRow& row, Reason& why) {
  if (!check_single(calls, why)) return false;
  const Call& call = calls[0];
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
  return true;
}

// At most as many runs as rows, and as sequences.
static uint32_t most_runs(uint32_t bucket) { return std::min<uint32_t>(bucket, kMaxStepSequences); }

static void groups(std::span<const Call> calls, const KernelRow& row, uint32_t bucket, uint32_t (&out)[3]) {
  out[0] = uint32_t(divide_up(columns_of(calls[0].scan), row.tile));
  out[1] = most_runs(bucket);
  out[2] = 1;
}

static void pack(std::span<const Call> calls, const KernelRow&, Launch* out) {
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
  const Call::Scan& scan = calls[0].scan;
  const uint64_t state = scan_state_values(scan.heads, scan.key_width, scan.value_width);
  const uint64_t inputs = 2 * columns_of(scan) + 2 * uint64_t(scan.groups) * scan.key_width + 2 * scan.heads;
  return {(2 * state + inputs) * rows * kFloatBytes,
          (scan_form(scan.form) == kScanDelta ? 8 : 6) * state * rows};
}

extern const OpInfo op_scan = {fits, groups, pack, cost};

}  // namespace greta
