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

uint64_t form_row_bytes(Form form, uint64_t depth) {
  switch (form) {
    case Form::F32:
      return depth * sizeof(float);
    case Form::Q8:
      return q8_row_bytes(depth);
    case Form::Q8X16:
      return q8x16_row_bytes(depth);
    case Form::F16:
      return depth * 2;
  }
  return 0;
}

const char* layout_name(Layout layout) {
  static constexpr const char* kNames[] = {"gguf", "packed", "planes"};
  return kNames[uint32_t(layout)];
}

// The bytes of one matrix row in the layout of planes, or in GGUF order if the type has no planes.
static uint64_t plane_row_bytes(QuantType type, uint64_t depth) {
  static constexpr struct {
    QuantType type;
    uint32_t bytes[5];  // of a block in each plane
  } kPlanes[] = {
#define QUANT_PLANES_OF(name, o0, b0, o1, b1, o2, b2, o3, b3, o4, b4) {QuantType::name, {b0, b1, b2, b3, b4}},
#include "kernels/abi/quant_planes.inc"  // made by the build
#undef QUANT_PLANES_OF
  };
  for (const auto& planes : kPlanes) {
    if (planes.type != type) continue;
    uint64_t bytes = 0;
    for (const uint32_t of_block : planes.bytes)
      bytes += round_up(depth / quant_info(type).block * of_block, 16);
    return bytes;
  }
  return quant_bytes(type, depth);
}

uint64_t tensor_bytes(QuantType type, Layout layout, uint64_t n, uint64_t depth, uint64_t count) {
  if (layout == Layout::Planes) return plane_row_bytes(type, depth) * n * count;
  const uint64_t rows = layout == Layout::Packed ? round_up(n, kPackRows) : n;
  return quant_bytes(type, depth) * rows * count;
}

}  // namespace greta
