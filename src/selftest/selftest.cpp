#include "selftest/selftest.h"

namespace greta::selftest {

namespace {

struct Check {
  const char* op;
  void (*run[2])(Rig& rig);
};
constexpr Check kChecks[] = {
    {"embed", {check_embed}},
    {"norm", {check_norm, check_norm_strides}},
    {"matmul", {check_matmul}},
    {"rope", {check_rope, check_rope_strides}},
    {"kv_write, attention", {check_attention}},
    {"gate", {check_gate}},
    {"add", {check_add}},
    {"route", {check_route}},
    {"matmul_expert", {check_matmul_expert, check_matmul_heads}},
    {"combine", {check_combine}},
    {"convert", {check_convert}},
    {"softcap", {check_softcap}},
    {"sample", {check_sample}},
};

// "attention" is a word of "kv_write, attention".
bool names(const Check& check, const std::string& op) {
  return (", " + std::string(check.op) + ", ").find(", " + op + ", ") != std::string::npos;
}

OpResult run_check(Device& device, const Check& check) {
  OpResult result{check.op, 0, 0, {}};
  try {
    Rig rig(device);
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

Status run_selftest(Device& device, const std::string& op, Report report, void* user) {
  bool known = op.empty();
  for (const Check& check : kChecks) {
    if (!op.empty() && !names(check, op)) continue;
    known = true;
    if (!report(user, run_check(device, check))) return fail(Code::Cancelled, "the self-test was stopped");
  }
  return known ? Status{} : fail(Code::Argument, "no op %s to check", op.c_str());
}

}  // namespace greta::selftest
