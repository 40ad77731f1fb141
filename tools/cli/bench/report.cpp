// Statistics over the samples of a measurement, and the forms in which they are printed.
#include "bench/report.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <numeric>

#include "bench/build_commit.h"
#include "bench/drawing.h"
#include "console.h"

namespace greta::cli {
namespace {

struct Spread {
  double mean, deviation, median;
};

Spread spread(std::vector<double> values) {
  const double n = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  double squares = 0;
  for (double value : values) squares += (value - mean) * (value - mean);
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  const double median = values.size() % 2 ? values[half] : (values[half - 1] + values[half]) / 2;
  return {mean, values.size() > 1 ? std::sqrt(squares / (n - 1)) : 0, median};
}

struct Numbers {
  Spread ns, speed;  // nanoseconds of the whole test, tokens per second
  std::vector<double> speeds;
};

Numbers numbers_of(const BenchRow& row) {
  std::vector<double> ns(row.samples_ns.begin(), row.samples_ns.end()), speeds;
  for (double time : ns) speeds.push_back(1e9 * (row.prompt + row.generate) / time);
  return {spread(ns), spread(speeds), speeds};
}

bool is_decoding(const BenchRow& row) { return row.generate > 0 && row.prompt == 0; }

// Bytes of weights that generating tokens reads per second. Reading prompts is bound by arithmetic, so that
// the number would say nothing there.
double weight_bytes_per_second(const BenchRow& row, const Numbers& numbers) {
  return numbers.speed.mean * static_cast<double>(row.model.token_bytes);
}

// What every measurement says: with what, and on what.
Json head_of(const BenchRow& row) {
  Json json = {{"greta_version", greta_version()},
               {"build_commit", std::string(kBuildCommit)},
               {"backends", std::string(row.device.id)},
               {"device", row.device.name},
               {"driver", row.device.driver},
               {"arch", row.device.arch},
               {"model_filename", row.path},
               {"model_identity", format("%016llx", static_cast<unsigned long long>(row.model.identity))},
               {"model_type", std::string(row.model.architecture) + " " + row.model.type},
               {"model_size", row.model.weights_bytes},
               {"model_n_params", row.model.parameters},
               {"n_threads", row.threads},
               {"n_batch", row.batch},
               {"type_k", row.key_type},
               {"type_v", row.value_type},
               {"n_prompt", row.prompt},
               {"n_gen", row.generate},
               {"n_depth", row.depth},
               {"test_time", row.time}};
  if (!row.preset.empty()) json["preset"] = row.preset;
  json["disturbed"] = row.disturbed.empty() ? Json(nullptr) : Json(row.disturbed);
  json.update(row.machine);
  return json;
}

Json json_of(const BenchRow& row) {
  const Numbers numbers = numbers_of(row);
  const double read = weight_bytes_per_second(row, numbers);
  const double percent = 100 * read / static_cast<double>(row.roofs.bandwidth);
  const auto whole = [](double value) { return static_cast<uint64_t>(value + 0.5); };
  const bool decode = is_decoding(row);
  Json json = head_of(row);
  json.update({{"avg_ns", whole(numbers.ns.mean)},
               {"stddev_ns", whole(numbers.ns.deviation)},
               {"median_ns", whole(numbers.ns.median)},
               {"avg_ts", numbers.speed.mean},
               {"stddev_ts", numbers.speed.deviation},
               {"median_ts", numbers.speed.median},
               {"gb_s", decode ? Json(read / 1e9) : Json(nullptr)},
               {"bandwidth_percent", decode ? Json(percent) : Json(nullptr)},
               {"bandwidth_gb_s", static_cast<double>(row.roofs.bandwidth) / 1e9},
               {"warm_up_runs", row.warm_up_runs},
               {"warm", row.warm},
               {"samples_ns", row.samples_ns},
               {"samples_ts", numbers.speeds}});
  if (row.roofs.arithmetic > 0) json["arithmetic_tflop_s"] = static_cast<double>(row.roofs.arithmetic) / 1e12;
  if (row.profile.tokens > 0) {
    json["profile_tokens"] = row.profile.tokens;
    json["stages"] = stages_json(row.profile, row.roofs);
  }
  return json;
}

// One line, with the names of the columns before the first row.
std::string csv_of(const Json& json, bool first) {
  std::string names, values;
  for (const auto& [name, value] : json.items()) {
    if (value.is_array()) continue;
    std::string text = value.is_string() ? value.get<std::string>() : value.is_null() ? "" : value.dump();
    for (size_t at = 0; (at = text.find('"', at)) != std::string::npos; at += 2) text.insert(at, 1, '"');
    names += (names.empty() ? "" : ",") + name;
    values += (values.empty() ? "\"" : ",\"") + text + "\"";
  }
  return (first ? names + "\n" : "") + values + "\n";
}

// A statement for each row, with one before the first that makes the table. What is no single value is left
// out, as in CSV.
std::string sql_of(const Json& json, bool first) {
  std::string columns, names, values;
  for (const auto& [name, value] : json.items()) {
    if (value.is_array()) continue;
    const char* const type = value.is_string() ? "TEXT" : value.is_number_integer() ? "INTEGER" : "REAL";
    std::string text = value.is_string() ? value.get<std::string>() : value.is_null() ? "NULL" : value.dump();
    for (size_t at = 0; value.is_string() && (at = text.find('\'', at)) != text.npos; at += 2)
      text.insert(at, 1, '\'');
    columns += (columns.empty() ? "  " : ",\n  ") + name + " " + type;
    names += (names.empty() ? "" : ", ") + name;
    values += (values.empty() ? "" : ", ") + (value.is_string() ? "'" + text + "'" : text);
  }
  const std::string table = first ? "CREATE TABLE IF NOT EXISTS llama_bench (\n" + columns + "\n);\n\n" : "";
  return table + "INSERT INTO llama_bench (" + names + ") VALUES (" + values + ");\n";
}

std::string markdown_of(const BenchRow& row, bool first) {
  constexpr char kHead[] =
      "| model                |       size |     params | backend  | threads | cache   |            test |"
      "                  t/s |   median |     GB/s | % of bandwidth |\n"
      "| -------------------- | ---------: | ---------: | -------- | ------: | ------- | --------------: |"
      " -------------------: | -------: | -------: | -------------: |\n";
  const Numbers numbers = numbers_of(row);
  const double read = weight_bytes_per_second(row, numbers);
  const double percent = 100 * read / static_cast<double>(row.roofs.bandwidth);
  const double millions = static_cast<double>(row.model.parameters) / 1e6;
  const std::string cache =
      row.key_type == row.value_type ? row.key_type : row.key_type + "/" + row.value_type;
  const std::string speed = format("%.2f ± %.2f", numbers.speed.mean, numbers.speed.deviation);
  std::string text = first ? kHead : "";
  text += format("| %-20s | %10s | %8.2f %s | %-8s | %7u | %-7s | %15s | %21s | %8.2f |",
                 (std::string(row.model.architecture) + " " + row.model.type).c_str(),
                 size_text(row.model.weights_bytes).c_str(), millions < 1000 ? millions : millions / 1000,
                 millions < 1000 ? "M" : "B", row.device.id, row.threads, cache.c_str(),
                 test_name(row.prompt, row.generate, row.depth).c_str(), speed.c_str(), numbers.speed.median);
  text += is_decoding(row) ? format(" %8.2f | %14.1f |\n", read / 1e9, percent)
                           : format(" %8s | %14s |\n", "", "");
  if (row.profile.tokens == 0) return text;
  const double step_ns = row.generate > 0                   ? numbers.ns.median / row.generate
                         : row.prompt == row.profile.tokens ? numbers.ns.median
                                                            : 0;
  return text + stages_text(row.profile, row.roofs, step_ns) +
         "\nEach launch was timed alone. In the test launches overlap.\n\n";
}

// The speed of a mix is that of its prompts, beside what they have alone.
std::string markdown_of(const BenchRow& row, const ServeNumbers& numbers, const std::string& test,
                        bool first) {
  constexpr char kHead[] =
      "| model                | backend  |                 test | prompt t/s | % of alone |        t/s |"
      " gap p50 ms | gap p99 ms | first p50 ms | first p99 ms |\n"
      "| -------------------- | -------- | -------------------: | ---------: | ---------: | ---------: |"
      " ---------: | ---------: | -----------: | -----------: |\n";
  const auto number = [](double value) { return value > 0 ? format("%.2f", value) : std::string(); };
  const double part = numbers.alone_ts > 0 ? 100 * numbers.prompt_ts / numbers.alone_ts : 0;
  return (first ? kHead : "") +
         format("| %-20s | %-8s | %20s | %10s | %10s | %10s | %10.2f | %10.2f | %12.2f | %12.2f |\n",
                (std::string(row.model.architecture) + " " + row.model.type).c_str(), row.device.id,
                test.c_str(), number(numbers.prompt_ts).c_str(), number(part).c_str(),
                number(numbers.generate_ts).c_str(), numbers.gap_p50_ms, numbers.gap_p99_ms,
                numbers.first_p50_ms, numbers.first_p99_ms);
}

std::string markdown_of(const BenchRow& row, const DraftNumbers& numbers, const std::string& test,
                        bool first) {
  constexpr char kHead[] =
      "| model                | backend  |                                 test | t/s without |   t/s with |"
      " speedup | guesses |   right | tokens/step | time/step |\n"
      "| -------------------- | -------- | -----------------------------------: | ----------: | ---------: |"
      " ------: | ------: | ------: | ----------: | --------: |\n";
  return (first ? kHead : "") +
         format("| %-20s | %-8s | %36s | %11.2f | %10.2f | %7.2f | %7llu | %7llu | %11.2f | %9.2f |\n",
                (std::string(row.model.architecture) + " " + row.model.type).c_str(), row.device.id,
                test.c_str(), numbers.plain_ts, numbers.drafted_ts, numbers.speedup(),
                static_cast<unsigned long long>(numbers.drafted),
                static_cast<unsigned long long>(numbers.right), numbers.tokens_per_step(), numbers.step());
}

}  // namespace

std::string time_text() {
  const std::time_t now = std::time(nullptr);
  char text[32] = "";
  std::tm parts{};
  if (gmtime_r(&now, &parts)) std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

std::string test_name(uint32_t prompt, uint32_t generate, uint32_t depth) {
  std::string name = prompt > 0 ? format("pp%u", prompt) : "";
  if (generate > 0) name += format("%stg%u", prompt > 0 ? "+" : "", generate);
  return depth > 0 ? name + format(" @ d%u", depth) : name;
}

std::string BenchReport::add(const BenchRow& row) {
  const bool first = rows_++ == 0 || (form_ == "md" && row.profile.tokens > 0);
  if (form_ == "md") return markdown_of(row, first);
  return add_json(json_of(row), first);
}

std::string BenchReport::add(const BenchRow& row, const ServeNumbers& numbers, uint32_t streams,
                             const std::string& test) {
  const bool first = rows_++ == 0;
  if (form_ == "md") return markdown_of(row, numbers, test, first);
  Json json = head_of(row);
  json.update({{"n_parallel", streams},
               {"test", test},
               {"prompt_ts", numbers.prompt_ts},
               {"generate_ts", numbers.generate_ts},
               {"prompt_alone_ts", numbers.alone_ts > 0 ? Json(numbers.alone_ts) : Json(nullptr)},
               {"gap_p50_ms", numbers.gap_p50_ms},
               {"gap_p99_ms", numbers.gap_p99_ms},
               {"first_p50_ms", numbers.first_p50_ms},
               {"first_p99_ms", numbers.first_p99_ms}});
  return add_json(std::move(json), first);
}

std::string BenchReport::add(const BenchRow& row, const DraftNumbers& numbers, const std::string& test) {
  const bool first = rows_++ == 0;
  if (form_ == "md") return markdown_of(row, numbers, test, first);
  Json json = json_of(row);
  json.update({{"test", test},
               {"plain_ts", numbers.plain_ts},
               {"drafted_ts", numbers.drafted_ts},
               {"speedup", numbers.speedup()},
               {"n_drafted", numbers.drafted},
               {"n_accepted", numbers.right},
               {"n_draw_steps", numbers.steps},
               {"tokens_per_step", numbers.tokens_per_step()},
               {"time_per_step", numbers.step()}});
  return add_json(std::move(json), first);
}

std::string BenchReport::add_json(Json json, bool first) {
  if (form_ == "csv") return csv_of(json, first);
  if (form_ == "sql") return sql_of(json, first);
  if (form_ == "jsonl") return json_text(json, -1);
  if (form_ == "json" || form_ == "svg") list_.push_back(std::move(json));
  return "";
}

std::string BenchReport::finish() {
  return form_ == "json" ? json_text(list_) : form_ == "svg" ? bench_svg(list_) : "";
}

}  // namespace greta::cli
