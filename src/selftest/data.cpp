// Makes data for the ops and judges results.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "selftest/rig.h"

namespace greta::selftest {

Values to_values(const std::vector<float>& x) { return Values(x.begin(), x.end()); }

std::vector<float> gaussians(size_t count, Random& random, double size) {
  std::vector<float> x(count);
  for (float& value : x) value = float(size * reference::gaussian(random));
  return x;
}

std::vector<float> with_outliers(size_t count, Random& random) {
  std::vector<float> x = gaussians(count, random);
  for (size_t i = 0; i < count; i += 256)
    x[i + random() % std::min<size_t>(256, count - i)] = random() % 2 ? 1e3f : -1e3f;
  return x;
}

static void require_all(bool finite, const std::vector<float>& y, size_t first, size_t count,
                        const std::string& what) {
  expect(first + count <= y.size(), what + ": too few values");
  for (size_t i = first; i < first + count; ++i)
    expect(std::isfinite(y[i]) == finite, what + ": value " + std::to_string(i) + " is " +
                                              std::to_string(y[i]) +
                                              (finite ? " and should be finite" : " though x is not finite"));
}
void require_not_finite(const std::vector<float>& y, size_t first, size_t count, const std::string& what) {
  require_all(false, y, first, count, what);
}
void require_finite(const std::vector<float>& y, size_t first, size_t count, const std::string& what) {
  require_all(true, y, first, count, what);
}

double nmse(const std::vector<float>& y, const Values& reference) {
  double error = 0, size = 0;
  for (size_t i = 0; i < reference.size(); ++i) {
    error += (y[i] - reference[i]) * (y[i] - reference[i]);
    size += reference[i] * reference[i];
  }
  return size > 0 ? error / size : error;
}

void require_close(const std::vector<float>& y, const Values& reference, double limit,
                   const std::string& what) {
  expect(y.size() >= reference.size(), what + ": too few values");
  const double error = nmse(y, reference);
  char numbers[64];
  format_text(numbers, sizeof numbers, ": NMSE %.3g of at most %.3g", error, limit);
  expect(error <= limit, what + numbers);  // a NaN fails too
  for (size_t i = reference.size(); i < y.size(); ++i) {
    uint32_t bits;
    memcpy(&bits, &y[i], 4);
    expect(bits == ~0u, what + ": value " + std::to_string(i) + ", past the live rows, was written");
  }
}

static double block_size(Scales scales, size_t block, Random& random) {
  if (scales == Scales::Plain) return random() % 2 ? 1 : 0.5;
  switch (block % 5) {
    case 0:
      return 0;
    case 1:
      return 4e6;  // d at the largest half
    case 2:
      return 1e-5;  // d a denormal half
    case 3:
      return -1;  // d and dmin negative
    default:
      return 1;
  }
}

Matrix random_matrix(QuantType type, uint32_t n, uint32_t depth, uint32_t count, Scales scales,
                     Random& random) {
  const reference::Quant& quant = *reference::find_quant(quant_info(type).name);
  const size_t blocks = size_t(n) * depth * count / quant.block;
  Matrix matrix{
      type, n, depth, count, std::vector<uint8_t>(blocks * quant.bytes), Values(blocks * quant.block)};
  for (uint8_t& byte : matrix.bytes) byte = uint8_t(random());
  for (size_t b = 0; b < blocks; ++b) {
    uint8_t* block = &matrix.bytes[b * quant.bytes];
    quant.resize(block, block_size(scales, b / (quant.block == 1 ? 32 : 1), random), random);
    for (uint32_t i = 0; i < quant.block; ++i) matrix.values[b * quant.block + i] = quant.weight(block, i);
  }
  return matrix;
}

Tensor put_vector(Rig& rig, const std::vector<float>& values) {
  Tensor tensor;
  tensor.n = 1;
  tensor.depth = uint32_t(values.size());
  tensor.slice = rig.put(values);
  return tensor;
}

Tensor put_matrix(Rig& rig, const Matrix& matrix, Layout layout) {
  Tensor tensor{matrix.type, layout, matrix.n, matrix.depth, matrix.count, rig.put(matrix.bytes)};
  if (layout == Layout::Gguf) return tensor;
  const Slice source = tensor.slice;
  tensor.slice = rig.room(tensor_bytes(matrix.type, layout, matrix.n, matrix.depth, matrix.count));
  for (const Call& call : packing_calls(source, tensor)) rig.run_plain(call, 1);
  return tensor;
}

std::vector<Stored> stored_types(const Rig& rig, Op op) {
  std::vector<Stored> found;
  for (const KernelRow& row : kernel_table()) {
    if (lead_op({row.ops, row.op_count}) != op || strcmp(row.backend, rig.info().backend) || !rig.takes(row))
      continue;
    const bool known = std::any_of(found.begin(), found.end(), [&](const Stored& stored) {
      return stored.type == row.type && stored.layout == row.layout;
    });
    if (!known) found.push_back({row.type, row.layout});
  }
  return found;
}

}  // namespace greta::selftest
