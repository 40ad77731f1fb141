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

}  // namespace greta::test
