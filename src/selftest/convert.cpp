// The q8 form. A product or quotient of two floats, taken in double and rounded once to float, is the
// float operation exactly, so this gives the kernel's bytes and not only its values.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/abi/q8.h"
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

}  // namespace greta::reference
