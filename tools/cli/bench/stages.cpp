// Prints the profile of a step as a table and as JSON.
#include "bench/stages.h"

#include <algorithm>

#include "console.h"

namespace greta::cli {
namespace {

struct Rates {
  double bytes, flops;  // per second
  Bound bound;
};

Rates rates_of(const StageWork& work, const Roofs& roofs) {
  const double seconds = 1e-9 * static_cast<double>(std::max<uint64_t>(work.ns, 1));
  return {static_cast<double>(work.bytes) / seconds, static_cast<double>(work.flops) / seconds,
          bound_of(roofs, work.bytes, work.flops, work.ns)};
}

void add(StageWork& to, const StageWork& work) {
  to.launches += work.launches;
  to.ns += work.ns;
  to.bytes += work.bytes;
  to.flops += work.flops;
}

// Adds up the kernels of each stage.
std::vector<StageWork> sums_by_stage(const BenchProfile& profile) {
  std::vector<StageWork> sums;
  for (const StageWork& work : profile.works) {
    const auto same = [&](const StageWork& sum) { return sum.stage == work.stage; };
    auto sum = std::find_if(sums.begin(), sums.end(), same);
    if (sum == sums.end()) sum = sums.insert(sum, {work.stage, "", 0, 0, 0, 0});
    add(*sum, work);
  }
  return sums;
}

Json to_json(const char* key, const std::string& name, const StageWork& work, const Roofs& roofs) {
  const Rates rates = rates_of(work, roofs);
  return {
      {key, name},
      {"launches", work.launches},
      {"ns", work.ns},
      {"bytes", work.bytes},
      {"flops", work.flops},
      {"gb_s", rates.bytes / 1e9},
      {"bandwidth_percent", 100 * rates.bytes / static_cast<double>(std::max<uint64_t>(roofs.bandwidth, 1))},
      {"tflop_s", rates.flops / 1e12},
      {"bound", rates.bound.arithmetic ? "arithmetic" : "bandwidth"},
      {"roof_percent", rates.bound.percent}};
}

std::string line(const std::string& name, const StageWork& work, double total_ns, const Roofs& roofs) {
  const Rates rates = rates_of(work, roofs);
  const std::string launches = work.launches ? std::to_string(work.launches) : "";
  return format("| %-36s | %4s | %8.1f | %6.1f | %6.1f%c | %7.3f%c | %9.1f |\n", name.c_str(),
                launches.c_str(), static_cast<double>(work.ns) * 1e-3,
                100 * static_cast<double>(work.ns) / std::max(total_ns, 1.0), rates.bytes * 1e-9,
                rates.bound.arithmetic ? ' ' : '*', rates.flops * 1e-12, rates.bound.arithmetic ? '*' : ' ',
                rates.bound.percent);
}

}  // namespace

Json stages_json(const BenchProfile& profile, const Roofs& roofs) {
  Json list = Json::array();
  for (const StageWork& sum : sums_by_stage(profile)) {
    Json stage = to_json("stage", sum.stage, sum, roofs), kernels = Json::array();
    for (const StageWork& work : profile.works) {
      if (work.stage == sum.stage) kernels.push_back(to_json("kernel", work.kernel, work, roofs));
    }
    stage["kernels"] = kernels;
    list.push_back(stage);
  }
  return list;
}

std::string stages_text(const BenchProfile& profile, const Roofs& roofs, double step_ns) {
  std::string text = format(
      "\nMeasured roofs: %.1f GB/s, %.3f TFLOP/s; * marks the one that bounds a line. Tokens in the step: "
      "%u.\n\n",
      static_cast<double>(roofs.bandwidth) * 1e-9, static_cast<double>(roofs.arithmetic) * 1e-12,
      profile.tokens);
  text +=
      "| stage and its kernels                | runs |       us | % time |    GB/s |  TFLOP/s | % of roof |\n"
      "| ------------------------------------ | ---: | -------: | -----: | ------: | -------: | --------: "
      "|\n";
  StageWork total{"total", "", 0, 0, 0, 0};
  for (const StageWork& work : profile.works) add(total, work);
  const double total_ns = static_cast<double>(total.ns);
  for (const StageWork& sum : sums_by_stage(profile)) {
    text += line(sum.stage, sum, total_ns, roofs);
    for (const StageWork& work : profile.works) {
      if (work.stage == sum.stage) text += line("  " + work.kernel, work, total_ns, roofs);
    }
  }
  text += line("total", total, total_ns, roofs);
  if (step_ns > 0)
    text += line("step of the test", {"", "", 0, static_cast<uint64_t>(step_ns), total.bytes, total.flops},
                 total_ns, roofs);
  return text;
}

}  // namespace greta::cli
