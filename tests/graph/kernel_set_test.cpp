// Kernels that plans want: compiled once each, and named where that fails.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "graph/graph.h"
#include "support/device_kernels.h"

using namespace greta;

TEST_CASE("wanted kernels are compiled once, and one that is refused is named and wanted no more", "[graph]") {
  NullOptions options;
  options.fail_submit = 1;
  const OpenDevice device = open_null(options);
  const uint8_t code[4] = {};
  const char* names[] = {"a", "b", "c", "d"};
  KernelRow row[4] = {};
  for (size_t i = 0; i < 4; ++i) {
    row[i].name = row[i].code.name = names[i];
    row[i].code.code = {code, code + sizeof code};
  }
  KernelSet kernels(*device);
  const Kernel* a = kernels.want(row[0], {});
  const Kernel* b = kernels.want(row[1], {});
  CHECK(kernels.want(row[0], {}) == a);
  REQUIRE(kernels.compile().ok());
  CHECK(a->handle != nullptr);
  CHECK(b->handle != nullptr);
  CHECK(b->name == row[1].name);

  CHECK(new_stream(*device)->wait().code == Code::Device);  // lost
  kernels.want(row[2], {});
  kernels.want(row[3], {});
  CHECK(kernels.compile().code == Code::Device);
  CHECK_THAT(error_text(), Catch::Matchers::ContainsSubstring("kernel c: "));
  CHECK(kernels.compile().ok());  // nothing is left to do
  CHECK(kernels.want(row[1], {}) == b);
}
