#include "support/device_kernels.h"

#include <algorithm>
#include <cstring>

using namespace greta;

std::vector<uint32_t> read_words(Device& device, const Slice& from) {
  Words host(device, from.bytes / 4, Memory::Readback);
  const auto stream = new_stream(device);
  REQUIRE(stream->copy(host.all(), from).ok());
  REQUIRE(stream->wait().ok());
  std::vector<uint32_t> words(from.bytes / 4);
  memcpy(words.data(), host.memory.buffer().mapped, from.bytes);
  return words;
}

void write_words(Device& device, const Slice& to, const std::vector<uint32_t>& words) {
  Words host(device, words.size(), Memory::Upload);
  memcpy(host.memory.buffer().mapped, words.data(), words.size() * 4);
  const auto stream = new_stream(device);
  REQUIRE(stream->copy(to, host.all()).ok());
  REQUIRE(stream->wait().ok());
}

static void index_cpu(const void* block, uint32_t first_group, uint32_t group_count, Scratch*) {
  const auto& p = *static_cast<const IndexTestBlock*>(block);
  auto* y = reinterpret_cast<uint32_t*>(p.y);
  const uint32_t last = std::min((first_group + group_count) * kGroupWords, p.count);
  for (uint32_t i = first_group * kGroupWords; i < last; ++i) y[i] = i * p.scale + p.base;
}

static void add_cpu(const void* block, uint32_t first_group, uint32_t group_count, Scratch*) {
  const auto& p = *static_cast<const AddTestBlock*>(block);
  const auto* a = reinterpret_cast<const uint32_t*>(p.a);
  const auto* b = reinterpret_cast<const uint32_t*>(p.b);
  auto* y = reinterpret_cast<uint32_t*>(p.y);
  const uint32_t last = std::min((first_group + group_count) * kGroupWords, p.count);
  for (uint32_t i = first_group * kGroupWords; i < last; ++i) y[i] = a[i] + b[i];
}

KernelCode test_kernel_code(const Device& device, const char* name) {
  if (const KernelCode* embedded = embedded_test_code(device.info(), name)) return *embedded;
  KernelCode code;
  code.name = name;
  code.function = !strcmp(name, "index") ? index_cpu : add_cpu;
  return code;
}

template <class Block>
static std::span<const uint8_t> bytes_of(const Block& block) {
  return {reinterpret_cast<const uint8_t*>(&block), sizeof block};
}

Status TestKernels::write_index(Stream& stream, const Slice& y, uint32_t scale, uint32_t base) const {
  const uint32_t count = uint32_t(y.bytes / 4);
  const IndexTestBlock block{y.address(), count, scale, base};
  const Access accesses[] = {{y, Access::kWrite}};
  return stream.dispatch(index, {(count + kGroupWords - 1) / kGroupWords, 1, 1}, bytes_of(block), accesses);
}

Status TestKernels::add_words(Stream& stream, const Slice& a, const Slice& b, const Slice& y) const {
  const uint32_t count = uint32_t(y.bytes / 4);
  const AddTestBlock block{a.address(), b.address(), y.address(), 0, count};
  const Access accesses[] = {{a, Access::kRead}, {b, Access::kRead}, {y, Access::kWrite}};
  return stream.dispatch(add, {(count + kGroupWords - 1) / kGroupWords, 1, 1}, bytes_of(block), accesses);
}
