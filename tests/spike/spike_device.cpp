#include "spike/spike_device.h"

#include <catch2/catch_test_macros.hpp>
#include <cstring>

#include "kernels/abi/scaled_add.h"

namespace greta {

Status HostSpikeDevice::allocate(uint64_t bytes, uint64_t* address) {
  buffers_.emplace_back(bytes);
  *address = reinterpret_cast<uint64_t>(buffers_.back().data());
  return {};
}

Status HostSpikeDevice::write(uint64_t address, const void* from, uint64_t bytes) {
  std::memcpy(reinterpret_cast<void*>(address), from, bytes);
  return {};
}

Status HostSpikeDevice::read(uint64_t address, void* to, uint64_t bytes) {
  std::memcpy(to, reinterpret_cast<const void*>(address), bytes);
  return {};
}

Status HostSpikeDevice::run(const KernelCode& code, uint32_t groups, std::span<const uint8_t> block) {
  // In two parts, as two threads would share it.
  const uint32_t half = groups / 2;
  if (half) code.function(block.data(), 0, half, nullptr);
  code.function(block.data(), half, groups - half, nullptr);
  return {};
}

std::vector<ScaledAddCase> scaled_add_cases() {
  return {{1, 64, 1, 0.5f},    {63, 64, 2, -1.25f}, {64, 64, 3, 1e-3f},
          {1000, 64, 4, 3.7f}, {4097, 48, 5, 0.1f}, {130, 7, 6, -123.456f}};
}

struct ScaledAddData {
  std::vector<float> a, pages;
  std::vector<uint32_t> page_table;
};

static ScaledAddData make_data(const ScaledAddCase& shape) {
  uint64_t state = shape.seed * 0x9e3779b97f4a7c15u;
  const auto next = [&state] {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return uint32_t(state >> 33);
  };
  const auto value = [&next] { return (float(next()) - float(1u << 30)) / float(1u << 27); };  // -8 .. 8
  ScaledAddData data;
  const uint32_t pages = (shape.count + shape.page_values - 1) / shape.page_values;
  const uint32_t pool = pages + 3;
  for (uint32_t i = 0; i < shape.count; ++i) data.a.push_back(value());
  for (uint32_t i = 0; i < pool * shape.page_values; ++i) data.pages.push_back(value());
  for (uint32_t i = 0; i < pages; ++i) data.page_table.push_back(next() % pool);
  return data;
}

template <class T>
static Status upload(SpikeDevice& device, const std::vector<T>& from, uint64_t* address) {
  GRETA_TRY(device.allocate(from.size() * sizeof(T), address));
  return device.write(*address, from.data(), from.size() * sizeof(T));
}

Status run_scaled_add(SpikeDevice& device, const KernelRow& row, const ScaledAddCase& shape,
                      std::vector<uint32_t>* y) {
  const ScaledAddData data = make_data(shape);
  y->assign(shape.count + kCanaries, kPoison);
  ScaledAddBlock block = {};
  GRETA_TRY(upload(device, data.a, &block.a));
  GRETA_TRY(upload(device, data.pages, &block.pages));
  GRETA_TRY(upload(device, data.page_table, &block.page_table));
  GRETA_TRY(upload(device, *y, &block.y));
  block.count = shape.count;
  block.scale = shape.scale;
  block.page_values = shape.page_values;

  const std::span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(&block), sizeof block);
  uint32_t constants[kMaxConstants + 1];
  KernelCode code = row.code;
  code.constants = {constants, kernel_constants(row, bytes, constants)};
  // One group more than needed: surplus groups return at once.
  const uint32_t groups = (shape.count + row.code.group_size[0] - 1) / row.code.group_size[0] + 1;
  GRETA_TRY(device.run(code, groups, bytes));
  return device.read(block.y, y->data(), y->size() * sizeof(uint32_t));
}

std::vector<double> scaled_add_reference(const ScaledAddCase& shape) {
  const ScaledAddData data = make_data(shape);
  std::vector<double> y;
  for (uint32_t i = 0; i < shape.count; ++i) {
    const uint32_t page = data.page_table[i / shape.page_values];
    const float value = data.pages[page * shape.page_values + i % shape.page_values];
    y.push_back(data.a[i] + double(shape.scale) * value);
  }
  return y;
}

void check_scaled_add(SpikeDevice& device, const KernelRow& row) {
  const KernelRow* host_row = find_test_kernel("scaled_add_spike", "cpu", "");
  REQUIRE(host_row);
  for (const ScaledAddCase& shape : scaled_add_cases()) {
    CAPTURE(row.backend, row.target, shape.count, shape.page_values);
    HostSpikeDevice host;
    std::vector<uint32_t> expected, y;
    REQUIRE(run_scaled_add(host, *host_row, shape, &expected).ok());
    const Status status = run_scaled_add(device, row, shape, &y);
    CAPTURE(error_text());
    REQUIRE(status.ok());
    CHECK(y == expected);
  }
}

}  // namespace greta
