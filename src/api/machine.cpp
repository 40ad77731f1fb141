// The functions of greta.h that examine the machine.
#include <set>

#include "api/handles.h"

using namespace greta;

// The targets of this build's code objects.
static std::vector<std::string> code_targets() {
  std::set<std::string> targets;
  for (const KernelRow& row : kernel_table())
    if (*row.target) targets.insert(row.target);
  return {targets.begin(), targets.end()};
}

greta_status greta_machine_examine(int (*on_finding)(void* user, const greta_finding* finding), void* user) {
  return greta_machine_examine_with(nullptr, on_finding, user);
}

greta_status greta_machine_examine_with(const greta_runtime_options* given,
                                        int (*on_finding)(void* user, const greta_finding* finding),
                                        void* user) {
  return fenced([&]() -> Status {
    if (!on_finding) return fail(Code::Argument, "on_finding is NULL");
    greta_runtime_options o;
    GRETA_TRY(read_options(given, &o));
    CLog log;
    const std::vector<std::string> targets = code_targets();
    for (const Finding& from : examine_machine({backends(), targets, search_options(o, &log)})) {
      const greta_finding finding = {
          sizeof finding, 0, from.subject.c_str(), from.key.c_str(), from.value.c_str(), from.advice.c_str()};
      if (call_back("on_finding", [&] { return on_finding(user, &finding); }))
        return fail(Code::Cancelled, "the callback stopped the examination at %s", from.subject.c_str());
    }
    return {};
  });
}
