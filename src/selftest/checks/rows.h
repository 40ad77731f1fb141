// Calls and live rows for checks of ops that work row by row.
#pragma once
#include <algorithm>
#include <cmath>

#include "selftest/rig.h"

namespace greta::selftest {

// A bucket, and how many of its rows are live.
struct Live {
  uint32_t bucket, tokens;
};
constexpr Live kLive[] = {{8, 7}, {32, 32}, {1, 1}, {2, 1}, {128, 77}};

// The first `count` of kLive, or the first `checked` on a checked device.
inline std::span<const Live> live_rows(const Rig& rig, size_t count = 5, size_t checked = 1) {
  return std::span<const Live>(kLive).first(rig.checked() ? checked : count);
}

// Over what queries and keys are normalised.
enum class Normed { Not, EachHead, AllHeads };

// A table of rotations: [context][rope_width / 2][cosine, sine].
inline std::vector<float> turns(uint32_t context, uint32_t rope_width) {
  std::vector<float> table;
  for (uint32_t i = 0; i < context * rope_width / 2; ++i) {
    table.push_back(float(std::cos(i * 0.7)));
    table.push_back(float(std::sin(i * 0.7)));
  }
  return table;
}

// Runs every row that covers the call, and compares each result with the reference.
inline void check_rows(Rig& rig, const Call& call, uint32_t bucket, const Values& expected, double limit) {
  const std::vector<const KernelRow*> rows = rig.rows({&call, 1}, bucket);
  for (const KernelRow* row : rows) {
    rig.poison(call.slot[kY]);
    rig.run({&call, 1}, *row, bucket);
    require_close(rig.get<float>(call.slot[kY]), expected, limit, row->name);
  }
}

// The `count` matrix rows of a tensor from `first` on, or matrices if it has several. In the packed layout
// both numbers are multiples of kPackRows.
inline Tensor part_of(const Tensor& whole, uint32_t first, uint32_t count) {
  const auto bytes = [&](uint32_t some) {
    return whole.count == 1 ? tensor_bytes(whole.type, whole.layout, some, whole.depth, 1)
                            : tensor_bytes(whole.type, whole.layout, whole.n, whole.depth, some);
  };
  Tensor part = whole;
  (whole.count == 1 ? part.n : part.count) = count;
  part.slice = {whole.slice.buffer, whole.slice.offset + bytes(first), bytes(count)};
  return part;
}

// Runs a call once for each of two parts of its weight. The first has `count` matrix rows or matrices.
inline void run_in_parts(Rig& rig, const Call& call, uint32_t count, const KernelRow& row, uint32_t bucket) {
  const uint32_t all = call.weight.count == 1 ? call.weight.n : call.weight.count;
  Call part = call;
  part.weight = part_of(call.weight, 0, count);
  rig.run({&part, 1}, row, bucket);
  part.weight = part_of(call.weight, count, all - count);
  (call.op == Op::Embed ? part.embed.first : part.matmul_expert.first) = count;
  rig.run({&part, 1}, row, bucket);
}

// Rows of `width` values in the format q8x16. Rows of the bucket that are not live are 0xff.
inline std::vector<uint8_t> q8x16_rows(const std::vector<float>& x, uint32_t width, const Values& gain,
                                       uint32_t bucket) {
  std::vector<uint8_t> all;
  for (auto row = x.begin(); row != x.end(); row += width) {
    const std::vector<uint8_t> form = reference::convert_q8x16({row, row + width}, gain);
    all.insert(all.end(), form.begin(), form.end());
  }
  all.resize(size_t(bucket) * form_row_bytes(Form::Q8X16, width), 0xff);
  return all;
}

// Fails unless the rows in the format q8x16 hold the values of y from the same launch, and rows that are not
// live are still poisoned.
inline void expect_rounded(const KernelRow& row, const std::vector<float>& y,
                           const std::vector<uint8_t>& rounded, uint32_t width, const Values& gain,
                           size_t tokens) {
  const size_t bytes = form_row_bytes(Form::Q8X16, width);
  for (size_t t = 0; t < tokens; ++t) {
    const auto from = y.begin() + ptrdiff_t(t * width);
    const std::string wrong = reference::wrong_q8x16(&rounded[t * bytes], {from, from + width}, gain);
    expect(wrong.empty(), row.name + (": " + wrong) + " of the rounded result is wrong");
  }
  expect(std::all_of(rounded.begin() + ptrdiff_t(tokens * bytes), rounded.end(),
                     [](uint8_t b) { return b == 0xff; }),
         std::string(row.name) + ": a rounded row that is not live was written");
}

// Runs the kernel rows that also give y in an activation format, and calls check(row, y, y in the format).
template <class Check>
void run_with_form(Rig& rig, const Call& call, Form form, const Live& live, uint32_t width,
                   const Check& check) {
  const Call convert = CallMaker{call.slot[kStep]}.convert(
      call.slot[kY], rig.room(live.bucket * form_row_bytes(form, width)), form, width);
  const Call calls[] = {call, convert};
  for (const KernelRow* row : rig.rows(calls, live.bucket)) {
    rig.poison(call.slot[kY]);
    rig.poison(convert.slot[kY]);
    rig.run(calls, *row, live.bucket);
    check(*row, rig.get<float>(call.slot[kY]), rig.get<uint8_t>(convert.slot[kY]));
  }
}

// Fails unless the float16 values are the first `count` of y, rounded, and then poison.
inline void expect_halves(const KernelRow& row, std::vector<float> y, const std::vector<uint8_t>& halves,
                          size_t count) {
  y.resize(count);
  std::vector<uint8_t> expected = reference::half_bytes(to_values(y));
  expected.resize(halves.size(), 0xff);
  expect(halves == expected, std::string(row.name) + ": the float16 values are not those of y");
}

// Checks kernel rows that also give y as float16, which must be y rounded.
inline void check_halves(Rig& rig, const Call& call, const Live& live, uint32_t width) {
  run_with_form(rig, call, Form::F16, live, width,
                [&](const KernelRow& row, const std::vector<float>& y, const std::vector<uint8_t>& halves) {
                  expect_halves(row, y, halves, size_t(live.tokens) * width);
                });
}

// Fails unless repeats of a launch give the same bits of y. The calls must not change their input.
inline void check_repeats(Rig& rig, std::span<const Call> calls, const KernelRow& row, uint32_t bucket,
                          const Slice& y, int repeats = 100) {
  rig.run(calls, row, bucket);
  const auto first = rig.get<uint8_t>(y);
  for (int i = 0; i < repeats; ++i) {
    rig.run(calls, row, bucket);
    expect(rig.get<uint8_t>(y) == first, std::string(row.name) + ": a repeat gave other bits");
  }
}

inline void check_repeats(Rig& rig, const Call& call, uint32_t bucket) {
  if (!rig.repeats()) return;
  for (const KernelRow* row : rig.rows({&call, 1}, bucket))
    check_repeats(rig, {&call, 1}, *row, bucket, call.slot[kY]);
}

}  // namespace greta::selftest
