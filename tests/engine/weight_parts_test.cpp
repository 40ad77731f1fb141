#include "engine/weight_parts.h"

#include <catch2/matchers/catch_matchers_string.hpp>

#include "support/devices.h"

using namespace greta;

TEST_CASE("weight parts: rows, or whole matrices, each part within the limit", "[engine]") {
  for (const Layout layout : {Layout::Gguf, Layout::Packed, Layout::Planes})
    for (const uint32_t count : {1u, 7u}) {
      const Tensor whole = {QuantType::q8_0, layout, 100, 256, count, {}};
      for (uint64_t limit = bytes_of(whole) - 1; limit > bytes_of(whole) / (count > 1 ? 7 : 6); limit = limit * 9 / 10) {
        CAPTURE(layout_name(layout), count, limit);
        std::vector<Tensor> parts;
        REQUIRE(cut_tensor(whole, limit, &parts).ok());
        CHECK(parts.size() >= 2);
        uint32_t rows = 0;
        for (const Tensor& part : parts) {
          CHECK(bytes_of(part) <= limit);
          CHECK((count > 1 ? part.n == whole.n : part.count == 1));
          CHECK((&part == &parts.back() || part.n % kPackRows == 0 || count > 1));
          rows += part.n * part.count;
        }
        CHECK(rows == whole.n * whole.count);
      }
    }
}

TEST_CASE("weight parts: a matrix of experts is not cut, nor a group of rows", "[engine]") {
  std::vector<Tensor> parts;
  const Tensor experts = {QuantType::f32, Layout::Gguf, 100, 256, 3, {}};
  CHECK(cut_tensor(experts, 102400, &parts).ok());
  CHECK(parts.size() == 3);
  CHECK(cut_tensor(experts, 102399, &parts).code == Code::Unsupported);
  CHECK_THAT(error_text(), Catch::Matchers::ContainsSubstring("102400 bytes"));
  const Tensor rows = {QuantType::f32, Layout::Gguf, 100, 256, 1, {}};
  CHECK(cut_tensor(rows, 16 * 1024 - 1, &parts).code == Code::Unsupported);
}

TEST_CASE("arenas have a GiB at most, and what the device allows", "[engine]") {
  DeviceInfo info;
  info.max_allocation_bytes = uint64_t(4) << 30;
  CHECK(arena_limit(info) == uint64_t(1) << 30);
  info.max_allocation_bytes = 1000;
  CHECK(arena_limit(info) == 768);
}
