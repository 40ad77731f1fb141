// Checks the three forms of scan against float64: heads of odd sizes, groups, more value heads than key
// heads, steps of several sequences, what is not finite, and that a text can be cut anywhere.
#include "selftest/checks/checks.h"
#include "selftest/checks/runs.h"
#include "selftest/checks/sequences.h"

namespace greta::selftest {

namespace {

constexpr double kScanLimit = 1e-11;

struct ScanShape {
  uint32_t form, heads, groups, key_width, value_width;
  float epsilon;
  bool biased;   // dt_bias, and skip where the form has it
  uint32_t gap;  // between rows, and between states
  uint32_t plain_form() const { return scan_form(form); }
  uint32_t columns() const { return heads * value_width; }
  uint32_t a_values() const { return plain_form() == kScanSelective ? heads * key_width : heads; }
};
constexpr ScanShape kScanShapes[] = {
    {kScanDelta, 4, 2, 128, 128, 1e-6f, true, 0},  // more value heads than key heads
    {kScanDelta | kScanTiled, 6, 3, 33, 17, 1e-6f, true, 5},
    {kScanDelta, 1, 1, 1, 1, 1e-6f, false, 0},
    {kScanDelta, 3, 3, 256, 32, 1e-6f, false, 1},
    {kScanDelta | kScanTiled, 5, 1, 64, 7, 1e-6f, true, 0},
    {kScanGroups, 6, 2, 128, 64, -1, true, 0},
    {kScanGroups, 3, 1, 24, 5, -1, false, 3},
    {kScanGroups, 4, 4, 64, 96, -1, false, 1},
    {kScanSelective, 70, 1, 16, 1, -1, true, 0},
    {kScanSelective, 33, 1, 5, 1, -1, false, 2},
};

struct ScanCase {
  ScanShape shape;
  uint32_t tokens;
  // Rows have queries, then keys; dt has a row of its own, and so have strengths.
  std::vector<float> query, key, value, dt, with_value, a, dt_bias;

  ScanCase(const ScanShape& shape, uint32_t tokens, Random& random) : shape(shape), tokens(tokens) {
    const size_t keys = size_t(tokens) * shape.groups * shape.key_width;
    const bool delta = shape.plain_form() == kScanDelta;
    query = gaussians(keys, random);
    key = gaussians(keys, random);
    value = gaussians(size_t(tokens) * shape.columns(), random);
    dt = gaussians(size_t(tokens) * shape.heads, random, 3);
    dt[0] = -60, dt.back() = 40;
    if (delta)
      with_value = gaussians(dt.size(), random, 2);
    else if (shape.biased)
      with_value = gaussians(shape.heads, random);
    for (uint32_t i = 0; i < shape.a_values(); ++i) a.push_back(-std::exp(gaussians(1, random)[0]) * 0.3f);
    if (shape.biased) dt_bias = gaussians(shape.heads, random);
  }
  uint32_t state_values() const {
    return uint32_t(scan_state_values(shape.heads, shape.key_width, shape.value_width));
  }

  Call call(Rig& rig, const Runs& runs, const States& states, uint32_t bucket) const {
    const uint32_t width = shape.groups * shape.key_width, stride = 2 * width + shape.gap;
    std::vector<float> both;
    for (size_t t = 0; t < tokens; ++t)
      for (const std::vector<float>* half : {&query, &key})
        both.insert(both.end(), half->begin() + ptrdiff_t(t * width),
                    half->begin() + ptrdiff_t((t + 1) * width));
    const Slice rows = put_rows(rig, both, 2 * width, stride, bucket);
    ScanInputs from;
    from.query = rows;
    from.key = {rows.buffer, rows.offset + width * sizeof(float), rows.bytes - width * sizeof(float)};
    from.value = put_rows(rig, value, shape.columns(), shape.columns() + shape.gap, bucket);
    const auto put_dt = [&](const std::vector<float>& x) {
      return put_rows(rig, x, shape.heads, shape.heads + shape.gap, bucket);
    };
    from.dt = put_dt(dt);
    if (shape.plain_form() == kScanDelta)
      from.strength_or_skip = put_dt(with_value);
    else if (shape.biased)
      from.strength_or_skip = rig.put(with_value);
    from.a = rig.put(a);
    if (shape.biased) from.dt_bias = rig.put(dt_bias);
    Call::Scan scan;
    scan.form = shape.form;
    scan.heads = shape.heads;
    scan.groups = shape.groups;
    scan.key_width = shape.key_width;
    scan.value_width = shape.value_width;
    scan.key_stride = stride;
    scan.value_stride = shape.columns() + shape.gap;
    scan.dt_stride = shape.heads + shape.gap;
    scan.state_stride = states.stride;
    scan.epsilon = shape.epsilon;
    return CallMaker{runs.steps.put(rig)}.scan(from, scan, rig.room(uint64_t(bucket) * shape.columns() * 4),
                                               {}, runs.put(rig));
  }
  // Runs a row on the states as they are before, which it changes.
  std::vector<float> run(Rig& rig, Call& call, const States& states, const KernelRow& row,
                         uint32_t bucket) const {
    call.slot[kPool] = rig.put(states.before);
    rig.poison(call.slot[kY]);
    rig.run({&call, 1}, row, bucket);
    return rig.get<float>(call.slot[kY]);
  }
  Values expected(const StepRun& run, Values* state) const {
    const uint32_t width = shape.groups * shape.key_width;
    const bool delta = shape.plain_form() == kScanDelta;
    const auto part = [&](const std::vector<float>& x, uint32_t of_row) {
      return to_values(rows_from(x, of_row, run));
    };
    const reference::Scan what = {reference::ScanForm(shape.plain_form()),
                                  shape.heads,
                                  shape.groups,
                                  shape.key_width,
                                  shape.value_width,
                                  (shape.form & kScanTiled) != 0,
                                  double(shape.epsilon)};
    return reference::scan({part(query, width), part(key, width), part(value, shape.columns()),
                            part(dt, shape.heads), delta ? part(with_value, shape.heads) : Values{},
                            to_values(a), to_values(dt_bias), delta ? Values{} : to_values(with_value)},
                           what, state);
  }
};

void check_case(Rig& rig, const ScanShape& shape, const Live& live, Spread spread, Random& random) {
  const Runs runs(live.tokens, spread);
  const ScanCase c(shape, live.tokens, random);
  const States states(runs, c.state_values(), shape.gap, random);
  Values expected, after;
  for (uint32_t r = 0; r < runs.runs.count; ++r) {
    Values state = states.of(runs, r);
    const Values y = c.expected(runs.runs.run[r], &state);
    expected.insert(expected.end(), y.begin(), y.end());
    after.insert(after.end(), state.begin(), state.end());
  }
  Call call = c.call(rig, runs, states, live.bucket);
  for (const KernelRow* row : rig.rows({&call, 1}, live.bucket)) {
    require_close(c.run(rig, call, states, *row, live.bucket), expected, kScanLimit, row->name);
    states.require(runs, rig.get<float>(call.slot[kPool]), after, kScanLimit, row->name);
  }
  rig.reset();
}

// Which results tell of a value that is not finite: all of that token and later ones in these columns.
struct Told {
  uint32_t first, count;
};

void check_told(Rig& rig, const ScanCase& c, uint32_t at, const Told& told, Random& random) {
  const Runs runs(c.tokens, uint32_t(5));
  const States states(runs, c.state_values(), 0, random);
  const uint32_t bucket = c.tokens <= 8 ? 8 : 128, columns = c.shape.columns();
  Call call = c.call(rig, runs, states, bucket);
  for (const KernelRow* row : rig.rows({&call, 1}, bucket)) {
    const std::vector<float> y = c.run(rig, call, states, *row, bucket);
    const std::string what = std::string(row->name) + " of what is not finite";
    require_finite(y, 0, size_t(at) * columns, what);
    for (size_t t = at; t < c.tokens; ++t) {
      require_finite(y, t * columns, told.first, what);
      require_not_finite(y, t * columns + told.first, told.count, what);
      require_finite(y, t * columns + told.first + told.count, columns - told.first - told.count, what);
    }
  }
  rig.reset();
}

constexpr ScanShape kNotFiniteScans[] = {{kScanDelta, 4, 2, 64, 32, 1e-6f, true, 0},
                                         {kScanGroups, 4, 2, 64, 32, -1, true, 0},
                                         {kScanSelective, 20, 1, 16, 1, -1, true, 0}};

}  // namespace

void check_scan(Rig& rig) {
  Random random(33);
  for (const Live& live : live_rows(rig, 5, 5))  // 128 rows have a kernel of their own
    for (const ScanShape& shape : kScanShapes)
      for (const Spread spread : {Spread::Mixed, Spread::Each}) check_case(rig, shape, live, spread, random);
  check_gated_scan(rig);
  rig.require_all_run(Op::Scan);
}

void check_scan_of_not_finite(Rig& rig) {
  Random random(34);
  for (const ScanShape& shape : kNotFiniteScans)
    for (const uint32_t tokens : {7u, 100u})
      for (const float value : kNotFinite) {
        const uint32_t at = tokens - 5, head = shape.heads - 2, of_head = head * shape.value_width;
        const ScanCase finite(shape, tokens, random);
        ScanCase c = finite;
        c.value[size_t(at) * shape.columns() + of_head] = value;
        check_told(rig, c, at, {of_head, 1}, random);
        c = finite;
        c.dt[size_t(at) * shape.heads + head] = value;
        check_told(rig, c, at, {of_head, shape.value_width}, random);
        if (shape.plain_form() == kScanDelta) {
          c = finite;
          c.with_value[size_t(at) * shape.heads + head] = value;
          check_told(rig, c, at, {of_head, shape.value_width}, random);
        }
        c = finite;  // a key of the last group, which several heads share
        c.key[(size_t(at) * shape.groups + shape.groups - 1) * shape.key_width + 3] = value;
        const uint32_t share = shape.columns() / shape.groups;
        check_told(rig, c, at, {shape.columns() - share, share}, random);
      }
}

// Plain rows give the same bits however a text is cut into steps.
void check_scan_cuts(Rig& rig) {
  Random random(35);
  constexpr uint32_t kTokens = 9;
  for (const ScanShape& shape : kNotFiniteScans) {
    const ScanCase whole(shape, kTokens, random);
    const Runs all(kTokens, uint32_t(0));
    const States states(all, whole.state_values(), 0, random);
    Call call = whole.call(rig, all, states, 16);
    const KernelRow* row = rig.plain_row({&call, 1}, 16);
    if (!row || !rig.takes(*row)) return;
    std::vector<float> y = whole.run(rig, call, states, *row, 16);
    y.resize(kTokens * shape.columns());
    const std::vector<float> after = rig.get<float>(call.slot[kPool]);
    for (const uint32_t piece : {1u, 2u, 4u}) {
      std::vector<float> pieces;
      States at = states;
      for (uint32_t first = 0; first < kTokens; first += piece) {
        const uint32_t count = std::min(piece, kTokens - first);
        const StepRun cut = {first, count, 0};
        ScanCase part = whole;
        part.tokens = count;
        const uint32_t keys = shape.groups * shape.key_width;
        part.query = rows_from(whole.query, keys, cut), part.key = rows_from(whole.key, keys, cut);
        part.value = rows_from(whole.value, shape.columns(), cut);
        part.dt = rows_from(whole.dt, shape.heads, cut);
        if (shape.plain_form() == kScanDelta) part.with_value = rows_from(whole.with_value, shape.heads, cut);
        const Runs runs(count, first);
        Call of_part = part.call(rig, runs, at, 4);
        std::vector<float> made = part.run(rig, of_part, at, *rig.plain_row({&of_part, 1}, 4), 4);
        pieces.insert(pieces.end(), made.begin(), made.begin() + ptrdiff_t(count * shape.columns()));
        at.before = rig.get<float>(of_part.slot[kPool]);
      }
      expect(pieces == y, std::string(row->name) + ": other bits if a text is cut");
      expect(
          std::equal(after.end() - whole.state_values(), after.end(), at.before.end() - whole.state_values()),
          std::string(row->name) + ": another state if a text is cut");
    }
    rig.reset();
  }
}

}  // namespace greta::selftest
