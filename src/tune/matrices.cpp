#include "tune/matrices.h"

#include "tune/harness.h"

namespace greta {

constexpr uint32_t kMostRows = 64;  // of operands: those of w and of x
constexpr uint64_t kOperandBytes = kMostRows * kProductsDepth * sizeof(uint16_t);
constexpr uint32_t kSteps = 3;
constexpr uint16_t kHalves[] = {0, 0x3c00, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600, 0x4700};  // 0 to 7

static bool multiplies_matrices(const KernelRow& row) { return row.arithmetic == Arithmetic::Matrices; }

static uint32_t operand(uint32_t row, uint32_t k) { return (row * 3 + k * 5 + row * k) % 8; }

// The sum over m, n and k of w[m][k] * x[n][k], kSteps times.
static uint32_t expected_sum(const KernelRow& row) {
  uint32_t sum = 0;
  for (uint32_t k = 0; k < kProductsDepth; ++k) {
    uint32_t w = 0, x = 0;
    for (uint32_t m = 0; m < row.tile; ++m) w += operand(m, k);
    for (uint32_t n = 0; n < row.tile_tokens; ++n) x += operand(row.tile + n, k);
    sum += w * x;
  }
  return sum * kSteps;
}

// Runs a row of `products` with one group.
static Status multiply(Device& device, const KernelRow& row, uint32_t* sum) {
  Harness harness(device);
  GRETA_TRY(harness.open());
  std::vector<uint16_t> values(kMostRows * kProductsDepth);
  for (uint32_t i = 0; i < values.size(); ++i)
    values[i] = kHalves[operand(i / kProductsDepth, i % kProductsDepth)];
  Slice operands, result;
  GRETA_TRY(harness.put(values, &operands));
  GRETA_TRY(harness.room(sizeof *sum, &result));
  const uint32_t width = kSteps * row.tile * row.tile_tokens * kProductsDepth;
  const Call call = CallMaker{}.products(operands, result, width);
  Launch launch;
  GRETA_TRY(harness.prepare({&call, 1}, row, 1, &launch));
  GRETA_TRY(harness.launch(launch));
  return harness.read({&result, 1}, sum);
}

Status check_matrices(Device& device, RefusedKernels* refused, bool* right) {
  *right = true;
  if (device.info().max_allocation_bytes < kOperandBytes) return {};  // only tests have so small a device
  const RowFilter filter = {&device.info(), false, refused};
  for (const KernelRow& row : candidates(filter)) {
    if (row.ops[0] != Op::Products || !multiplies_matrices(row) || !usable(row, filter)) continue;
    uint32_t sum = 0;
    const Status status = multiply(device, row, &sum);
    if (status.code == Code::Unsupported) {  // a plan that wants such a kernel is told so
      clear_error_text();
      return {};
    }
    GRETA_TRY(status);
    const uint32_t expected = expected_sum(row);
    if (sum == expected) return {};
    *right = false;
    for (const KernelRow& other : candidates(filter))
      if (multiplies_matrices(other)) refused->add(other);
    (void)fail(Code::Device, "%s multiplies matrices wrong: the products of %s add up to %u, and not to %u",
               device.info().name, row.name, sum, expected);
    return {};
  }
  return {};
}

}  // namespace greta
