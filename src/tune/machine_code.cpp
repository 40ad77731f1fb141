// What drivers tell of the machine code of kernels.
#include "tune/tune.h"

namespace greta {

std::vector<uint32_t> constants_of(const KernelRow& row, const Launch& launch) {
  uint32_t fields[kMaxConstants + 1];
  return {fields, fields + kernel_constants(row, launch.fields(), fields)};
}

Status MachineCodes::of(const KernelRow& row, const Launch& launch, std::string* out) {
  const std::vector<uint32_t> constants = constants_of(row, launch);
  const auto [known, is_new] = known_.try_emplace({&row, constants});
  if (is_new) {
    KernelCode code = row.code;
    code.constants = constants;
    const Status told = device_.describe_code(code, &known->second);
    if (told.code == Code::Unsupported) {
      clear_error_text();
      known->second.clear();
    } else {
      GRETA_TRY(told);
    }
  }
  *out = known->second;
  return {};
}

}  // namespace greta
