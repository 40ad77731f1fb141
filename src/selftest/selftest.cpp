#include "selftest/selftest.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <set>

namespace greta::selftest {

namespace {

struct Check {
  const char* op;
  void (*run[3])(Rig& rig);
};
constexpr Check kChecks[] = {
    {"embed", {check_embed}},
    {"norm", {check_norm, check_norm_strides}},
    {"matmul", {check_matmul}},
    {"rope", {check_rope, check_rope_strides, check_rope_sequences}},
    {"kv_write, attention", {check_attention}},
    {"gate", {check_gate}},
    {"add", {check_add}},
    {"route", {check_route, check_routers}},
    {"matmul_expert", {check_matmul_expert, check_matmul_heads, check_expert_sequences}},
    {"combine", {check_combine}},
    {"convert", {check_convert}},
    {"softcap", {check_softcap}},
    {"sample", {check_sample}},
    {"sum", {check_sum}},
};

// "attention" is a word of "kv_write, attention".
bool names(const Check& check, const std::string& op) {
  return (", " + std::string(check.op) + ", ").find(", " + op + ", ") != std::string::npos;
}

// A kernel of this device that the check runs, and that the pattern names.
bool runs(const Device& device, const Check& check, const std::string& pattern, const KernelRow& row) {
  return usable(row, {&device.info(), false}) && (pattern.empty() || names_kernel(pattern, row.name)) &&
         names(check, op_name(lead_op({row.ops, row.op_count})));
}

struct Part {
  std::vector<bool> ran;  // by row of the kernel table
  uint64_t launches = 0;
  std::string failure;
};

// A check, of kernels for one type of weights or all.
Part run_part(Device& device, const Check& check, const std::string& kernels, std::optional<QuantType> type) {
  Part part;
  try {
    Rig rig(device);
    rig.only(kernels);
    if (type) rig.only(*type);
    for (void (*run)(Rig&) : check.run) {
      if (!run) continue;
      run(rig);
      part.ran = rig.ran();
      part.launches = rig.launches();
    }
  } catch (const Failed& failed) {
    part.failure = failed.what;
  } catch (const std::exception& error) {  // of memory
    part.failure = error.what();
  }
  return part;
}

// What parts a check has: one for each type of weights where a driver compiles the kernels, which takes it up to a second
// for each.
std::vector<std::optional<QuantType>> parts_of(const Device& device, const Check& check, const std::string& kernels) {
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

OpResult run_check(Device& device, const Check& check, const std::string& kernels) {
  struct Work {
    Device& device;
    const Check& check;
    const std::string& kernels;
    std::vector<std::optional<QuantType>> types;
    std::vector<Part> parts;
    std::atomic<size_t> next{0};
  } work{device, check, kernels, parts_of(device, check, kernels), {}};
  work.parts.resize(work.types.size());
  ThreadPool threads(uint32_t(std::min<size_t>(work.types.size(), std::min(kMaxCompilers, cpu_count()))));
  threads.run(
      [](void* context, uint32_t) noexcept {
        Work& w = *static_cast<Work*>(context);
        for (size_t i; (i = w.next++) < w.types.size();) w.parts[i] = run_part(w.device, w.check, w.kernels, w.types[i]);
      },
      &work);
  OpResult result{check.op, 0, 0, {}};
  std::vector<bool> ran(kernel_table().size());
  for (const Part& part : work.parts) {
    result.launches += part.launches;
    if (result.failure.empty()) result.failure = part.failure;
    for (size_t i = 0; i < part.ran.size(); ++i) ran[i] = ran[i] || part.ran[i];
  }
  result.kernels = uint32_t(std::count(ran.begin(), ran.end(), true));
  return result;
}

}  // namespace

Status run_selftest(Device& device, const std::string& name, Report report, void* user) {
  const bool of_op = std::ranges::any_of(kChecks, [&](const Check& check) { return names(check, name); });
  bool known = name.empty();
  for (const Check& check : kChecks) {
    const auto named = [&](const KernelRow& row) { return runs(device, check, name, row); };
    if (!name.empty() && !(of_op ? names(check, name) : std::ranges::any_of(kernel_table(), named))) continue;
    known = true;
    if (!report(user, run_check(device, check, of_op ? "" : name)))
      return fail(Code::Cancelled, "the self-test was stopped");
  }
  return known ? Status{} : fail(Code::Argument, "no op %s to check, nor a kernel of that name", name.c_str());
}

}  // namespace greta::selftest
