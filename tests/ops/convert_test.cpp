// convert: activations to the q8 form byte for byte, and packed weights that decode to the same values.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>

#include "support/row_ops.h"

namespace greta::test {

using Catch::Generators::from_range;

TEST_CASE("convert: every row gives the q8 form byte for byte", "[ops]") {
  OpRig rig(GENERATE(from_range(kRigDevices)));
  Random random(1);
  for (const Live& live : live_rows(rig))
    for (const uint32_t depth : {32u, 96u, 256u, 4096u})
      for (const bool gather : {false, true}) {
        StepRows steps;
        for (uint32_t t = 0; t < live.tokens; ++t) steps.add(t, 0, t, t % 2 == 0);
        auto x = with_outliers(size_t(live.tokens) * depth, random);
        for (uint32_t i = 0; i < 32; ++i) x[i] = 0;
        if (depth > 32)
          for (uint32_t i = 0; i < 32; ++i) x[32 + i] *= 1e-36f;  // a scale near the smallest
        const uint64_t row_bytes = q8_row_bytes(uint64_t(depth));
        Call call = row_call(Op::Convert, rig.put_padded(x, live.bucket * depth),
                             rig.room(live.bucket * row_bytes), steps.put(rig));
        call.form = Form::Q8;
        call.width = depth;
        if (gather) call.rows_of = kRowsGather;
        for (const KernelRow* row : rig.rows({&call, 1}, live.bucket)) {
          rig.poison(call.slot[kY]);
          rig.run({&call, 1}, *row, live.bucket);
          const auto y = rig.get<uint8_t>(call.slot[kY]);
          for (uint32_t t = 0, at = 0; t < live.tokens; t += gather ? 2 : 1, at += uint32_t(row_bytes)) {
            const auto expected =
                reference::convert_q8({&x[size_t(t) * depth], &x[size_t(t) * depth] + depth});
            // The planes; what lies between them is nobody's.
            const uint32_t scales = depth / 32 * 4, sums = depth / 16 * 2;
            const auto same = [&](uint32_t from, uint32_t count) {
              return std::equal(&expected[from], &expected[from] + count, &y[at + from]);
            };
            INFO(row->name << " depth " << depth << " row " << t);
            REQUIRE(same(0, depth));
            REQUIRE(same(q8_scales_at(depth), scales));
            REQUIRE(same(q8_sums_at(depth), sums));
          }
        }
        rig.reset();
      }
  for (const Stored& stored : stored_types(rig, Op::Convert)) {
    if (stored.layout != Layout::Packed) continue;
    const Matrix matrix = random_matrix(stored.type, 21, 256, 1, Scales::Extreme, random);
    put_matrix(rig, matrix, Layout::Packed);
  }
  rig.require_all_run(Op::Convert);
}

TEST_CASE("convert: packed weights hold the same values, in pieces or at once", "[ops]") {
  OpRig rig;
  Random random(2);
  for (const Stored& stored : stored_types(rig, Op::Embed)) {
    if (stored.layout != Layout::Packed) continue;
    const uint32_t n = 45, width = 256;
    const Matrix matrix = random_matrix(stored.type, n, width, 1, Scales::Extreme, random);
    const Tensor whole = put_matrix(rig, matrix, Layout::Packed);
    StepRows steps;
    Ids tokens;
    for (uint32_t t = 0; t < n; ++t) steps.add(t, 0, t), tokens.push_back(t);
    Call call = row_call(Op::Embed, {}, rig.room(128 * width * 4), steps.put(rig));
    call.weight = whole;
    check_rows(rig, call, 128, reference::embed(matrix.values, width, tokens, 1), 0);

    // 32 rows, then the rest: how a store uploads in chunks of whole tiles.
    const Tensor pieces = [&] {
      Tensor tensor = whole;
      tensor.slice = rig.room(whole.slice.bytes);
      const Slice source = rig.put(matrix.bytes);
      for (uint32_t first = 0; first < n; first += 2 * kPackRows) {
        const uint32_t rows = std::min(n - first, 2 * kPackRows);
        Call pack;
        pack.op = Op::Convert;
        pack.weight = tensor;
        pack.weight.n = rows;
        const uint64_t from = quant_bytes(stored.type, uint64_t(first) * width);
        const uint64_t to = tensor_bytes(stored.type, Layout::Packed, first, width, 1);
        pack.weight.slice = {tensor.slice.buffer, tensor.slice.offset + to,
                             tensor_bytes(stored.type, Layout::Packed, rows, width, 1)};
        pack.slot[kX] = {source.buffer, source.offset + from,
                         quant_bytes(stored.type, uint64_t(rows) * width)};
        pack.slot[kY] = pack.weight.slice;
        rig.run_plain(pack, 1);
      }
      return tensor;
    }();
    REQUIRE(rig.get<uint8_t>(pieces.slice) == rig.get<uint8_t>(whole.slice));
  }
}

}  // namespace greta::test
