// Checks the scan of the gated delta rule with the convolution before it and the norm and the gate behind it
// against float64.
#include "selftest/checks/checks.h"
#include "selftest/checks/runs.h"
#include "selftest/checks/sequences.h"

namespace greta::selftest {

namespace {

constexpr float kKeyEpsilon = 1e-6f, kHeadEpsilon = 1e-5f;

struct GatedScan {
  uint32_t heads, groups, key_width, value_width, conv_width;
  bool tiled, biased;
  uint32_t gap;  // between states
  uint32_t keys() const { return groups * key_width; }
  uint32_t values() const { return heads * value_width; }
  uint32_t channels() const { return 2 * keys() + values(); }
  uint32_t conv_state() const { return uint32_t(conv_state_values(channels(), conv_width)); }
  uint32_t state() const { return conv_state() + uint32_t(scan_state_values(heads, key_width, value_width)); }
};
constexpr GatedScan kGatedScans[] = {{4, 2, 128, 128, 4, false, true, 0}, {6, 3, 64, 64, 4, true, true, 4},
                                     {3, 3, 32, 32, 3, false, false, 0},  {6, 1, 16, 16, 2, true, true, 8},
                                     {2, 1, 128, 256, 4, false, true, 0}, {4, 4, 64, 128, 8, true, false, 0}};

Slice from_float(const Slice& slice, uint64_t first) {
  return {slice.buffer, slice.offset + first * sizeof(float), slice.bytes - first * sizeof(float)};
}

struct GatedScanCase {
  Rig& rig;
  GatedScan shape;
  Live live;
  Runs runs;
  States states;
  std::vector<float> x, weight, dt, strength, a, dt_bias, gain, gate;
  std::vector<Call> calls;
  Slice y, counters;

  GatedScanCase(Rig& rig, const GatedScan& shape, const Live& live, Spread spread, Random& random)
      : rig(rig),
        shape(shape),
        live(live),
        runs(live.tokens, spread),
        states(runs, shape.state(), shape.gap, random),
        x(gaussians(size_t(live.tokens) * shape.channels(), random)),
        weight(gaussians(size_t(shape.channels()) * shape.conv_width, random)),
        dt(gaussians(size_t(live.tokens) * shape.heads, random, 3)),
        strength(gaussians(dt.size(), random, 2)),
        gain(gaussians(shape.value_width, random)),
        gate(gaussians(size_t(live.tokens) * shape.values(), random, 2)) {
    for (uint32_t i = 0; i < shape.heads; ++i) a.push_back(-std::exp(gaussians(1, random)[0]) * 0.3f);
    if (shape.biased) dt_bias = gaussians(shape.heads, random);
    make_calls();
  }

  Slice put_live(const std::vector<float>& values, uint32_t width) {
    return rig.put_padded(values, uint64_t(live.bucket) * width);
  }

  void make_calls() {
    const CallMaker make{runs.steps.put(rig)};
    const uint32_t values = shape.values(), keys = shape.keys(), channels = shape.channels();
    const Slice convolved = rig.room(uint64_t(live.bucket) * channels * 4), step_runs = runs.put(rig);
    y = rig.room(uint64_t(live.bucket) * values * 4);
    counters = rig.put(std::vector<uint32_t>(size_t(live.bucket) * shape.groups));
    Tensor w;
    w.n = channels;
    w.depth = shape.conv_width;
    w.slice = rig.put(weight);
    Call conv = make.conv1d(put_live(x, channels), w, {}, true, convolved, {}, step_runs);
    conv.conv1d.state_stride = states.stride;
    Call::Scan scan{uint32_t(kScanDelta | (shape.tiled ? kScanTiled : 0)), shape.heads, shape.groups,
                    shape.key_width, shape.value_width};
    scan.key_stride = scan.value_stride = channels;
    scan.state_stride = states.stride;
    scan.epsilon = kKeyEpsilon;
    Call scanned = make.scan(
        {convolved, from_float(convolved, keys), from_float(convolved, 2 * keys), put_live(dt, shape.heads),
         put_live(strength, shape.heads), rig.put(a), shape.biased ? rig.put(dt_bias) : Slice{}},
        scan, y, {}, step_runs);
    scanned.slot[kCounters] = counters;
    calls = {conv, scanned, make.norm(put_vector(rig, gain), y, y, kHeadEpsilon, shape.heads),
             make.gate(put_live(gate, values), y, y, values, kActivationSilu)};
  }

  // What the rows of a run give, and the run's state behind them.
  Values expected(uint32_t r, Values* state) const {
    const StepRun& run = runs.runs.run[r];
    const auto part = [&](const std::vector<float>& all, uint32_t width) {
      return to_values(rows_from(all, width, run));
    };
    const auto middle = state->begin() + shape.conv_state();
    Values conv_state(state->begin(), middle), scan_state(middle, state->end());
    const Values convolved = reference::conv1d(part(x, shape.channels()), to_values(weight), {},
                                               shape.conv_width, true, &conv_state);
    reference::ScanRows rows;
    for (uint32_t t = 0; t < run.count; ++t) {
      const auto row = convolved.begin() + ptrdiff_t(t * shape.channels()), keys = row + shape.keys();
      rows.query.insert(rows.query.end(), row, keys);
      rows.key.insert(rows.key.end(), keys, keys + shape.keys());
      rows.value.insert(rows.value.end(), keys + shape.keys(), row + shape.channels());
    }
    rows.dt = part(dt, shape.heads);
    rows.strength = part(strength, shape.heads);
    rows.a = to_values(a);
    rows.dt_bias = to_values(dt_bias);
    const Values scanned =
        reference::scan(rows,
                        {reference::ScanForm::Delta, shape.heads, shape.groups, shape.key_width,
                         shape.value_width, shape.tiled, double(kKeyEpsilon)},
                        &scan_state);
    state->assign(conv_state.begin(), conv_state.end());
    state->insert(state->end(), scan_state.begin(), scan_state.end());
    return reference::gate(part(gate, shape.values()),
                           reference::norm(scanned, to_values(gain), double(kHeadEpsilon)),
                           reference::Activation::Silu);
  }

  void check(std::optional<Form> form) {
    const uint32_t width = shape.values();
    Values all, after;
    for (uint32_t r = 0; r < runs.runs.count; ++r) {
      Values state = states.of(runs, r);
      const Values of_run = expected(r, &state);
      all.insert(all.end(), of_run.begin(), of_run.end());
      after.insert(after.end(), state.begin(), state.end());
    }
    std::vector<Call> sequence = calls;
    Slice rounded;
    if (form) {
      rounded = rig.room(live.bucket * form_row_bytes(*form, width));
      sequence.push_back(CallMaker{calls[0].slot[kStep]}.convert(y, rounded, *form, width));
    }
    for (const KernelRow* row : rig.rows(sequence, live.bucket)) {
      sequence[0].slot[kPool] = rig.put(states.before);
      sequence[1].slot[kPool] = from_float(sequence[0].slot[kPool], shape.conv_state());
      rig.poison(y);
      if (form) rig.poison(rounded);
      rig.run(sequence, *row, live.bucket);
      const std::vector<float> made = rig.get<float>(y);
      require_close(made, all, 1e-10, row->name);
      states.require(runs, rig.get<float>(sequence[0].slot[kPool]), after, 1e-11, row->name);
      if (form == Form::F16)
        expect_halves(*row, made, rig.get<uint8_t>(rounded), size_t(live.tokens) * width);
      if (form == Form::Q8X16) expect_rounded(*row, made, rig.get<uint8_t>(rounded), width, {}, live.tokens);
      for (const uint32_t counter : rig.get<uint32_t>(counters))
        expect(counter == 0, std::string(row->name) + ": a counter is not 0 afterwards");
    }
  }
};

}  // namespace

void check_gated_scan(Rig& rig) {
  Random random(36);
  for (const Live& live : live_rows(rig))
    for (const GatedScan& shape : kGatedScans)
      for (const Spread spread : {Spread::Mixed, Spread::Each}) {
        GatedScanCase c(rig, shape, live, spread, random);
        c.check({});
        c.check(Form::F16);
        c.check(Form::Q8X16);
        rig.reset();
      }
}

}  // namespace greta::selftest
