// The folder of test data that is not part of the project: reference models, vocabularies and goldens.
#pragma once
#include <filesystem>

namespace greta::test {

// The folder that the environment names in GRETA_TEST_DATA; skips the running test if it names none. A name
// that is not a folder fails the test. Where GRETA_TEST_DATA_LOG names a file, the test's name is added to
// it.
std::filesystem::path test_data();

}  // namespace greta::test
