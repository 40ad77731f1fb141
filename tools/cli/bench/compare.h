// `greta-cli bench compare A B`: two files of results, test by test.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "json.h"

namespace greta::cli {

struct Measured {
  std::string name;             // of a test, with those settings that not all tests have in common
  std::vector<double> samples;  // tokens per second of each run
};

// What a file of results holds.
struct Results {
  std::string path;
  std::map<std::string, std::string> same;  // what all its rows have in common: model, device, preset
  std::vector<Measured> tests;
  std::string commit, time;  // of its first row
};

// Reads a list of rows, or a row on each line; with `force` from several devices. Throws Failed.
Results read_results(const std::string& path, bool force);
Results results_of(const std::string& path, const std::vector<Json>& rows, bool force);
std::string shown_name(const std::string& full, const std::vector<Measured>& tests);  // of a test
double median_of(std::vector<double> values);
constexpr size_t kFewestRuns = 6;  // with fewer in a set, no difference is sure
constexpr double kSure = 0.01;     // so rare are findings where nothing differs

struct CompareOptions {
  std::string a, b;           // files that bench -o json, -o jsonl or --save wrote
  std::string output = "md";  // or "json"
  double threshold = 3;       // percent: a loss above it is told by the exit code
  bool force = false;         // compare other models and devices, too
};

// Prints a row for each test, and returns kExitOk or kExitLoss. Throws Failed.
int compare_benches(const CompareOptions& options);
int compare_results(const CompareOptions& options, const Results& a, const Results& b);

}  // namespace greta::cli
