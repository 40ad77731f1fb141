// convert: activations to the q8 form byte for byte, and packed weights that decode to the same values.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>

#include "selftest/checks/checks.h"
#include "support/op_rig.h"

namespace greta::test {

using Catch::Generators::from_range;

TEST_CASE("convert: every row gives the q8 form byte for byte", "[ops]") {
  OpRig rig(GENERATE(from_range(rig_devices())));
  check_convert(rig);
}

TEST_CASE("convert: packed weights hold the same values, in pieces or at once", "[ops]") {
  OpRig rig;
  Random random(2);
  for (const Stored& stored : stored_types(rig, Op::Embed)) {
    if (stored.layout == Layout::Gguf) continue;
    const uint32_t n = 45, width = 256;
    const Matrix matrix = random_matrix(stored.type, n, width, 1, Scales::Extreme, random);
    const Tensor whole = put_matrix(rig, matrix, stored.layout);
    StepRows steps;
    Ids tokens;
    for (uint32_t t = 0; t < n; ++t) steps.add(t, 0, t), tokens.push_back(t);
    const Slice y = rig.room(128 * width * 4);
    const Call call = CallMaker{steps.put(rig)}.embed(whole, y);
    check_rows(rig, call, 128, reference::embed(matrix.values, width, tokens, 1), 0);

    // 32 rows, then the rest: how a store uploads in chunks of whole tiles.
    const Tensor pieces = [&] {
      Tensor tensor = whole;
      tensor.slice = rig.room(whole.slice.bytes);
      const Slice source = rig.put(matrix.bytes);
      for (uint32_t first = 0; first < n; first += 2 * kPackRows) {
        const uint32_t rows = std::min(n - first, 2 * kPackRows);
        Tensor piece = tensor;
        piece.n = rows;
        const uint64_t from = quant_bytes(stored.type, uint64_t(first) * width);
        const uint64_t to = tensor_bytes(stored.type, stored.layout, first, width, 1);
        piece.slice = {tensor.slice.buffer, tensor.slice.offset + to,
                       tensor_bytes(stored.type, stored.layout, rows, width, 1)};
        const Slice gguf = {source.buffer, source.offset + from,
                            quant_bytes(stored.type, uint64_t(rows) * width)};
        rig.run_plain(CallMaker{}.pack(gguf, piece), 1);
      }
      return tensor;
    }();
    REQUIRE(rig.get<uint8_t>(pieces.slice) == rig.get<uint8_t>(whole.slice));
  }
}

}  // namespace greta::test
