// The grids of the IQ types (kernels/tables), which a type's header has as kPoints: in shared memory, since
// constants that each thread indexes in its own place are slow. And the signs and levels of IQ2 and IQ3.
#ifndef GRETA_GPU_IQ_GRID_H
#define GRETA_GPU_IQ_GRID_H

// Point j of a constant.
uint point_of_constant(uvec4 eight, uint j) { return eight[j / 2] >> j % 2 * 16 & 0xffff; }

shared uint16_t iq_points[length_of(kPoints) * 8];

void quant_begin() {
  for (uint i = gl_LocalInvocationIndex; i < length_of(kPoints); i += gl_WorkGroupSize.x) {
    const uvec4 eight = kPoints[i];
    [[unroll]] for (uint j = 0; j < 8; ++j) iq_points[i * 8 + j] = uint16_t(point_of_constant(eight, j));
  }
  barrier();
}

// The codes of a point's values, the first lowest: 2 bits for each of 8 or 3 bits for each of 4.
uint point_at(uint i) { return uint(iq_points[i]); }

// What code i of an IQ2 point stands for: 8, 25, 43.
float iq2_level(uint point, int i) {
  const uint code = bitfieldExtract(point, i * 2, 2);
  return float(bitfieldExtract(0x2b1908u, int(code) * 8, 8));
}

// IQ2_XXS, IQ2_XS and IQ3_XXS store 7 signs of 8; the eighth makes their count even. Bit set: negative.
uint even_signs(uint seven) { return seven | uint(bitCount(seven) & 1) << 7; }
#endif
