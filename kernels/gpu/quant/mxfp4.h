// MXFP4: 32 4-bit floats share a power of two, w = 2^(e - 127) * value[q]; the table has doubled values.
//   uint8 e, 4-bit q[32]: byte i holds q[i] low and q[i + 16] high
// Source: OCP Microscaling Formats (MX) 1.0; e = 255, NaN there, is a number in GGUF files.
#define QUANT_PLANES {1, 16}, {0, 1}
#include "kernels/gpu/quant.h"
#include "kernels/gpu/quant/shared/e2m1.h"

void quant_begin() {}

void quant_decode(uint64_t row, uint depth, uint unit, out precise float w[kUnit]) {
  const uvec4 q = load_16(part(row, depth, unit, 0));
  const uint e = load_u8(part(row, depth, unit, 1));
  const float d = uintBitsToFloat(e < 2 ? 0x200000u << e : (e - 1) << 23);  // 2^(e - 128)
#pragma unroll  // HIP knows no [[unroll]], and would leave w in a loop of its own
  [[unroll]] for (int i = 0; i < 16; ++i) {
    w[i] = e2m1(byte_of(q, i)) * d;
    w[i + 16] = e2m1(byte_of(q, i) >> 4) * d;
  }
}
