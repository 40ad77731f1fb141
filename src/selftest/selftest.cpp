#include "selftest/selftest.h"

#include <algorithm>
#include <cstring>

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

OpResult run_check(Device& device, const Check& check, const std::string& kernels) {
  OpResult result{check.op, 0, 0, {}};
  try {
    Rig rig(device);
    rig.only(kernels);
    for (void (*run)(Rig&) : check.run) {
      if (!run) continue;
      run(rig);
      result.kernels = rig.rows_run();
      result.launches = rig.launches();
    }
  } catch (const Failed& failed) {
    result.failure = failed.what;
  }
  return result;
}

}  // namespace

// The pattern names a kernel of this device that the check runs.
bool has_kernel(const Device& device, const Check& check, const std::string& pattern) {
  return std::ranges::any_of(kernel_table(), [&](const KernelRow& row) {
    return !strcmp(row.backend, device.info().backend) && !(row.needs & ~device.info().features) &&
           row.shared_bytes <= device.info().shared_bytes && names_kernel(pattern, row.name) &&
           names(check, op_name(lead_op({row.ops, row.op_count})));
  });
}

Status run_selftest(Device& device, const std::string& name, Report report, void* user) {
  const bool of_op = std::ranges::any_of(kChecks, [&](const Check& check) { return names(check, name); });
  bool known = name.empty();
  for (const Check& check : kChecks) {
    if (!name.empty() && !(of_op ? names(check, name) : has_kernel(device, check, name))) continue;
    known = true;
    if (!report(user, run_check(device, check, of_op ? "" : name)))
      return fail(Code::Cancelled, "the self-test was stopped");
  }
  return known ? Status{} : fail(Code::Argument, "no op %s to check, nor a kernel of that name", name.c_str());
}

}  // namespace greta::selftest
