// `greta-cli bench --against PROGRAM`: this program and another one in turn.
#pragma once
#include <string>
#include <vector>

#include "bench/compare.h"

namespace greta::cli {

struct AgainstOptions {
  std::string program;             // greta-cli of another build, or llama-bench
  std::vector<std::string> words;  // what both are given, such as -p 512
  std::vector<std::string> own;    // what only greta-cli knows, such as --device cpu
};

// Runs them in the order other, this, this, other, so that what drifts drifts alike for both, and compares
// what they print. Returns as compare_benches() does. Throws Failed.
int bench_against(const AgainstOptions& against, CompareOptions options);

}  // namespace greta::cli
