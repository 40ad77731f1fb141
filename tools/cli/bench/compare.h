// `greta-cli bench compare A B`: two files of results, test by test.
#pragma once
#include <string>

namespace greta::cli {

struct CompareOptions {
  std::string a, b;           // files that bench -o json, -o jsonl or --save wrote
  std::string output = "md";  // or "json"
  double threshold = 3;       // percent: a loss above it is told by the exit code
  bool force = false;         // compare other models and devices, too
};

// Prints a row for each test, and returns kExitOk or kExitLoss. Throws Failed.
int compare_benches(const CompareOptions& options);

}  // namespace greta::cli
