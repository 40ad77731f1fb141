// The activation formats. A product or quotient of two floats, taken in double and rounded to float, is
// exactly the float operation. So q8 has the kernel's bytes here, and not only its values.
#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstring>

#include "kernels/abi/q8.h"
#include "selftest/quant/quant.h"
#include "selftest/reference/reference.h"

namespace greta::reference {

// Rounds to int8. Without a finite scale no value counts.
static int8_t rounded(double x, double scale) {
  return std::isfinite(scale) ? int8_t(std::nearbyint(x)) : int8_t(0);
}

// The larger one. NaN is larger than all.
static double larger(double a, double b) { return a >= b || std::isnan(a) ? a : b; }

std::vector<uint8_t> convert_q8(const std::vector<float>& x) {
  const size_t depth = x.size();
  std::vector<uint8_t> row(q8_row_bytes(depth));
  for (size_t block = 0; block < depth / 32; ++block) {
    double max = 0;
    for (size_t i = 0; i < 32; ++i) max = larger(max, std::fabs(x[block * 32 + i]));
    const float d = float(max / 127.0);
    const float inverse = d > 0 ? float(1.0 / double(d)) : 0;
    memcpy(&row[q8_scales_at(depth) + block * 4], &d, 4);
    int16_t sum[2] = {0, 0};
    for (size_t i = 0; i < 32; ++i) {
      const int8_t q = rounded(float(double(x[block * 32 + i]) * double(inverse)), d);
      row[block * 32 + i] = uint8_t(q);
      sum[i / 16] = int16_t(sum[i / 16] + q);
    }
    memcpy(&row[q8_sums_at(depth) + block * 4], sum, 4);
  }
  return row;
}

Values decode_q8(const std::vector<uint8_t>& rows, uint32_t depth) {
  Values x;
  for (size_t row = 0; row < rows.size(); row += q8_row_bytes(depth))
    for (uint32_t k = 0; k < depth; ++k) {
      float d;
      memcpy(&d, &rows[row + q8_scales_at(depth) + k / 32 * 4], 4);
      x.push_back(double(d) * int8_t(rows[row + k]));
    }
  return x;
}

static Values times(const std::vector<float>& x, const Values& gain) {
  Values out(x.begin(), x.end());
  for (size_t i = 0; i < gain.size(); ++i) out[i] *= gain[i];
  return out;
}

static float float_at(const uint8_t* at) {
  float value;
  memcpy(&value, at, sizeof value);
  return value;
}

std::vector<uint8_t> convert_q8x16(const std::vector<float>& x, const Values& gain) {
  const uint32_t depth = uint32_t(x.size());
  const Values values = times(x, gain);
  std::vector<uint8_t> row(q8x16_row_bytes(depth));
  for (uint32_t block = 0; block < depth / 16; ++block) {
    double most = 0, squares = 0;
    for (uint32_t i = block * 16; i < block * 16 + 16; ++i) {
      most = larger(most, std::fabs(values[i]));
      squares += double(x[i]) * x[i];
    }
    const float scale = std::isfinite(most) ? float(most / 127) : NAN, of_x = float(squares);
    int sum = 0;
    for (uint32_t i = block * 16; i < block * 16 + 16; ++i) {
      const int8_t q = most > 0 ? rounded(values[i] / (most / 127), scale) : int8_t(0);
      row[i] = uint8_t(q);
      sum += q;
    }
    const float scales[2] = {scale, scale * float(sum)};
    memcpy(&row[q8x16_scales_at(depth) + block * 8], scales, sizeof scales);
    memcpy(&row[q8x16_squares_at(depth) + block * 4], &of_x, sizeof of_x);
  }
  return row;
}

Values decode_q8x16(const std::vector<uint8_t>& rows, uint32_t depth) {
  Values x;
  for (size_t row = 0; row < rows.size(); row += q8x16_row_bytes(depth))
    for (uint32_t k = 0; k < depth; ++k)
      x.push_back(double(float_at(&rows[row + q8x16_scales_at(depth) + k / 16 * 8])) * int8_t(rows[row + k]));
  return x;
}

const char* wrong_q8x16(const uint8_t* row, const std::vector<float>& x, const Values& gain) {
  const uint32_t depth = uint32_t(x.size());
  const Values values = times(x, gain);
  const auto close = [](double a, double b) { return std::fabs(a - b) <= 2e-6 * std::fabs(b) + 1e-37; };
  for (uint32_t block = 0; block < depth / 16; ++block) {
    double most = 0, squares = 0;
    int sum = 0;
    const double scale = float_at(row + q8x16_scales_at(depth) + block * 8);
    for (uint32_t i = block * 16; i < block * 16 + 16; ++i) {
      most = std::max(most, std::fabs(values[i]));
      squares += double(x[i]) * x[i];
      sum += int8_t(row[i]);
      const double exact = scale > 0 ? values[i] / scale : 0;
      if (std::fabs(exact - int8_t(row[i])) > 0.5001) return "a value";
    }
    if (!close(scale, most / 127)) return "a scale";
    if (!close(float_at(row + q8x16_scales_at(depth) + block * 8 + 4), scale * sum)) return "a sum";
    const double stored = float_at(row + q8x16_squares_at(depth) + block * 4);
    if (squares > FLT_MAX ? !std::isinf(stored) : !close(stored, squares)) return "a sum of squares";
  }
  return "";
}

// The nearest half, with ties to even; NaN where x is not finite. A unit is 2^-10 of the power of two below,
// but at least 2^-24.
static double nearest_half(double x) {
  if (!std::isfinite(x)) return NAN;
  x = std::clamp(x, -65504.0, 65504.0);
  if (x == 0) return x;
  const double unit = std::ldexp(1.0, std::max(std::ilogb(x), -14) - 10);
  return std::nearbyint(x / unit) * unit;
}

Values halves(const Values& x) {
  Values rounded;
  rounded.reserve(x.size());
  for (const double value : x) rounded.push_back(nearest_half(value));
  return rounded;
}

std::vector<uint8_t> half_bytes(const Values& x) {
  std::vector<uint8_t> bytes(x.size() * 2);
  for (size_t i = 0; i < x.size(); ++i) put_half(&bytes[i * 2], nearest_half(x[i]));
  return bytes;
}

}  // namespace greta::reference
