// Which devices run code for a family of gfx targets, and which of a table's rows they get.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cstring>

#include "graph/graph.h"

using namespace greta;

TEST_CASE("a family's code runs on its exact targets alone", "[runtime]") {
  for (const char* arch : {"gfx942", "gfx950"}) CHECK(gfx_family(arch) == "gfx9-4-generic");
  for (const char* arch : {"gfx1030", "gfx1036"}) CHECK(gfx_family(arch) == "gfx10-3-generic");
  for (const char* arch : {"gfx1100", "gfx1103", "gfx1151", "gfx1153"})
    CHECK(gfx_family(arch) == "gfx11-generic");
  for (const char* arch : {"gfx1200", "gfx1201"}) CHECK(gfx_family(arch) == "gfx12-generic");
  for (const char* arch : {"", " ", "gfx", "gfx90a", "gfx94", "gfx9421", "fx942", "gfx1010", "gfx1250",
                           "gfx110", "gfx11-generic", "cpu:avx2"}) {
    CAPTURE(arch);
    CHECK(gfx_family(arch).empty());
  }
  CHECK(runs_on("gfx11-generic", "gfx1151"));
  CHECK(runs_on("gfx90a", "gfx90a"));
  CHECK_FALSE(runs_on("gfx11-generic", "gfx1201"));
  CHECK_FALSE(runs_on("gfx1100", "gfx1101"));
  CHECK_FALSE(runs_on("gfx9-4-generic", "gfx90a"));
  CHECK_FALSE(runs_on("", "gfx1010"));
  CHECK_FALSE(runs_on("gfx12-generic", "gfx1250"));
}

TEST_CASE("gfx1250 is an Instinct, and no RDNA", "[runtime]") {
  for (const char* arch : {"gfx90a", "gfx942", "gfx950", "gfx1250"}) {
    CHECK(is_instinct(arch));
    CHECK_FALSE(is_rdna(arch));
  }
  for (const char* arch : {"gfx1010", "gfx1030", "gfx1151", "gfx1201"}) {
    CHECK(is_rdna(arch));
    CHECK_FALSE(is_instinct(arch));
  }
}

TEST_CASE("a device may use rows for its exact target and for its family", "[runtime]") {
  DeviceInfo device;
  std::strcpy(device.backend, "hip");
  std::strcpy(device.arch, "gfx950");
  KernelRow row = {};
  row.backend = "hip";
  for (const char* target : {"", "gfx950", "gfx9-4-generic"}) {
    row.target = target;
    CHECK(usable(row, {&device}));
  }
  for (const char* target : {"gfx942", "gfx11-generic", "gfx9"}) {
    row.target = target;
    CHECK_FALSE(usable(row, {&device}));
  }
}

// Of equal rows the first is chosen.
TEST_CASE("rows for an exact target stand before those for its family", "[runtime]") {
  const std::span<const KernelRow> rows = kernel_table();
  const auto equal = [](const KernelRow& a, const KernelRow& b) {
    return !std::strcmp(a.name, b.name) && a.tile == b.tile && a.tile_tokens == b.tile_tokens &&
           std::ranges::equal(std::span(a.ops, a.op_count), std::span(b.ops, b.op_count));
  };
  for (size_t i = 0; i < rows.size(); ++i)
    for (size_t j = i + 1; j < rows.size(); ++j)
      if (equal(rows[i], rows[j]) && gfx_family(rows[j].target) == rows[i].target && rows[i].target[0])
        FAIL_CHECK(rows[j].name << " for " << rows[j].target);
}
