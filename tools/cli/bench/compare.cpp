// Reads two files of results, pairs their tests, and says of each pair whether B is faster than A.
#include "bench/compare.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <vector>

#include "bench/statistics.h"
#include "console.h"
#include "json.h"
#include "options.h"

namespace greta::cli {
namespace {

constexpr size_t kMostRuns = 4000;  // of a test in a file: more are compared pair by pair in no useful time
const char* const kFaster = "faster";
const char* const kSlower = "slower";

// What has to be the same in both files, and how it is called.
constexpr std::pair<const char*, const char*> kSame[] = {
    {"model_identity", "model"}, {"device", "device"}, {"preset", "preset"}};
// What tells the tests of a file apart, beside their names.
constexpr const char* kSettings[] = {"n_batch", "type_k", "type_v", "n_threads"};

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw Failed(path + ": " + why + ": expected what bench -o json, -o jsonl or --save writes");
}

// A list, or a row on each line.
std::vector<Json> read_rows(const std::string& path) {
  const std::string text = read_file(path);
  const Json whole = Json::parse(text, nullptr, false);
  if (whole.is_array()) return {whole.begin(), whole.end()};
  std::vector<Json> rows;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    if (text.find_first_not_of(" \t\r", at) < end)
      rows.push_back(Json::parse(text.substr(at, end - at), nullptr, false));
    if (rows.size() == 1 && rows[0].is_discarded()) break;
    at = end + 1;
  }
  return rows;
}

// A value as text; "" where there is none.
std::string text_of(const Json& row, const char* key) {
  const auto found = row.find(key);
  if (found == row.end() || found->is_null()) return "";
  return found->is_string() ? found->get<std::string>() : found->dump();
}

// "pp512 @ d4096", or the name of a test of a service.
std::string test_of(const Json& row) {
  std::string name = text_of(row, "test");
  if (!name.empty()) return name;
  const auto number = [&](const char* key) { return row.at(key).get<uint32_t>(); };
  const uint32_t prompt = number("n_prompt"), generate = number("n_gen"), depth = number("n_depth");
  if (prompt > 0) name += format("pp%u", prompt);
  if (generate > 0) name += format("%stg%u", prompt > 0 ? "+" : "", generate);
  if (depth > 0) name += format(" @ d%u", depth);
  return name;
}

// Another device has another number of threads, so that --force leaves it out.
std::string settings_of(const Json& row, bool force) {
  std::string text;
  for (const char* key : kSettings)
    if (!force || std::strcmp(key, "n_threads") != 0)
      text += std::string(" ") + key + " " + text_of(row, key);
  return text;
}

// A service is measured once for each row: its prompts and its texts are tests of their own.
void add_row(const Json& row, bool force, Results* results) {
  const auto add = [&](const std::string& name, std::vector<double> samples) {
    for (double sample : samples)
      if (!std::isfinite(sample) || sample <= 0)
        refuse(results->path, name + " has a speed that is no positive number");
    const auto known = std::find_if(results->tests.begin(), results->tests.end(),
                                    [&](const Measured& test) { return test.name == name; });
    if (samples.empty()) refuse(results->path, name + " has no run");
    Measured& test = known == results->tests.end() ? results->tests.emplace_back(Measured{name, {}}) : *known;
    test.samples.insert(test.samples.end(), samples.begin(), samples.end());
    if (test.samples.size() > kMostRuns) refuse(results->path, name + " has more than 4000 runs");
  };
  const std::string name = test_of(row), settings = settings_of(row, force);
  if (row.contains("samples_ts")) add(name + settings, row.at("samples_ts").get<std::vector<double>>());
  for (const auto& [key, what] : {std::pair("prompt_ts", ", prompts"), std::pair("generate_ts", ", texts")}) {
    if (row.contains(key) && row.at(key).get<double>() > 0)
      add(name + what + settings, {row.at(key).get<double>()});
  }
}

}  // namespace

Results results_of(const std::string& path, const std::vector<Json>& rows, bool force) {
  Results results;
  results.path = path;
  if (rows.empty()) refuse(path, "there is no result in it");
  std::vector<std::pair<const char*, const char*>> same(std::begin(kSame), std::end(kSame));
  if (force) same.emplace_back("n_threads", "number of threads");
  try {
    for (const Json& row : rows) {
      if (!row.is_object()) refuse(path, "this is no list of results");
      add_row(row, force, &results);
      for (const auto& [key, what] : same) {
        const std::string value = text_of(row, key);
        if (!results.same.emplace(key, value).second && results.same[key] != value)
          throw Failed(path + " has results of more than one " + what + ": compare files of one");
      }
    }
  } catch (const Json::exception&) {
    refuse(path, "a result lacks a value, or has one of another kind");
  }
  if (results.tests.empty()) refuse(path, "no result in it has a speed");
  results.commit = text_of(rows[0], "build_commit");
  results.time = text_of(rows[0], "test_time");
  return results;
}

Results read_results(const std::string& path, bool force) { return results_of(path, read_rows(path), force); }

// Settings are shown where tests differ in nothing else, and their name is enough elsewhere.
std::string shown_name(const std::string& full, const std::vector<Measured>& tests) {
  const std::string name = full.substr(0, full.find(std::string(" ") + kSettings[0] + " "));
  const auto same = std::count_if(tests.begin(), tests.end(), [&](const Measured& test) {
    return test.name.starts_with(name + " " + kSettings[0] + " ");
  });
  return same > 1 ? full : name;
}

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 ? values[half] : (values[half - 1] + values[half]) / 2;
}

namespace {

void must_be_same(const Results& a, const Results& b) {
  for (const auto& [key, what] : kSame) {
    const std::string &of_a = a.same.at(key), &of_b = b.same.at(key);
    if (of_a != of_b)
      throw Failed(format("the %s differs: \"%s\" in %s and \"%s\" in %s (--force compares them)", what,
                          of_a.c_str(), a.path.c_str(), of_b.c_str(), b.path.c_str()));
  }
}

struct Compared {
  std::string name;
  size_t a_runs, b_runs;
  double a, b;  // medians, tokens per second
  Difference difference;
  const char* word;
};

const char* word_for(const Measured& a, const Measured& b, const Difference& difference) {
  if (std::min(a.samples.size(), b.samples.size()) < kFewestRuns) return "too few runs";
  if (difference.p >= kSure) return "no difference";
  return difference.ratio > 1 ? kFaster : kSlower;
}

// The tests that both files have, in A's order.
std::vector<Compared> compare(const Results& a, const Results& b) {
  std::vector<Compared> rows;
  for (const Measured& of_a : a.tests) {
    const auto of_b = std::find_if(b.tests.begin(), b.tests.end(),
                                   [&](const Measured& test) { return test.name == of_a.name; });
    if (of_b == b.tests.end()) {
      note("only in " + a.path + ": " + of_a.name);
      continue;
    }
    const Difference found = difference(of_a.samples, of_b->samples);
    rows.push_back({shown_name(of_a.name, a.tests), of_a.samples.size(), of_b->samples.size(),
                    median_of(of_a.samples), median_of(of_b->samples), found, word_for(of_a, *of_b, found)});
  }
  for (const Measured& of_b : b.tests) {
    if (std::none_of(a.tests.begin(), a.tests.end(),
                     [&](const Measured& test) { return test.name == of_b.name; }))
      note("only in " + b.path + ": " + of_b.name);
  }
  if (rows.empty()) throw Failed("the files have no test in common");
  return rows;
}

std::string markdown_of(const std::vector<Compared>& rows, double mean) {
  std::string text =
      "|                     test |     A t/s |     B t/s |  B / A |           95 % |      p |               "
      "|\n"
      "| -----------------------: | --------: | --------: | -----: | -------------: | -----: | ------------- "
      "|\n";
  for (const Compared& row : rows) {
    const Difference& found = row.difference;
    text += format("| %24s | %9.2f | %9.2f | %6.3f | %6.3f - %5.3f | %6.4f | %-13s |\n", row.name.c_str(),
                   row.a, row.b, found.ratio, found.ratio_low, found.ratio_high, found.p, row.word);
  }
  return text + format("Geometric mean of B / A: %.3f\n", mean);
}

Json json_of(const CompareOptions& options, const std::vector<Compared>& rows, double mean, bool loss) {
  Json list = Json::array();
  for (const Compared& row : rows) {
    const Difference& found = row.difference;
    list.push_back({{"test", row.name},
                    {"a_runs", row.a_runs},
                    {"b_runs", row.b_runs},
                    {"a_median_ts", row.a},
                    {"b_median_ts", row.b},
                    {"ratio", found.ratio},
                    {"ratio_low", found.ratio_low},
                    {"ratio_high", found.ratio_high},
                    {"u", found.u},
                    {"p", found.p},
                    {"word", row.word}});
  }
  return {{"a", options.a},         {"b", options.b}, {"tests", std::move(list)},
          {"geometric_mean", mean}, {"loss", loss},   {"threshold_percent", options.threshold}};
}

}  // namespace

int compare_benches(const CompareOptions& options) {
  return compare_results(options, read_results(options.a, options.force),
                         read_results(options.b, options.force));
}

int compare_results(const CompareOptions& options, const Results& a, const Results& b) {
  if (!options.force) must_be_same(a, b);
  const std::vector<Compared> rows = compare(a, b);
  std::vector<double> ratios;
  bool loss = false;
  for (const Compared& row : rows) {
    ratios.push_back(row.difference.ratio);
    loss = loss || (row.word == kSlower && row.difference.ratio < 1 - options.threshold / 100);
  }
  const double mean = geometric_mean(ratios);
  put(options.output == "json" ? json_text(json_of(options, rows, mean, loss)) : markdown_of(rows, mean));
  return loss ? kExitLoss : kExitOk;
}

}  // namespace greta::cli
