#include "compute/op.h"

#include "compute/kernel_table.h"

namespace greta {

#define OP(name, Name) extern const OpInfo op_##name;
#include "compute/ops.def"
#undef OP

const char* op_name(Op op) {
  static constexpr const char* kNames[] = {
#define OP(name, Name) #name,
#include "compute/ops.def"
#undef OP
  };
  return op < Op::count ? kNames[uint32_t(op)] : "?";
}

const OpInfo& op_info(Op op) {
  static const OpInfo* const kInfos[] = {
#define OP(name, Name) &op_##name,
#include "compute/ops.def"
#undef OP
  };
  return *kInfos[uint32_t(op)];
}

uint64_t tensor_bytes(QuantType type, Layout layout, uint64_t n, uint64_t depth, uint64_t count) {
  const uint64_t rows = layout == Layout::Packed ? round_up(n, kPackRows) : n;
  return quant_bytes(type, depth) * rows * count;
}

}  // namespace greta
