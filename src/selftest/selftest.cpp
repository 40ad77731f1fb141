#include "selftest/selftest.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <mutex>
#include <set>

namespace greta::selftest {

namespace {

constexpr std::chrono::milliseconds kMoment{50};  // between two calls of the progress callback
constexpr uint32_t kMaxThreads = 16;              // that run parts of a check, and compile its kernels

struct Check {
  const char* op;
  void (*run[3])(Rig& rig);
};
constexpr Check kChecks[] = {
    {"embed", {check_embed}},
    {"norm", {check_norm, check_norm_strides, check_norm_of_not_finite}},
    {"matmul", {check_matmul, check_matmul_outputs}},
    {"rope", {check_rope, check_rope_strides, check_rope_sequences}},
    {"kv_write, attention", {check_attention, check_attention_of_not_finite}},
    {"layer_norm", {check_layer_norm}},
    {"gate", {check_gate, check_gate_of_not_finite}},
    {"add", {check_add}},
    {"multiply", {check_multiply}},
    {"route", {check_route, check_routers}},
    {"matmul_expert", {check_matmul_expert, check_matmul_heads, check_expert_sequences}},
    {"combine", {check_combine}},
    {"convert", {check_convert, check_convert_of_not_finite}},
    {"softcap", {check_softcap, check_softcap_of_not_finite}},
    {"cast", {check_cast}},
    {"softmax", {check_softmax, check_softmax_of_not_finite}},
    {"scale", {check_scale}},
    {"conv1d", {check_conv1d, check_conv1d_of_not_finite}},
    {"scan", {check_scan, check_scan_of_not_finite, check_scan_cuts}},
    {"sample", {check_sample}},
    {"sum", {check_sum}},
    {"products", {check_products}},
    {"gemm", {check_gemm}},
};

// Returns true if the check is for this op. "kv_write, attention" is for either of the two.
bool names(const Check& check, const std::string& op) {
  return (", " + std::string(check.op) + ", ").find(", " + op + ", ") != std::string::npos;
}

// Returns true if the check runs this row on this device, and the pattern names it.
bool runs(const Device& device, const Check& check, const std::string& pattern, const KernelRow& row) {
  return usable(row, {&device.info(), false}) && (pattern.empty() || names_kernel(pattern, row.name)) &&
         names(check, op_name(lead_op({row.ops, row.op_count})));
}

struct Part {
  std::vector<bool> ran;  // by row of the kernel table
  uint64_t launches = 0;
  std::string failure;
};

struct Wanted {
  std::string kernels;  // a pattern of names, "" for all
  bool quick;           // Rig::hurry()
  CodeBytes code = {};  // Rig::give_code()
};

Status unknown_name(const std::string& name) {
  std::string ops;
  for (const Check& check : kChecks) ops += (ops.empty() ? "" : ", ") + std::string(check.op);
  return fail(Code::Argument, "no op %s to check, nor a kernel of that name (the ops are %s)", name.c_str(),
              ops.c_str());
}

// Runs a check for kernels of one type of weights, or of all types. Throws std::bad_alloc.
Part run_part(Device& device, const Check& check, const Wanted& wanted, std::optional<QuantType> type,
              Watched* watched) {
  Part part;
  try {
    Rig rig(device);
    rig.only(wanted.kernels);
    if (wanted.quick) rig.hurry();
    if (!wanted.code.empty()) rig.give_code(wanted.code);
    rig.watch(watched);
    if (type) rig.only(*type);
    for (void (*run)(Rig&) : check.run) {
      if (!run) continue;
      run(rig);
      part.ran = rig.ran();
      part.launches = rig.launches();
    }
  } catch (const Stopped&) {
  } catch (Failed& failed) {
    part.failure = std::move(failed.what);
  }
  return part;
}

// The parts of a check that run side by side. Where a driver compiles the kernels, which takes up to a second
// for each, there is a part for each type of weights; else there is one.
std::vector<std::optional<QuantType>> parts_of(const Device& device, const Check& check,
                                               const std::string& kernels) {
  std::set<QuantType> types;
  bool compiled = false;
  for (const KernelRow& row : kernel_table()) {
    if (!runs(device, check, kernels, row)) continue;
    types.insert(row.type);
    compiled |= !row.code.code.empty();
  }
  if (!compiled || types.size() < 2) return {std::nullopt};
  return {types.begin(), types.end()};
}

// The parts of a check, which several threads take in turn.
struct Work {
  Device& device;
  const Check& check;
  const Wanted& wanted;
  std::vector<std::optional<QuantType>> types;
  std::vector<Part> parts;
  Watched watched = {};
  std::atomic<size_t> next{0};
  std::mutex mutex = {};
  std::condition_variable changed = {};
  size_t done = 0;
  std::atomic<bool> out_of_memory{false};

  void run_parts() noexcept {
    for (size_t i; (i = next++) < types.size();) {
      try {
        if (!watched.stop) parts[i] = run_part(device, check, wanted, types[i], &watched);
      } catch (const std::bad_alloc&) {
        out_of_memory = watched.stop = true;
      }
      const std::lock_guard<std::mutex> lock(mutex);
      ++done;
      changed.notify_all();
    }
  }
  bool wait_until_done() {  // waits for kMoment at most; returns true if all parts are done
    std::unique_lock<std::mutex> lock(mutex);
    return changed.wait_for(lock, kMoment, [&] { return done == types.size(); });
  }
};

struct Watcher {
  Progress progress;
  void* user;

  // An exception of the caller's callback stops the parts, and is thrown again when they are done.
  void watch(Work& work, uint32_t kernels, std::exception_ptr* thrown) const noexcept {
    try {
      tell(work, kernels);
    } catch (...) {
      *thrown = std::current_exception();
      work.watched.stop = true;
    }
  }
  void tell(Work& work, uint32_t kernels) const {
    Watched& w = work.watched;
    while (!work.wait_until_done()) {
      const OpProgress now{work.check.op, w.kernel, std::min<uint32_t>(w.kernels, kernels), kernels,
                           w.launches};
      if (progress && !w.stop && !progress(user, now)) w.stop = true;
    }
  }
};

// Returns false if it was stopped.
bool run_check(Device& device, const Check& check, const Wanted& wanted, const Watcher& watcher,
               OpResult* out) {
  Work work{device, check, wanted, parts_of(device, check, wanted.kernels), {}};
  work.parts.resize(work.types.size());
  for (const KernelRow& row : kernel_table())
    work.watched.counted.push_back(runs(device, check, wanted.kernels, row));
  struct Job {
    Work& work;
    const Watcher& watcher;
    uint32_t kernels;
    std::exception_ptr thrown;
  } job{work, watcher, uint32_t(std::ranges::count(work.watched.counted, true)), nullptr};
  ThreadPool threads(1 + uint32_t(std::min<size_t>(work.types.size(), std::min(kMaxThreads, cpu_count()))));
  if (threads.workers() == 1) work.run_parts();  // the system refuses threads, so nobody can watch
  threads.run(
      [](void* context, uint32_t worker) noexcept {
        Job& j = *static_cast<Job*>(context);
        worker ? j.work.run_parts() : j.watcher.watch(j.work, j.kernels, &j.thrown);
      },
      &job);
  if (work.out_of_memory) throw std::bad_alloc();
  if (job.thrown) std::rethrow_exception(job.thrown);
  *out = {check.op, 0, 0, {}};
  std::vector<bool> ran(kernel_table().size());
  for (const Part& part : work.parts) {
    out->launches += part.launches;
    if (out->failure.empty()) out->failure = part.failure;
    for (size_t i = 0; i < part.ran.size(); ++i) ran[i] = ran[i] || part.ran[i];
  }
  out->kernels = uint32_t(std::count(ran.begin(), ran.end(), true));
  return !work.watched.stop;
}

}  // namespace

Status run_selftest(Device& device, const std::string& name, Report report, void* user, Progress progress,
                    bool quick) {
  const Watcher watcher{progress, user};
  const bool of_op = std::ranges::any_of(kChecks, [&](const Check& check) { return names(check, name); });
  bool known = name.empty();
  for (const Check& check : kChecks) {
    const auto named = [&](const KernelRow& row) { return runs(device, check, name, row); };
    if (!name.empty() && !(of_op ? names(check, name) : std::ranges::any_of(kernel_table(), named))) continue;
    known = true;
    OpResult result{};
    const bool whole = run_check(device, check, {of_op ? "" : name, quick}, watcher, &result);
    const bool told = whole || !result.failure.empty();
    if ((told && !report(user, result)) || !whole) return fail(Code::Cancelled, "the self-test was stopped");
  }
  return known ? Status{} : unknown_name(name);
}

Status check_kernels(Device& device, const std::string& name, const CodeBytes& code, OpResult* out) {
  *out = {};
  const RowFilter filter{&device.info(), false};
  for (const Check& check : kChecks) {
    const auto named = [&](const KernelRow& row) {
      return name == row.name && usable(row, filter) && runs(device, check, name, row);
    };
    if (std::ranges::none_of(kernel_table(), named)) continue;
    Watched watched;
    watched.counted.assign(kernel_table().size(), false);
    const Part part = run_part(device, check, {name, true, code}, std::nullopt, &watched);
    out->op = check.op;
    out->kernels += uint32_t(std::ranges::count(part.ran, true));
    out->launches += part.launches;
    if (out->failure.empty()) out->failure = part.failure;
  }
  if (out->op) return {};
  for (const KernelRow& row : kernel_table())
    if (name == row.name && !strcmp(row.backend, device.info().backend))
      return fail(Code::Argument, "the device cannot run the kernel %s", name.c_str());
  return fail(Code::Argument, "%s has no kernel %s", device.info().backend, name.c_str());
}

}  // namespace greta::selftest
