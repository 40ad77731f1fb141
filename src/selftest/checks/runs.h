// Steps whose rows belong to several sequences with states, for the checks of conv1d and scan.
#pragma once
#include <algorithm>

#include "selftest/checks/rows.h"

namespace greta::selftest {

constexpr float kGap = -12345.f;  // what lies between states, and must stay

// How a step's rows are spread over sequences: a long run, one row and a shorter run; or each row by itself.
enum class Spread { Mixed, Each };

struct Runs {
  StepRows steps{80, 4};
  StepRuns runs = {};

  explicit Runs(uint32_t tokens, Spread spread) {
    if (spread == Spread::Each || tokens < 4) {
      for (uint32_t t = 0; t < tokens; ++t) add(1, t % 2 ? 0 : 3 + t % 5);
    } else {
      add(tokens - tokens / 3 - 1, 5);
      add(1, 0);
      add(tokens / 3, 0);
    }
  }
  Runs(uint32_t tokens, uint32_t position) { add(tokens, position); }  // one run

  // States are given out backwards, and the first two are nobody's.
  void add(uint32_t count, uint32_t position) {
    const uint32_t r = runs.count++;
    runs.run[r] = {uint32_t(steps.rows.size()), count, 0};
    for (uint32_t i = 0; i < count; ++i) {
      runs.run_of[steps.rows.size()] = r;
      steps.add(i, r, position + i);
    }
    for (uint32_t i = 0; i < runs.count; ++i) runs.run[i].state = runs.count + 1 - i;
  }
  uint32_t states() const { return runs.count + 2; }
  bool begins(uint32_t r) const { return steps.rows[runs.run[r].first].position == 0; }
  Slice put(Rig& rig) const {
    StepRuns padded;
    std::fill_n(reinterpret_cast<uint32_t*>(&padded), sizeof padded / 4, ~0u);
    padded.count = runs.count;
    std::copy_n(runs.run, runs.count, padded.run);
    std::copy_n(runs.run_of, steps.rows.size(), padded.run_of);
    return rig.put(&padded, sizeof padded);
  }
};

// The states of a step's sequences before it: random, but NaN where a sequence begins, and a gap behind each.
struct States {
  uint32_t values, stride;
  std::vector<float> before;

  States(const Runs& runs, uint32_t values, uint32_t gap, Random& random)
      : values(values), stride(values + gap), before(gaussians(size_t(runs.states()) * stride, random)) {
    for (uint32_t s = 0; s < runs.states(); ++s)
      std::fill_n(before.begin() + ptrdiff_t(s * stride + values), gap, kGap);
    for (uint32_t r = 0; r < runs.runs.count; ++r)
      if (runs.begins(r)) std::fill_n(before.begin() + ptrdiff_t(at(runs, r)), values, __builtin_nanf(""));
  }
  size_t at(const Runs& runs, uint32_t r) const { return size_t(runs.runs.run[r].state) * stride; }
  Values of(const Runs& runs, uint32_t r) const {
    if (runs.begins(r)) return Values(values, 0.0);
    const auto from = before.begin() + ptrdiff_t(at(runs, r));
    return Values(from, from + values);
  }
  // Fails unless the states of the runs are these, one behind the other, and all else is as before.
  void require(const Runs& runs, const std::vector<float>& after, const Values& expected, double limit,
               const std::string& what) const {
    std::vector<float> own, others = after, before_of_others = before;
    for (uint32_t r = 0; r < runs.runs.count; ++r) {
      const auto offset = ptrdiff_t(at(runs, r));
      own.insert(own.end(), after.begin() + offset, after.begin() + offset + values);
      std::fill_n(others.begin() + offset, values, 0.f);
      std::fill_n(before_of_others.begin() + offset, values, 0.f);
    }
    require_close(own, expected, limit, what + ", its states");
    expect(others == before_of_others, what + ": it wrote where it has no state");
  }
};

// Rows of `width` values that begin `stride` values apart. What lies between them is NaN, as are rows that
// are not live.
inline Slice put_rows(Rig& rig, const std::vector<float>& x, uint32_t width, uint32_t stride,
                      uint32_t bucket) {
  std::vector<float> all(size_t(bucket) * stride, __builtin_nanf(""));
  for (size_t t = 0; t * width < x.size(); ++t)
    std::copy_n(x.begin() + ptrdiff_t(t * width), width, all.begin() + ptrdiff_t(t * stride));
  return rig.put(all);
}

// Rows first .. first + count - 1 of `width` values.
inline std::vector<float> rows_from(const std::vector<float>& x, uint32_t width, const StepRun& run) {
  const auto from = x.begin() + ptrdiff_t(size_t(run.first) * width);
  return {from, from + ptrdiff_t(size_t(run.count) * width)};
}

}  // namespace greta::selftest
