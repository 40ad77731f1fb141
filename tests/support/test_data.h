// The folder of test data that is not part of the project: reference models, vocabularies and goldens.
#pragma once
#include <filesystem>

namespace greta::test {

// Gives the folder that the environment variable GRETA_TEST_DATA names, or skips the running test if it is
// not set. If the name is no folder, the test fails. If GRETA_TEST_DATA_LOG names a file, the test's name is
// added to it.
std::filesystem::path test_data();

}  // namespace greta::test
