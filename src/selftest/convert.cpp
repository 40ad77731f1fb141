// The forms of activations. q8: a product or quotient of two floats, taken in double and rounded once to float, is the
// float operation exactly, so this gives the kernel's bytes and not only its values.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/abi/q8.h"
#include "selftest/quant/quant.h"
#include "selftest/reference.h"

namespace greta::reference {

std::vector<uint8_t> convert_q8(const std::vector<float>& x) {
  const size_t depth = x.size();
  std::vector<uint8_t> row(q8_row_bytes(depth));
  for (size_t block = 0; block < depth / 32; ++block) {
    float max = 0;
    for (size_t i = 0; i < 32; ++i) max = std::max(max, std::fabs(x[block * 32 + i]));
    const float d = float(double(max) / 127.0);
    const float inverse = d > 0 ? float(1.0 / double(d)) : 0;
    memcpy(&row[q8_scales_at(depth) + block * 4], &d, 4);
    int16_t sum[2] = {0, 0};
    for (size_t i = 0; i < 32; ++i) {
      const int8_t q = int8_t(std::nearbyint(float(double(x[block * 32 + i]) * double(inverse))));
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

// The nearest half, ties to even: units are 2^-10 of the power of two below, from 2^-24 on.
static double nearest_half(double x) {
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
