// Where the lanes of a wave hold the values of matrices, for the matrix instructions that the kernels use.
// The emulator of tests/mock_hip multiplies by the same table, and tests/spike/matrix_test.cpp says it again
// in other words.
//
// All multiply A [16][columns] by B [columns][16] and add D [16][16]. A lane's part is lane / 16. Its values
// of A are of row lane % 16, its values of B of column lane % 16; both have the same places. Its results are
// in column lane % 16 of D.
#pragma once

struct MatrixLayout {
  unsigned lanes;             // of a wave
  unsigned columns;           // of A, rows of B
  unsigned values;            // of A, and of B, that a lane holds
  unsigned run;               // this many of them are of neighbouring columns of A,
  unsigned run_step;          // the next run begins this far behind,
  unsigned part_step;         // and the next part's. 0: all parts hold the same values
  unsigned results;           // of D that a lane holds
  unsigned result_step;       // rows of D from one result to the next,
  unsigned result_part_step;  // and from one part to the next

  constexpr unsigned column_of(unsigned lane, unsigned value) const {
    return value % run + value / run * run_step + lane / 16 * part_step;
  }
  constexpr unsigned row_of_result(unsigned lane, unsigned result) const {
    return result * result_step + lane / 16 * result_part_step;
  }
};

// float16 x float16 -> float32: v_mfma_f32_16x16x16_f16, v_mfma_f32_16x16x32_f16 of gfx950, and
// v_wmma_f32_16x16x16_f16 of two families.
inline constexpr MatrixLayout kMfma16x16x16 = {64, 16, 4, 4, 16, 4, 4, 1, 4};
inline constexpr MatrixLayout kMfma16x16x32 = {64, 32, 8, 8, 32, 8, 4, 1, 4};
inline constexpr MatrixLayout kWmmaGfx11 = {32, 16, 16, 16, 16, 0, 8, 2, 1};
inline constexpr MatrixLayout kWmmaGfx12 = {32, 16, 8, 4, 8, 4, 8, 1, 8};
