// Weights of a file that are no numbers, in every tensor type.
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <random>

#include "selftest/quant/quant.h"
#include "support/api_objects.h"
#include "support/gguf_writer.h"

using namespace greta;
using namespace greta::test;

namespace {

greta_weights_check check(const std::string& bytes, uint64_t index = 0) {
  auto source = sized<greta_source>();
  source.memory = bytes.data();
  source.memory_bytes = bytes.size();
  greta_file* file = nullptr;
  REQUIRE(greta_file_open(&source, &file) == GRETA_OK);
  auto found = sized<greta_weights_check>();
  CHECK(greta_file_check_weights(file, index, &found) == GRETA_OK);
  greta_file_close(file);
  return found;
}

constexpr uint64_t kBlocks = 20000;  // several pieces of a read, for most types

// Whether any of the weights is no number, looking at each.
bool is_bad(const reference::Quant& quant, const uint8_t* block) {
  for (uint32_t i = 0; i < quant.block; ++i)
    if (!std::isfinite(quant.weight(block, i))) return true;
  return false;
}

}  // namespace

TEST_CASE("weights: blocks with a scale or a weight that is no number are counted, in every type",
          "[api][file]") {
  for (const reference::Quant* quant : reference::quants()) {
    INFO(quant->name);
    QuantType type;
    REQUIRE(quant_from_name(quant->name, &type));
    std::mt19937_64 random(7);
    std::string data(kBlocks * quant->bytes, 0);
    for (char& byte : data) byte = char(random());
    auto* const blocks = reinterpret_cast<uint8_t*>(data.data());
    for (uint64_t i = 0; i < kBlocks; ++i) quant->resize(blocks + i * quant->bytes, 1, random);
    memset(blocks, 0, quant->bytes);
    // Any bytes: in most types some of these are bad, and which are is known from each weight.
    for (uint64_t i = 15000; i < 16000; ++i)
      for (uint32_t b = 0; b < quant->bytes; ++b) blocks[i * quant->bytes + b] = uint8_t(random());
    memset(blocks + 9990 * quant->bytes, 0, 20 * quant->bytes);  // beyond the first piece that is read
    uint64_t bad = 0, first = 0, zero = 0;
    double largest = 0;
    for (uint64_t i = 0; i < kBlocks; ++i) {
      const uint8_t* const block = blocks + i * quant->bytes;
      if (is_bad(*quant, block) && bad++ == 0) first = i;
      zero += std::count(block, block + quant->bytes, 0) == quant->bytes;
      for (uint32_t w = 0; w < quant->block; ++w) {
        const double magnitude = std::fabs(quant->weight(block, w));
        if (std::isfinite(magnitude)) largest = std::max(largest, magnitude);
      }
    }
    const uint32_t id = quant_info(type).gguf_id;
    const greta_weights_check found =
        check(GgufWriter().tensor("w", id, {quant->block * kBlocks}, data).file());
    CHECK(found.block_weights == quant->block);
    CHECK(found.blocks == kBlocks);
    CHECK(found.bad_blocks == bad);
    CHECK(found.first_bad_block == first);
    CHECK(found.zero_blocks == zero);
    CHECK(found.zero_run_blocks >= 20);
    CHECK(found.zero_run_blocks < 40);
    CHECK(found.largest == largest);
  }
}

TEST_CASE("weights: NULL, a wrong index and a wrong struct_size", "[api][file]") {
  Objects o;
  auto found = sized<greta_weights_check>();
  CHECK(greta_file_check_weights(nullptr, 0, &found) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_file_check_weights(o.file, 0, nullptr) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_file_check_weights(o.file, greta_file_tensor_count(o.file), &found) == GRETA_ERROR_ARGUMENT);
  found.struct_size = 0;
  CHECK(greta_file_check_weights(o.file, 0, &found) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_file_check_weights(o.file, 0, &(found = sized<greta_weights_check>())) == GRETA_OK);
  CHECK(found.blocks > 0);
  CHECK(found.bad_blocks == 0);
}

TEST_CASE("weights: a callback ends the look at a large tensor", "[api][file]") {
  std::string data(5 << 20, 0);
  GgufWriter writer;
  writer.tensor("a", 0, {data.size() / 4}, data);
  const std::string bytes = writer.file();
  auto source = sized<greta_source>();
  source.memory = bytes.data();
  source.memory_bytes = bytes.size();
  greta_file* file = nullptr;
  REQUIRE(greta_file_open(&source, &file) == GRETA_OK);
  struct Calls {
    int count, most;
  } calls = {0, 2};
  const auto count = [](void* user) {
    auto& c = *static_cast<Calls*>(user);
    return int(++c.count == c.most);
  };
  auto found = sized<greta_weights_check>();
  CHECK(greta_file_check_weights_until(file, 0, &found, count, &calls) == GRETA_ERROR_CANCELLED);
  CHECK(calls.count == 2);
  CHECK(found.blocks == 0);
  CHECK(greta_file_check_weights_until(file, 0, &found, count, &(calls = {0, 100})) == GRETA_OK);
  CHECK(calls.count == 5);
  CHECK(found.blocks == data.size() / 4);
  greta_file_close(file);
}
