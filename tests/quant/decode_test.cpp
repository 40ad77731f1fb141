// Dequantisation is bit-exact: what embed gives for each type and layout, against the reference
// decoders for random blocks, and against the golden blocks where the test data is there.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <cstring>

#include "support/npz.h"
#include "support/op_rig.h"
#include "support/test_data.h"

namespace greta::test {
namespace {

// Each row of embed's kernels decodes the whole matrix; `expected` has the bits of its values.
void check_decode(OpRig& rig, const Matrix& matrix, const std::vector<uint32_t>& expected) {
  for (const Layout layout : {Layout::Gguf, Layout::Packed, Layout::Planes}) {
    StepRows steps;
    for (uint32_t n = 0; n < matrix.n; ++n) steps.add(n, 0, n);
    Call call = CallMaker{}.embed({matrix.type, layout, matrix.n, matrix.depth}, {});
    const std::vector<const KernelRow*> rows = rig.rows({&call, 1}, 32);
    if (rows.empty() && layout != Layout::Gguf) continue;
    REQUIRE(!rows.empty());
    call.weight = put_matrix(rig, matrix, layout);
    call.slot[kY] = rig.room(expected.size() * 4);
    call.slot[kStep] = steps.put(rig);
    for (const KernelRow* row : rows) {
      rig.poison(call.slot[kY]);
      rig.run({&call, 1}, *row, 32);
      INFO(row->name);
      REQUIRE(rig.get<uint32_t>(call.slot[kY]) == expected);
    }
  }
  rig.reset();
}

std::vector<uint32_t> bits(const Values& values) {
  std::vector<uint32_t> out;
  for (const double value : values) {
    const float single = float(value);
    uint32_t word;
    memcpy(&word, &single, 4);
    out.push_back(word);
  }
  return out;
}

}  // namespace

TEST_CASE("decode: every type equals its reference decoder to the bit", "[quant]") {
  OpRig rig;
  Random random(1);
  for (const reference::Quant* of_type : reference::quants()) {
    const reference::Quant& quant = *of_type;
    INFO(quant.name);
    QuantType type;
    REQUIRE(quant_from_name(quant.name, &type));
    CHECK(quant_info(type).block == quant.block);
    CHECK(quant_info(type).block_bytes == quant.bytes);
    for (int repeat = 0; repeat < 20; ++repeat) {
      const uint32_t depth = quant.block == 1 ? 45 : quant.block * 3;
      Matrix matrix = random_matrix(type, 19, depth, 1, repeat % 2 ? Scales::Extreme : Scales::Plain, random);
      check_decode(rig, matrix, bits(matrix.values));
    }
  }
}

TEST_CASE("decode: every value that a half can have", "[quant]") {
  OpRig rig;
  Matrix matrix{QuantType::f16, 32, 2048, 1, std::vector<uint8_t>(65536 * 2), Values(65536)};
  for (uint32_t half = 0; half < 65536; ++half) {
    const bool nan = (half & 0x7c00) == 0x7c00 && (half & 0x3ff);
    const uint16_t stored = nan ? 0 : uint16_t(half);  // NaN has many encodings
    memcpy(&matrix.bytes[half * 2], &stored, 2);
    matrix.values[half] = reference::half_value(stored);
  }
  check_decode(rig, matrix, bits(matrix.values));
}

TEST_CASE("decode: golden blocks", "[quant][data]") {
  const auto arrays = read_npz((test_data() / "golden/dequant/blocks.npz").string());
  REQUIRE(!arrays.empty());
  OpRig rig;
  uint32_t checked = 0;
  for (const auto& [name, raw] : arrays) {
    if (!name.ends_with("_raw")) continue;
    std::string type_name = name.substr(0, name.size() - 4);
    const Array& values = arrays.at(type_name + "_f32");
    std::transform(type_name.begin(), type_name.end(), type_name.begin(),
                   [](char c) { return char(std::tolower(c)); });
    Matrix matrix;
    if (!quant_from_name(type_name.c_str(), &matrix.type)) continue;
    const auto stored = stored_types(rig, Op::Embed);
    if (std::none_of(stored.begin(), stored.end(), [&](const Stored& s) { return s.type == matrix.type; }))
      continue;
    matrix.count = 1;
    matrix.n = uint32_t(raw.shape.at(0));
    matrix.depth = quant_info(matrix.type).block;
    matrix.bytes = raw.bytes;
    REQUIRE(values.type == "<f4");
    std::vector<uint32_t> expected(values.bytes.size() / 4);
    memcpy(expected.data(), values.bytes.data(), values.bytes.size());
    INFO(type_name);
    check_decode(rig, matrix, expected);
    ++checked;
  }
  CHECK(checked == 23);
}

}  // namespace greta::test
