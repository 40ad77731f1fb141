// The list of versions that are known for faults.
#include "runtime/known_faults.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

using namespace greta;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("known faults: firmware of a target, by its lower twelve bits", "[runtime]") {
  REQUIRE(firmware_fault("gfx1151", 0x83));
  CHECK(firmware_fault("gfx1151", 0x7080083) == firmware_fault("gfx1151", 0x83));
  REQUIRE(firmware_fault("gfx1152", 0x82));
  CHECK_FALSE(firmware_fault("gfx1152", 0x83));
  CHECK_FALSE(firmware_fault("gfx1151", 0x86));
  CHECK_FALSE(firmware_fault("gfx1100", 0x83));
  CHECK_FALSE(firmware_fault("", 0));
}

TEST_CASE("known faults: versions of a driver are numbers", "[runtime]") {
  for (const char* driver : {"HIP 6.4.43484", "HIP 7.2.9999", "HIP 7.2.53210", "HIP 7.2"})
    CHECK_THAT(std::string(driver_fault("hip", driver)), ContainsSubstring("launch by launch"));
  for (const char* driver : {"HIP 7.2.53211", "HIP 7.13.1"})
    CHECK_THAT(std::string(driver_fault("hip", driver)), ContainsSubstring("take turns"));
  for (const char* driver : {"HIP 7.14.0", "HIP 7.15.26333", "HIP 10.0", "HIP", ""})
    CHECK_FALSE(driver_fault("hip", driver));
  CHECK_FALSE(driver_fault("vulkan", "radv Mesa 6.1"));
}
