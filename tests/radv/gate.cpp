// greta_radv_gate [--update] [ROW]: compiles the pipelines of all Vulkan kernels, or of those whose names
// begin with ROW, with the RADV device of this machine. RADV_FORCE_FAMILY=navi31 gives one without a GPU.
//
// Prints a line for each and fails on
//   spilled registers and scratch memory, but for what kKnown names
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

namespace greta::test {
namespace {

// A SIMD has 512 VGPRs of 64 lanes on RDNA 2 and 768 on RDNA 3 and 4; what a subgroup takes says how many
// subgroups run at once, at most 16. The first that fits holds.
struct Ceiling {
  const char* pipeline;  // its name begins so
  uint32_t vgprs;
};
constexpr Ceiling kCeilings[] = {
    {"matmul_rows_q5_k", 128},    // 4 and 6: a unit of its weights takes 12 words
    {"matmul_rows_q3_k", 128},    // 11 words; on RDNA 2, where rows are rotated
    {"matmul_rows_tq1_0", 128},   // 9 words and two sets of digits; likewise
    {"matmul_rows", 96},          // 5 and 8 subgroups, which must hide the latency of memory
    {"matmul_tiles_cm1", 228},    // shared memory leaves room for 2 subgroups
    {"matmul_tiles_plain", 144},  // 3 and 5
    // The same of experts.
    {"matmul_expert_rows_q5_k", 128},
    {"matmul_expert_rows", 96},
    {"matmul_expert_summed_q5_k", 128},
    {"matmul_expert_summed", 96},
    {"matmul_expert_tiles_cm1", 228},
    {"matmul_expert_tiles_plain_iq", 192},  // with grids, by Mesa 26.2 for RDNA 4, which has matrix units; else 144
    {"matmul_expert_tiles_plain", 144},
    {"attention", 256},           // sums of up to 8 heads, or of values of 512
    {"", 120},
};

struct Known {
  const char* pipeline;
  uint32_t spilled_vgprs, scratch_bytes;
};
constexpr Known kKnown[] = {
    // 64 queries of latent attention: 128 sums for each lane. Mesa 25.0 keeps them in scratch memory, 26.2
    // spills.
    {"attention_tiles 256,16,1,576,512,", 32, 32768},
};

// What may differ from the baseline without a word: a step in which VGPRs are given (12 on RDNA 3), and as
// much code as another glslc makes.
constexpr uint32_t kMoreVgprs = 12, kMorePercent = 10;

bool begins(const std::string& text, const char* with) { return text.rfind(with, 0) == 0; }

bool grown(uint32_t now, uint32_t before) { return now > before + before * kMorePercent / 100 + 16; }

std::string instruction_of(const KernelRow& row) {
  if (row.needs & kVulkanIntDot) return "v_dot4";
  return row.needs & kVulkanCoopMatrix ? "v_wmma" : "";
}

class Gate {
 public:
  Status open(const char* only);
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
  void check(const Result& result);
  void compare(const Result& result, const Compiled& before);
  bool left_out(const std::string& name, const BaselineLine& line) const;
  void fail_line(const std::string& text) { failures_.push_back(text); }

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

Status Gate::open(const char* only) {
  GRETA_TRY(device_.open());
  whole_ = !*only;
  path_ = std::string(GRETA_RADV_BASELINE) + "/" + device_.mesa() + "/" + device_.family() + ".tsv";
  has_baseline_ = read_baseline(path_, &baseline_);
  for (Pipeline& pipeline : pipelines_of_table()) {
    const KernelRow& row = *pipeline.row;
    built_needs_ |= row.needs;
    if (!begins(row.name, only)) continue;
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
  for (const Result& result : results_) check(result);
  return {};
}

// What holds with every version of Mesa.
void Gate::check(const Result& result) {
  const Compiled& c = result.compiled;
  const std::string name = result.pipeline.name(), wanted = instruction_of(*result.pipeline.row);
  const auto named = [&](const auto& entry) { return begins(name, entry.pipeline); };
  const auto found = std::find_if(std::begin(kKnown), std::end(kKnown), named);
  const Known known = found == std::end(kKnown) ? Known{"", 0, 0} : *found;
  if (c.spilled_vgprs > known.spilled_vgprs || c.spilled_sgprs)
    fail_line(name + ": spills " + std::to_string(c.spilled_vgprs) + " VGPRs and " +
              std::to_string(c.spilled_sgprs) + " SGPRs");
  else if (c.scratch_bytes > known.scratch_bytes)
    fail_line(name + ": " + std::to_string(c.scratch_bytes) + " bytes of scratch memory");
  const Ceiling& ceiling = *std::find_if(std::begin(kCeilings), std::end(kCeilings), named);
  if (c.vgprs > ceiling.vgprs)
    fail_line(name + ": " + std::to_string(c.vgprs) + " VGPRs, at most " + std::to_string(ceiling.vgprs));
  if (!wanted.empty() && !c.wanted) fail_line(name + ": no " + wanted);
}

void Gate::compare(const Result& result, const Compiled& before) {
  const Compiled& c = result.compiled;
  const struct {
    const char* what;
    uint32_t now, before;
    bool bad;
  } lines[] = {
      {"lanes", c.lanes, before.lanes, c.lanes != before.lanes},
      {"VGPRs", c.vgprs, before.vgprs, c.vgprs > before.vgprs + kMoreVgprs},
      {"bytes of shared memory", c.shared_bytes, before.shared_bytes,
       grown(c.shared_bytes, before.shared_bytes)},
      {"instructions", c.instructions, before.instructions, grown(c.instructions, before.instructions)},
      {"wanted instructions", c.wanted, before.wanted, c.wanted < before.wanted}};
  for (const auto& line : lines)
    if (line.bad)
      fail_line(result.pipeline.name() + ": " + std::to_string(line.now) + " " + line.what +
                ", the baseline has " + std::to_string(line.before));
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
      fail_line(result.pipeline.name() + ": not in the baseline");
      continue;
    }
    ++found;
    compare(result, at->second.compiled);
  }
  for (const auto& [name, line] : baseline_) absent_ += left_out(name, line);
  if (whole_ && found + absent_ != baseline_.size())
    fail_line("the baseline has " + std::to_string(baseline_.size() - found - absent_) +
              " pipelines that are no more");
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
  return failures_.empty() && !results_.empty() ? 0 : 1;
}

int run(bool update, const char* only) {
  Gate gate;
  const auto work = [&]() -> Status {
    GRETA_TRY(gate.open(only));
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
  const char* only = "";
  for (int i = 1; i < argc; ++i) {
    if (!strcmp(argv[i], "--update"))
      update = true;
    else
      only = argv[i];
  }
  return greta::test::run(update, only);
}
