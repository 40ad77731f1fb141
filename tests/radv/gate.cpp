// greta_radv_gate [--update] [--baselines FOLDER] [NAME...]: compiles the pipelines of all Vulkan kernels, or
// of those whose names begin with a NAME, with the RADV device of this machine. RADV_FORCE_FAMILY=navi31
// gives one without a GPU. `--list` prints the pipelines and needs no device.
//
// Prints a line for each and fails on
//   spilled registers and scratch memory
//   more VGPRs than kCeilings allows
//   a kernel of int8 products without v_dot4, or of matrices without v_wmma
//   what has grown since the baseline of this version of Mesa; --update writes it anew
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <thread>

#include "radv/baseline.h"
#include "radv/pipelines.h"
#include "radv/rules.h"

namespace greta::test {
namespace {

std::string instruction_of(const KernelRow& row) {
  if (row.prefix == Prefix::Behind) return "";  // the kernel before it has the matrices
  if (row.needs & kVulkanIntDot) return "v_dot4";
  return row.needs & kVulkanCoopMatrix ? "v_wmma" : "";
}

class Gate {
 public:
  Status open(const std::vector<std::string>& only, const std::string& baselines);
  Status compile_all();  // prints the lines
  void compare();        // with the baseline
  Status update() const;
  int report() const;  // the program's exit code

 private:
  struct Result {
    Pipeline pipeline;
    Compiled compiled;
    bool done = false;
  };

  Status compile(Result& result);
  void print(const Result& result);
  bool left_out(const std::string& name, const BaselineLine& line) const;
  void fail_lines(const std::string& name, const std::vector<std::string>& wrong) {
    for (const std::string& text : wrong) failures_.push_back(name + ": " + text);
  }

  RadvDevice device_;
  std::vector<Result> results_;
  std::vector<std::string> failures_;
  std::string path_;  // of the baseline
  Baseline baseline_;
  bool has_baseline_ = false, whole_ = true;
  uint32_t built_needs_ = 0;  // feature bits of all rows that were compiled into this program
  uint32_t skipped_ = 0, absent_ = 0;
  size_t printed_ = 0;
  std::mutex mutex_;  // over results' done, printed_
};

Status Gate::open(const std::vector<std::string>& only, const std::string& baselines) {
  GRETA_TRY(device_.open());
  whole_ = only.empty();
  path_ = baselines + "/" + device_.mesa() + "/" + device_.family() + ".tsv";
  has_baseline_ = read_baseline(path_, &baseline_);
  for (Pipeline& pipeline : pipelines_of_table()) {
    const KernelRow& row = *pipeline.row;
    built_needs_ |= row.needs;
    const auto begins = [&](const std::string& name) { return std::string_view(row.name).starts_with(name); };
    if (!whole_ && std::none_of(only.begin(), only.end(), begins)) continue;
    if (row.needs & ~device_.physical().info.features)
      ++skipped_;
    else
      results_.push_back({std::move(pipeline), {}, false});
  }
  printf("%s, Mesa %s\n%-52s %5s %5s %5s %7s %7s %6s %6s %6s\n", device_.family().c_str(),
         device_.mesa().c_str(), "pipeline", "lanes", "VGPRs", "SGPRs", "spilled", "scratch", "shared",
         "instr.", "wanted");
  return {};
}

Status Gate::compile(Result& result) {
  KernelCode code = result.pipeline.row->code;
  code.constants = result.pipeline.constants;
  return within(device_.compile(code, instruction_of(*result.pipeline.row), &result.compiled), "%s",
                result.pipeline.name().c_str());
}

// In order, as soon as all before are done: if the driver crashes, it was one after the last line.
void Gate::print(const Result& result) {
  const Compiled& c = result.compiled;
  const uint32_t spilled = c.spilled_vgprs + c.spilled_sgprs;
  printf("%-52s %5u %5u %5u %7u %7u %6u %6u %6u\n", result.pipeline.name().c_str(), c.lanes, c.vgprs, c.sgprs,
         spilled, c.scratch_bytes, c.shared_bytes, c.instructions, c.wanted);
  fflush(stdout);
}

Status Gate::compile_all() {
  std::atomic<size_t> next{0};
  std::vector<std::string> errors;
  const auto work = [&] {
    for (size_t i = next++; i < results_.size(); i = next++) {
      const Status status = compile(results_[i]);
      const std::lock_guard<std::mutex> lock(mutex_);
      if (!status.ok()) errors.push_back(error_text());
      results_[i].done = true;
      for (; printed_ < results_.size() && results_[printed_].done; ++printed_) print(results_[printed_]);
    }
  };
  std::vector<std::thread> threads(std::max(1u, std::thread::hardware_concurrency()));
  for (std::thread& thread : threads) thread = std::thread(work);
  for (std::thread& thread : threads) thread.join();
  if (!errors.empty()) return fail(Code::Device, "%s", errors[0].c_str());
  for (const Result& result : results_) {
    const std::string name = result.pipeline.name();
    fail_lines(name, broken_rules(name, instruction_of(*result.pipeline.row), result.compiled));
  }
  return {};
}

// Pipelines that this build lacks because its glslc knows none of their kind.
bool Gate::left_out(const std::string& name, const BaselineLine& line) const {
  const bool here = std::any_of(results_.begin(), results_.end(),
                                [&](const Result& result) { return result.pipeline.name() == name; });
  return !here && (line.needs & ~built_needs_);
}

void Gate::compare() {
  if (!has_baseline_) return;
  size_t found = 0;
  for (const Result& result : results_) {
    const auto at = baseline_.find(result.pipeline.name());
    if (at == baseline_.end()) {
      fail_lines(result.pipeline.name(), {"not in the baseline"});
      continue;
    }
    ++found;
    fail_lines(result.pipeline.name(), grown_since(at->second.compiled, result.compiled));
  }
  for (const auto& [name, line] : baseline_) absent_ += left_out(name, line);
  if (whole_ && found + absent_ != baseline_.size())
    fail_lines("the baseline",
               {std::to_string(baseline_.size() - found - absent_) + " pipelines are no more"});
}

Status Gate::update() const {
  if (!whole_) return fail(Code::Argument, "--update is for all rows");
  Baseline lines;
  for (const auto& [name, line] : baseline_)
    if (left_out(name, line)) lines[name] = line;
  for (const Result& result : results_)
    lines[result.pipeline.name()] = {result.pipeline.row->needs, result.compiled};
  printf("%s: %zu pipelines\n", path_.c_str(), lines.size());
  return write_baseline(path_, lines);
}

int Gate::report() const {
  for (const std::string& failure : failures_) fprintf(stderr, "FAILED %s\n", failure.c_str());
  if (!has_baseline_) printf("no baseline for Mesa %s: not compared with one\n", device_.mesa().c_str());
  printf(
      "%s, Mesa %s: %zu pipelines, %zu failures; %u need features that the device lacks; %u of the baseline "
      "are not in this build\n",
      device_.family().c_str(), device_.mesa().c_str(), results_.size(), failures_.size(), skipped_, absent_);
  // Some names may all be of kernels that the device lacks features for; all kernels together are not.
  return failures_.empty() && (!results_.empty() || (!whole_ && skipped_)) ? 0 : 1;
}

int list() {
  for (const Pipeline& pipeline : pipelines_of_table()) printf("%s\n", pipeline.name().c_str());
  return 0;
}

int run(bool update, const std::vector<std::string>& only, const char* baselines) {
  Gate gate;
  const auto work = [&]() -> Status {
    GRETA_TRY(gate.open(only, baselines));
    GRETA_TRY(gate.compile_all());
    if (update) return gate.update();
    gate.compare();
    return {};
  };
  if (!work().ok()) {
    fprintf(stderr, "FAILED %s\n", error_text());
    return 1;
  }
  return gate.report();
}

}  // namespace
}  // namespace greta::test

int main(int argc, char** argv) {
  bool update = false;
  std::vector<std::string> only;
  const char* baselines = GRETA_RADV_BASELINE;
  for (int i = 1; i < argc; ++i) {
    if (!strcmp(argv[i], "--list")) return greta::test::list();
    if (!strcmp(argv[i], "--update"))
      update = true;
    else if (!strcmp(argv[i], "--baselines") && i + 1 < argc)
      baselines = argv[++i];
    else
      only.push_back(argv[i]);
  }
  return greta::test::run(update, only, baselines);
}
