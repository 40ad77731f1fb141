// Weights of 4 bits in groups, in the orders of GPTQ, AWQ and compressed-tensors: bits and products.
#include <catch2/matchers/catch_matchers_string.hpp>
#include <bit>
#include <cmath>
#include <random>

#include "selftest/quant/quant.h"
#include "support/compute_ops.h"

using namespace greta;
using namespace greta::test;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr double kExactLimit = 1e-11, kRoundedLimit = 2e-4;

// A matrix as it is meant, and as a file has it.
struct Grouped {
  greta_group_order order;
  uint32_t n, depth, group;
  bool zeros, bfloat;
  std::vector<uint32_t> quants;  // [n][depth]
  std::vector<uint32_t> zero;    // [n][groups]
  std::vector<uint16_t> scale;   // [n][groups]
  std::vector<uint32_t> quant_words, zero_words;
  std::vector<uint16_t> scales;
  Values values;  // [n][depth]

  uint32_t groups() const { return depth / group; }
  greta_groups given() const {
    auto made = sized<greta_groups>();
    made.order = order, made.n = n, made.depth = depth, made.group = group;
    made.scale_type = bfloat ? GRETA_TYPE_BF16 : GRETA_TYPE_F16;
    made.quants = quant_words.data(), made.quant_bytes = quant_words.size() * 4;
    made.scales = scales.data(), made.scale_bytes = scales.size() * 2;
    if (zeros) made.zeros = zero_words.data(), made.zero_bytes = zero_words.size() * 4;
    return made;
  }
};

double bfloat_value(uint16_t bits) { return std::bit_cast<float>(uint32_t(bits) << 16); }

// Writes [rows][columns] into words of 8 neighbours of a row, those of AWQ in its order.
std::vector<uint32_t> words_along_columns(const std::vector<uint32_t>& from, uint32_t rows, uint32_t columns,
                                          bool awq) {
  static constexpr uint32_t kAwq[8] = {0, 2, 4, 6, 1, 3, 5, 7};
  const uint32_t words = (columns + 7) / 8;
  std::vector<uint32_t> out(size_t(rows) * words);
  for (uint32_t r = 0; r < rows; ++r)
    for (uint32_t w = 0; w < words; ++w)
      for (uint32_t place = 0; place < 8; ++place) {
        const uint32_t c = 8 * w + (awq ? kAwq[place] : place);
        if (c < columns) out[r * words + w] |= from[r * columns + c] << 4 * place;
      }
  return out;
}

template <class T>
std::vector<T> transposed(const std::vector<T>& from, uint32_t rows, uint32_t columns) {
  std::vector<T> out(from.size());
  for (uint32_t r = 0; r < rows; ++r)
    for (uint32_t c = 0; c < columns; ++c) out[c * rows + r] = from[r * columns + c];
  return out;
}

// Stores it as the format's own packer does.
void store(Grouped& m) {
  const uint32_t groups = m.groups();
  std::vector<uint32_t> zeros = m.zero;
  if (m.order == GRETA_GROUP_ORDER_GPTQ)
    for (uint32_t& zero : zeros) --zero;
  if (m.order == GRETA_GROUP_ORDER_COMPRESSED) {
    m.quant_words = words_along_columns(m.quants, m.n, m.depth, false);
    const auto packed = words_along_columns(transposed(zeros, m.n, groups), groups, m.n, false);
    m.zero_words = transposed(packed, groups, (m.n + 7) / 8);
    m.scales = m.scale;
    return;
  }
  const bool awq = m.order == GRETA_GROUP_ORDER_AWQ;
  if (awq)
    m.quant_words = words_along_columns(transposed(m.quants, m.n, m.depth), m.depth, m.n, true);
  else
    m.quant_words = transposed(words_along_columns(m.quants, m.n, m.depth, false), m.n, m.depth / 8);
  m.zero_words = words_along_columns(transposed(zeros, m.n, groups), groups, m.n, awq);
  m.scales = transposed(m.scale, m.n, groups);
}

Grouped make_grouped(greta_group_order order, uint32_t n, uint32_t depth, uint32_t group, bool zeros,
                     bool bfloat, uint32_t seed) {
  Grouped m = {order, n, depth, group, zeros, bfloat, {}, {}, {}, {}, {}, {}, {}};
  std::mt19937 random(seed);
  const uint32_t lowest = order == GRETA_GROUP_ORDER_GPTQ;
  for (uint32_t i = 0; i < n * depth; ++i) m.quants.push_back(random() % 16);
  for (uint32_t i = 0; i < n * m.groups(); ++i) {
    m.zero.push_back(zeros ? lowest + random() % 16 : 8);
    const float scale = std::ldexp(1 + float(random() % 128) / 128, -int(4 + random() % 8)) *
                        (random() % 2 ? 1 : -1);  // 8 bits, which both types hold
    m.scale.push_back(bfloat ? uint16_t(std::bit_cast<uint32_t>(scale) >> 16) : reference::half_bits(scale));
  }
  for (uint32_t r = 0; r < n; ++r)
    for (uint32_t k = 0; k < depth; ++k) {
      const uint32_t at = r * m.groups() + k / group;
      const double scale = bfloat ? bfloat_value(m.scale[at]) : reference::half_value(m.scale[at]);
      m.values.push_back(scale * (double(m.quants[r * depth + k]) - double(m.zero[at])));
    }
  store(m);
  return m;
}

// Writes it in two parts to memory for upload, and packs that.
greta_weights pack(ComputeRig& rig, const Grouped& m) {
  const greta_groups groups = m.given();
  greta_weights weights = {};
  uint32_t type = 0;
  uint64_t bytes = 0, source_bytes = 0;
  rig.ok(greta_groups_type(&groups, &type));
  CHECK(type == uint32_t(m.zeros ? 6 : 2));
  rig.ok(greta_weights_size(rig.compute, type, m.n, m.depth, &weights, &bytes, &source_bytes));
  const greta_buffer source = rig.buffer(source_bytes, GRETA_MEMORY_UPLOAD);
  auto info = sized<greta_buffer_info>();
  rig.ok(greta_buffer_describe(rig.compute, source, &info));
  const uint64_t first = m.n / 3, row_bytes = source_bytes / m.n;
  uint8_t* const to = static_cast<uint8_t*>(info.mapped);
  rig.ok(greta_groups_write(&groups, type, 0, first, to, first * row_bytes));
  rig.ok(greta_groups_write(&groups, type, first, m.n - first, to + first * row_bytes,
                            (m.n - first) * row_bytes));
  weights.buffer = rig.buffer(bytes);
  rig.ok(greta_weights_pack(rig.compute, rig.stream, &weights, source, 0));
  rig.ok(greta_buffer_close(rig.compute, source));
  return weights;
}

void check_unpacked(ComputeRig& rig, const greta_weights& weights, const Grouped& m) {
  const greta_tensor y = rig.tensor({m.n, m.depth});
  rig.ok(greta_weights_unpack(rig.compute, rig.stream, &weights, &y));
  rig.wait();
  const std::vector<float> values = rig.get(y, m.values.size());
  size_t wrong = 0;
  for (size_t i = 0; i < values.size(); ++i) wrong += double(values[i]) != m.values[i];
  CHECK(wrong == 0);
}

void check_product(ComputeRig& rig, const greta_weights& weights, const Grouped& m, uint32_t rows) {
  Random random(rows);
  const std::vector<float> x = gaussians(size_t(rows) * m.depth, random);
  auto call = sized<greta_linear_call>();
  call.weights = weights;
  call.x = rig.tensor({rows, m.depth}, x);
  call.y = rig.tensor({rows, m.n});
  GRETA_RUN(rig, linear, call);
  const Values expected = reference::matmul(m.values, to_values(x), m.depth);
  check_close(rig.get(call.y, expected.size()), expected,
              rig.runtime->exact ? kExactLimit : kRoundedLimit);
}

}  // namespace

TEST_CASE("compute groups: four orders, with zeros and without, keep their bits and agree with float64",
          "[compute]") {
  for (const auto& rig : op_rigs())
    for (const greta_group_order order : {GRETA_GROUP_ORDER_GPTQ, GRETA_GROUP_ORDER_GPTQ_V2,
                                          GRETA_GROUP_ORDER_AWQ, GRETA_GROUP_ORDER_COMPRESSED})
      for (const uint32_t group : {32u, 64u, 128u})
        for (const int kind : {0, 1, 2, 3}) {
          INFO("order " << order << ", groups of " << group << ", kind " << kind);
          const uint32_t n = order == GRETA_GROUP_ORDER_COMPRESSED ? 37 : 40;
          const Grouped m = make_grouped(order, n, 256, group, kind & 1, kind & 2, 7 * group + kind);
          const greta_weights weights = pack(*rig, m);
          check_unpacked(*rig, weights, m);
          check_product(*rig, weights, m, group == 64 ? 21 : 1 + kind);
          if (order || group != 128) continue;
          // Packed bytes are saved and taken back.
          uint64_t bytes = 0;
          greta_weights again = {};
          rig->ok(greta_weights_size(rig->compute, weights.type, n, 256, &again, &bytes, nullptr));
          again.buffer = rig->put(rig->get<uint8_t>(weights.buffer, bytes));
          check_unpacked(*rig, again, m);
        }
}

TEST_CASE("compute groups: scales that float16 does not hold are refused, or rounded where that is asked for",
          "[compute]") {
  const struct {
    uint16_t bits;
    bool held, refused;  // exactly; in any case
    double half;         // what it becomes
  } kScales[] = {
      {0x3c00, true, false, 0x1p-7},      {0xbc01, true, false, -0x1.02p-7}, {0x0000, true, false, 0},
      {0x477f, true, false, 65280},       {0x4780, false, true, 0},          {0x7f80, false, true, 0},
      {0x7fc0, false, true, 0},           {0x3801, true, false, 0x1.02p-15}, {0x3700, true, false, 0x1p-17},
      {0x377f, true, false, 0x1.fep-17},  {0x36ff, false, false, 0x1p-17},   {0x3680, true, false, 0x1p-18},
      {0x3681, false, false, 0x1p-18},    {0x3683, false, false, 0x1.08p-18}, {0x3300, false, false, 0},
      {0x3301, false, false, 0x1p-24},    {0x0001, false, false, 0},         {0x2000, false, false, 0}};
  for (const auto& scale : kScales) {
    INFO("bits " << std::hex << scale.bits);
    Grouped m = make_grouped(GRETA_GROUP_ORDER_COMPRESSED, 2, 32, 32, false, true, 3);
    m.scales[1] = scale.bits;
    greta_groups given = m.given();
    uint32_t type = 0;
    uint8_t block[18];
    CHECK(greta_groups_type(&given, &type) == (scale.held ? GRETA_OK : GRETA_ERROR_UNSUPPORTED));
    if (!scale.held) CHECK_THAT(greta_error_text(), ContainsSubstring("group 0 of row 1"));
    CHECK(greta_groups_write(&given, 2, 0, 1, block, 18) == GRETA_OK);
    CHECK(greta_groups_write(&given, 2, 1, 1, block, 18) ==
          (scale.held ? GRETA_OK : GRETA_ERROR_UNSUPPORTED));
    given.round_scales = 1;
    const greta_status rounded = scale.refused ? GRETA_ERROR_UNSUPPORTED : GRETA_OK;
    CHECK(greta_groups_type(&given, &type) == rounded);
    CHECK(greta_groups_write(&given, 2, 1, 1, block, 18) == rounded);
    if (!rounded) CHECK(reference::half_at(block) == float(scale.half));
  }
}

TEST_CASE("compute groups: what does not fit is refused with its numbers", "[compute]") {
  const Grouped m = make_grouped(GRETA_GROUP_ORDER_GPTQ, 16, 64, 32, true, false, 4);
  const greta_groups right = m.given();
  uint32_t type = 0;
  std::vector<uint8_t> out(16 * 2 * 22);
  const auto refused = [&](const greta_groups& given, const char* words) {
    CHECK(greta_groups_type(&given, &type) == GRETA_ERROR_ARGUMENT);
    CHECK_THAT(greta_error_text(), ContainsSubstring(words));
    CHECK(greta_groups_write(&given, 6, 0, 16, out.data(), out.size()) == GRETA_ERROR_ARGUMENT);
  };
  auto given = right;
  given.n = 12, refused(given, "12 rows, expected a multiple of the 8 that a word holds");
  given = right, given.n = 0, refused(given, "[0][64]");
  given = right, given.depth = ~uint64_t(0), refused(given, "a matrix [16]");
  given = right, given.group = 48, refused(given, "groups of 48");
  given = right, given.group = 0, refused(given, "groups of 0");
  given = right, given.group = 128, refused(given, "groups of 128");
  given = right, --given.quant_bytes;
  refused(given, "quants: 511 bytes, expected 512 for a matrix [16][64] in groups of 32");
  given = right, ++given.scale_bytes, refused(given, "scales: 65 bytes");
  given = right, given.zero_bytes = 8, refused(given, "zeros: 8 bytes");
  given = right, given.zeros = nullptr, refused(given, "zeros is NULL");
  given = right, given.quants = nullptr, refused(given, "quants is NULL");
  given = right, given.scale_type = GRETA_TYPE_F32, refused(given, "scale_type is 0");
  given = right, given.order = greta_group_order(9), refused(given, "order is 9");
  given = right, given.reserved = 1;
  CHECK(greta_groups_type(&given, &type) == GRETA_ERROR_UNSUPPORTED);
  given = right, given.round_scales = 2, refused(given, "round_scales");
  CHECK(greta_groups_type(nullptr, &type) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_groups_type(&right, nullptr) == GRETA_ERROR_ARGUMENT);
  const auto writes = [&](uint32_t to, uint64_t first, uint64_t count, uint64_t bytes, const char* words) {
    CHECK(greta_groups_write(&right, to, first, count, out.data(), bytes) == GRETA_ERROR_ARGUMENT);
    CHECK_THAT(greta_error_text(), ContainsSubstring(words));
  };
  writes(6, 1, 16, out.size(), "rows 1 + 16 are outside the 16 rows");
  writes(6, ~uint64_t(0), 2, 88, "outside the 16 rows");
  writes(6, 0, 16, out.size() - 1, "out: 703 bytes, 16 rows");
  writes(2, 0, 16, 16 * 2 * 18, "is");
  writes(8, 0, 16, 16 * 2 * 34, "weights in groups cannot become type q8_0");
  writes(999, 0, 16, out.size(), "no type 999");
  CHECK(greta_groups_write(&right, 6, 0, 16, nullptr, out.size()) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_groups_write(&right, 6, 0, 16, out.data(), out.size()) == GRETA_OK);
}
