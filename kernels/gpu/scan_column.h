// A column of a scan by one thread, over all rows of a run: the three forms of kernels/abi/scan.h as they
// stand there. Before it stands what kernels/gpu/scan.h wants; `state` is that of the run.
#include "kernels/gpu/scan.h"

void scan_column(ScanBlock p, StepRun run, bool begins, float_address state, uint column) {
  const uint h = column / p.value_width, form = scan_form(p.form);
  const uint first = h * p.key_width * p.value_width + column % p.value_width;
  float_address query_of = MOVED(p.key, p.query_at);
  const float skip = skip_of(p, h);
  for (uint t = run.first; t < run.first + run.count; ++t) {
    const uint keys = key_at(p, t, h);
    const float rate = rate_of(p, t, h), value = AT(p.value, t * p.value_stride + column);
    const float decay = form == kScanSelective ? 1.0f : exp_f32(AT(p.a, h) * rate);
    float key_squares = 0.0f, query_squares = 0.0f, from_key = 0.0f, from_query = 0.0f;
    for (uint j = 0; j < p.key_width; ++j) {
      const float key = AT(p.key, keys + j), query = query_of.at[keys + j];
      const uint at = first + j * p.value_width;
      const float now = form == kScanSelective ? exp_f32(AT(p.a, h * p.key_width + j) * rate) : decay;
      const float s = begins && t == run.first ? 0.0f : state.at[at] * now;
      state.at[at] = s;
      from_key += s * key;
      key_squares += key * key;
      query_squares += query * query;
    }
    const float key_factor = length_factor(p, key_squares);
    float change = rate * value;
    if (form == kScanDelta) change = strength_of(p, t, h) * (value - key_factor * from_key);
    change *= key_factor;
    for (uint j = 0; j < p.key_width; ++j) {
      const uint at = first + j * p.value_width;
      const float s = state.at[at] + change * AT(p.key, keys + j);
      state.at[at] = s;
      from_query += s * query_of.at[keys + j];
    }
    const float y = length_factor(p, query_squares) * query_factor(p) * from_query;
    AT(p.y, t * p.heads * p.value_width + column) = y + skip * value;
  }
}
