// The C++ form of the test kernel against the formula, and the rows that the build wrote for all forms.
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <cstddef>
#include <cstring>

#include "kernels/abi/scaled_add.h"
#include "spike/spike_device.h"

using namespace greta;

TEST_CASE("the C++ kernel computes the formula and leaves the rest alone", "[spike]") {
  const KernelRow* row = find_test_kernel("scaled_add_spike", "cpu", "");
  REQUIRE(row);
  for (const ScaledAddCase& shape : scaled_add_cases()) {
    CAPTURE(shape.count, shape.page_values);
    HostSpikeDevice device;
    std::vector<uint32_t> y;
    REQUIRE(run_scaled_add(device, *row, shape, &y).ok());
    const std::vector<double> reference = scaled_add_reference(shape);
    for (uint32_t i = 0; i < shape.count; ++i) {
      float value;
      std::memcpy(&value, &y[i], sizeof value);
      // Two roundings, each half an ulp: of the product (at most 8 * |scale|) and of the sum.
      const double limit = std::ldexp(8 * std::abs(double(shape.scale)) + std::abs(reference[i]), -24);
      CHECK(std::abs(value - reference[i]) <= limit);
    }
    for (uint32_t i = 0; i < kCanaries; ++i) CHECK(y[shape.count + i] == kPoison);
  }
}

TEST_CASE("every row of a test kernel says what its backend needs", "[spike]") {
  CHECK(sizeof(ScaledAddBlock) == 48);  // four addresses and three scalars, padded to an address
  for (const KernelRow& row : test_kernel_table()) {
    CAPTURE(row.name, row.backend, row.target);
    const bool host = !std::strcmp(row.backend, "cpu"), hip = !std::strcmp(row.backend, "hip");
    CHECK(row.op_count == 0);
    CHECK((row.code.function != nullptr) == host);
    CHECK(row.code.code.empty() == host);
    CHECK((row.target[0] != 0) == hip);
    CHECK(!std::strcmp(row.code.name, row.name));
    if (std::strcmp(row.name, "scaled_add_spike")) continue;
    CHECK(row.code.group_size[0] == 64);
    CHECK(row.constant_count == 1);
    CHECK(row.constant_fields[0] == offsetof(ScaledAddBlock, page_values));
  }
}

TEST_CASE("constants come from the block, behind the threads of a group", "[spike]") {
  const KernelRow* row = find_test_kernel("scaled_add_spike", "cpu", "");
  REQUIRE(row);
  ScaledAddBlock block = {};
  block.page_values = 48;
  uint32_t constants[kMaxConstants + 1] = {};
  const std::span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(&block), sizeof block);
  CHECK(kernel_constants(*row, bytes, constants) == 2);
  CHECK(constants[0] == 64);
  CHECK(constants[1] == 48);
  CHECK(kernel_constants(*row, bytes.first(8), constants) == 1);  // a field outside the block is none
}
