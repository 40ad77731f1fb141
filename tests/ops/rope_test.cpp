#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <cmath>

#include "support/row_ops.h"

namespace greta::test {

using Catch::Generators::from_range;

TEST_CASE("rope: every row agrees with float64", "[ops]") {
  OpRig rig(GENERATE(from_range(kRigDevices)));
  Random random(1);
  struct Shape {
    uint32_t heads, head_width, rope_width;
  };
  for (const Live& live : live_rows(rig))
    for (const Shape& shape : {Shape{1, 2, 2}, Shape{3, 64, 64}, Shape{4, 48, 20}})
      for (const uint32_t halves : {0u, 1u}) {
        const uint32_t width = shape.heads * shape.head_width, context = 300;
        StepRows steps;
        Ids positions;
        for (uint32_t t = 0; t < live.tokens; ++t) {
          positions.push_back((t * 37 + 250) % context);
          steps.add(t, t % 3, positions.back());
        }
        std::vector<float> table;
        for (uint32_t i = 0; i < context * shape.rope_width / 2; ++i) {
          table.push_back(float(std::cos(i * 0.7)));
          table.push_back(float(std::sin(i * 0.7)));
        }
        const auto x = gaussians(size_t(live.tokens) * width, random);
        const Slice step = steps.put(rig), cosines = rig.put(table);
        Call call = row_call(Op::Rope, {}, {}, step);
        call.slot[kTable] = cosines;
        call.heads = shape.heads;
        call.width = shape.head_width;
        call.rope_width = shape.rope_width;
        call.rope_halves = halves;
        const Values expected =
            reference::rope(to_values(x), positions, to_values(table),
                            {shape.heads, shape.head_width, shape.rope_width, halves == 1});
        for (const KernelRow* row : rig.rows({&call, 1}, live.bucket)) {
          std::vector<float> rows = x;
          rows.resize(live.bucket * width, 7.f);  // not live: must stay
          call.slot[kX] = call.slot[kY] = rig.put(rows);
          rig.run({&call, 1}, *row, live.bucket);
          std::vector<float> y = rig.get<float>(call.slot[kX]);
          REQUIRE(std::equal(y.begin() + ptrdiff_t(x.size()), y.end(), rows.begin() + ptrdiff_t(x.size())));
          y.resize(x.size());
          require_close(y, expected, 1e-13, row->name);
        }
        rig.reset();
      }
  rig.require_all_run(Op::Rope);
}

TEST_CASE("rope: turns a part of each head into a part of wider heads", "[ops]") {
  OpRig rig(GENERATE(from_range(kRigDevices)));
  Random random(2);
  const uint32_t heads = 3, rope_width = 8, x_stride = 24, y_stride = 40, tokens = 7;
  StepRows steps;
  Ids positions;
  for (uint32_t t = 0; t < tokens; ++t) positions.push_back(t * 5), steps.add(t, 0, t * 5);
  std::vector<float> table;
  for (uint32_t i = 0; i < 64 * rope_width / 2; ++i) {
    table.push_back(float(std::cos(i * 0.7)));
    table.push_back(float(std::sin(i * 0.7)));
  }
  const auto x = gaussians(size_t(tokens) * heads * x_stride, random);
  const Values turned = reference::rope(to_values(x), positions, to_values(table), {heads, x_stride, rope_width, false});
  Values expected(size_t(tokens) * heads * y_stride, 7);
  for (size_t head = 0; head < size_t(tokens) * heads; ++head)
    for (uint32_t i = 0; i < rope_width; ++i) expected[head * y_stride + i] = turned[head * x_stride + i];
  Call call = row_call(Op::Rope, rig.put_padded(x, 8 * heads * x_stride), {}, steps.put(rig));
  call.slot[kTable] = rig.put(table);
  call.heads = heads;
  call.width = x_stride;
  call.rope_width = rope_width;
  call.x_stride = x_stride;
  call.y_stride = y_stride;
  for (const KernelRow* row : rig.rows({&call, 1}, 8)) {
    call.slot[kY] = rig.put(std::vector<float>(size_t(8) * heads * y_stride, 7.f));
    rig.run({&call, 1}, *row, 8);
    auto y = rig.get<float>(call.slot[kY]);
    y.resize(expected.size());
    require_close(y, expected, 1e-13, row->name);
  }
}

}  // namespace greta::test
