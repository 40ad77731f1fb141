// The builtins of kernels with matrix instructions, which include it beside device_builtins.h. All lanes of a
// wave meet, and their operands become two matrices by the layout that the instruction has
// (kernels/hip/matrix_layouts.h).
#pragma once
#include <cstring>

#include "kernels/hip/matrix_layouts.h"
#include "tests/mock_hip/lane_emulator.h"

namespace mock_hip {

extern bool wrong_matrices;  // orders.h

// What a lane gives. T is the type of the values of A and B.
template <class T, const MatrixLayout& layout>
struct MatrixOperands {
  T a[layout.values], b[layout.values];
  float sums[layout.results];
};

template <class T, const MatrixLayout& layout>
void multiply_wave(Wave& wave) {
  using Operands = MatrixOperands<T, layout>;
  float a[16][layout.columns], b[layout.columns][16];
  if (wave.size != layout.lanes) {
    wave.fault = "a matrix instruction of waves with another number of lanes";
    return;
  }
  for (unsigned lane = 0; lane < layout.lanes; ++lane) {
    if (!wave.in[lane]) {
      wave.fault = "lanes are absent where a wave multiplies matrices";
      return;
    }
    const Operands& in = *static_cast<const Operands*>(wave.in[lane]);
    // Without steps between parts they have the same values.
    const void* first = wave.in[lane % 16];
    if (layout.part_step == 0 && std::memcmp(&in, first, 2 * sizeof in.a)) {
      wave.fault = "lanes that a matrix instruction wants to be equal differ";
      return;
    }
    for (unsigned i = 0; i < layout.values; ++i) {
      const unsigned column = layout.column_of(lane, i);
      a[lane % 16][column] = float(in.a[i]);
      b[column][lane % 16] = float(in.b[i]);
    }
  }
  float d[16][16] = {};
  for (unsigned row = 0; row < 16 && !wrong_matrices; ++row)
    for (unsigned k = 0; k < layout.columns; ++k)
      for (unsigned column = 0; column < 16; ++column) d[row][column] += a[row][k] * b[k][column];
  for (unsigned lane = 0; lane < layout.lanes; ++lane)
    for (unsigned i = 0; i < layout.results; ++i)
      static_cast<float*>(wave.out[lane])[i] =
          static_cast<const Operands*>(wave.in[lane])->sums[i] + d[layout.row_of_result(lane, i)][lane % 16];
}

template <class T, const MatrixLayout& layout, class Values, class Sums>
Sums multiply_matrices(const Values& a, const Values& b, const Sums& sums) {
  MatrixOperands<T, layout> operands;
  static_assert(sizeof(a) == sizeof(operands.a) && sizeof(sums) == sizeof(operands.sums));
  std::memcpy(operands.a, &a, sizeof a);
  std::memcpy(operands.b, &b, sizeof b);
  std::memcpy(operands.sums, &sums, sizeof sums);
  Sums result;
  meet_wave(multiply_wave<T, layout>, &operands, &result);
  return result;
}

}  // namespace mock_hip

#define __builtin_amdgcn_mfma_f32_16x16x16f16(a, b, sums, ...) \
  mock_hip::multiply_matrices<_Float16, kMfma16x16x16>(a, b, sums)
#define __builtin_amdgcn_mfma_f32_16x16x32_f16(a, b, sums, ...) \
  mock_hip::multiply_matrices<_Float16, kMfma16x16x32>(a, b, sums)
#define __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(a, b, sums) \
  mock_hip::multiply_matrices<_Float16, kWmmaGfx11>(a, b, sums)
#define __builtin_amdgcn_wmma_f32_16x16x16_f16_w32_gfx12(a, b, sums) \
  mock_hip::multiply_matrices<_Float16, kWmmaGfx12>(a, b, sums)

// They say in which order instructions are issued, and whose.
#define __builtin_amdgcn_s_setprio(priority)
#define __builtin_amdgcn_sched_barrier(mask)
