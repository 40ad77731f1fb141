// The profile of a step as a table and as JSON.
#include "bench_stages.h"

#include <algorithm>

#include "console.h"

namespace greta::cli {
namespace {

struct Rates {
  double bytes, percent, flops;  // per second; of the bandwidth
};

Rates rates_of(const StageWork& work, uint64_t bandwidth) {
  const double seconds = 1e-9 * static_cast<double>(std::max<uint64_t>(work.ns, 1));
  const double bytes = static_cast<double>(work.bytes) / seconds;
  return {bytes, 100 * bytes / static_cast<double>(std::max<uint64_t>(bandwidth, 1)),
          static_cast<double>(work.flops) / seconds};
}

void add(StageWork& to, const StageWork& work) {
  to.launches += work.launches;
  to.ns += work.ns;
  to.bytes += work.bytes;
  to.flops += work.flops;
}

// What of the profile is of the same stage, or all of it: one sum for each.
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

Json to_json(const char* key, const std::string& name, const StageWork& work, uint64_t bandwidth) {
  const Rates rates = rates_of(work, bandwidth);
  return {{key, name},
          {"launches", work.launches},
          {"ns", work.ns},
          {"bytes", work.bytes},
          {"flops", work.flops},
          {"gb_s", rates.bytes / 1e9},
          {"bandwidth_percent", rates.percent},
          {"tflop_s", rates.flops / 1e12}};
}

std::string line(const std::string& stage, const std::string& kernel, const StageWork& work, double total_ns,
                 uint64_t bandwidth) {
  const Rates rates = rates_of(work, bandwidth);
  const std::string launches = work.launches ? std::to_string(work.launches) : "";
  return format("| %-16s | %-36s | %8s | %10.1f | %6.1f | %8.1f | %14.1f | %9.3f |\n", stage.c_str(), kernel.c_str(),
                launches.c_str(), static_cast<double>(work.ns) * 1e-3,
                100 * static_cast<double>(work.ns) / std::max(total_ns, 1.0), rates.bytes * 1e-9, rates.percent,
                rates.flops * 1e-12);
}

}  // namespace

Json stages_json(const BenchProfile& profile, uint64_t bandwidth) {
  Json list = Json::array();
  for (const StageWork& sum : sums_by_stage(profile)) {
    Json stage = to_json("stage", sum.stage, sum, bandwidth), kernels = Json::array();
    for (const StageWork& work : profile.works) {
      if (work.stage == sum.stage) kernels.push_back(to_json("kernel", work.kernel, work, bandwidth));
    }
    stage["kernels"] = kernels;
    list.push_back(stage);
  }
  return list;
}

std::string stages_text(const BenchProfile& profile, uint64_t bandwidth, double step_ns) {
  std::string text =
      "\n| stage            | kernel                               | launches |         us | % time |     GB/s |"
      " % of bandwidth |   TFLOP/s |\n"
      "| ---------------- | ------------------------------------ | -------: | ---------: | -----: | -------: |"
      " -------------: | --------: |\n";
  StageWork total{"total", "", 0, 0, 0, 0};
  for (const StageWork& work : profile.works) add(total, work);
  const double total_ns = static_cast<double>(total.ns);
  for (const StageWork& sum : sums_by_stage(profile)) {
    std::vector<StageWork> kernels;
    for (const StageWork& work : profile.works) {
      if (work.stage == sum.stage) kernels.push_back(work);
    }
    text += line(sum.stage, kernels.size() == 1 ? kernels[0].kernel : "", sum, total_ns, bandwidth);
    if (kernels.size() == 1) continue;
    for (const StageWork& work : kernels) text += line("", work.kernel, work, total_ns, bandwidth);
  }
  text += line("total", "", total, total_ns, bandwidth);
  if (step_ns > 0) {
    const StageWork step{"", "", 0, static_cast<uint64_t>(step_ns), total.bytes, total.flops};
    text += line("step of the test", "", step, total_ns, bandwidth);
  }
  return text + format("\nEach launch alone; in the test they overlap. Tokens in the step: %u. Bandwidth measured: "
                       "%.1f GB/s; no bound on arithmetic is measured.\n\n",
                       profile.tokens, static_cast<double>(bandwidth) * 1e-9);
}

}  // namespace greta::cli
