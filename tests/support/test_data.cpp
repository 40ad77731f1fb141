// Finds the folder of test data and keeps a list of the tests that used it.
#include "support/test_data.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/interfaces/catch_interfaces_capture.hpp>
#include <cstdlib>
#include <fstream>

namespace greta::test {

std::filesystem::path test_data() {
  const char* folder = std::getenv("GRETA_TEST_DATA");
  if (folder == nullptr || folder[0] == 0) SKIP("GRETA_TEST_DATA is not set");
  INFO("GRETA_TEST_DATA is " << folder);
  REQUIRE(std::filesystem::is_directory(folder));
  if (const char* log = std::getenv("GRETA_TEST_DATA_LOG")) {
    std::ofstream(log, std::ios::app) << Catch::getResultCapture().getCurrentTestName() << '\n';
  }
  return folder;
}

}  // namespace greta::test
