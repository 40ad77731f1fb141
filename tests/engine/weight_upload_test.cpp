#include "engine/model/weight_upload.h"

#include <catch2/generators/catch_generators.hpp>
#include <cstring>

#include "support/device_kernels.h"
#include "support/failing_threads.h"

using namespace greta;

namespace {

// Weights in GGUF order. Reading one of their bytes may fail.
struct Bytes {
  std::vector<uint8_t> data;
  uint64_t broken = ~uint64_t(0);

  explicit Bytes(uint64_t bytes) : data(bytes) {
    for (uint64_t i = 0; i < bytes; ++i) data[i] = uint8_t(i * 7 + i / 251);
  }
  static int read(void* user, uint64_t offset, void* to, uint64_t bytes) {
    const Bytes& self = *static_cast<Bytes*>(user);
    memcpy(to, self.data.data() + offset, bytes);
    return offset <= self.broken && self.broken < offset + bytes ? 5 : 0;
  }
};

uint64_t bytes_of(const Tensor& t) { return tensor_bytes(t.type, t.layout, t.n, t.depth, t.count); }

}  // namespace

TEST_CASE("weights go up in pieces as they would at once, packed or as they are", "[engine]") {
  FOR_EACH_DEVICE(which);
  if (!which.computes) return;
  const OpenDevice device = which.open();
  const RowFilter filter{&device->info(), false};
  const auto [n, depth, count] = GENERATE(table<uint32_t, uint32_t, uint32_t>({
      {1000, 4096, 2},  // matrices of 4.3 MB, which take two pieces each
      {32, 262144, 1},  // 16 rows are larger than a piece is by default
      {7, 64, 3},       // fewer rows than are packed together
  }));
  CAPTURE(n, depth, count);
  const Layout layout = preferred_layout(QuantType::q8_0, filter);
  const uint64_t row_bytes = quant_bytes(QuantType::q8_0, depth);
  Bytes bytes(100 + std::max<uint64_t>(count * n * row_bytes, 12000));
  Source source;
  REQUIRE(source.open_callback(Bytes::read, &bytes, bytes.data.size()).ok());

  Tensor whole = {QuantType::q8_0, layout, n, depth, count, {}};
  Words at_once(*device, bytes_of(whole) / 4), in_groups(*device, bytes_of(whole) / 4);
  DeviceKernels kernels(*device);
  WeightUpload upload(kernels, filter);
  whole.slice = at_once.all();
  REQUIRE(upload.add(source, 0, 100, whole).ok());
  uint64_t at = 0;
  for (uint32_t matrix = 0; matrix < count; ++matrix)
    for (uint32_t first = 0; first < n; first += kPackRows) {
      Tensor group = {QuantType::q8_0, layout, std::min(kPackRows, n - first), depth, 1, {}};
      group.slice = in_groups.memory.slice(at, bytes_of(group));
      REQUIRE(upload.add(source, 0, 100 + (uint64_t(matrix) * n + first) * row_bytes, group).ok());
      at += bytes_of(group);
    }
  Tensor plain = {QuantType::f32, Layout::Gguf, 3, 1000, 1, {}};
  Words floats(*device, 3000);
  plain.slice = floats.all();
  REQUIRE(upload.add(source, 0, 0, plain).ok());
  REQUIRE(upload.finish().ok());

  CHECK(at == bytes_of(whole));
  CHECK(read_words(*device, at_once.all()) == read_words(*device, in_groups.all()));
  CHECK(memcmp(read_words(*device, floats.all()).data(), bytes.data.data(), 12000) == 0);

  bytes.broken = 100 + count * n * row_bytes - 1;
  const Status broken = upload.add(source, 0, 100, whole);
  CHECK(broken.code == Code::File);
  CHECK(upload.finish().ok());
}

TEST_CASE("weights are counted piece by piece, and the caller may end it between two", "[engine]") {
  FOR_EACH_DEVICE(which);
  if (!which.computes) return;
  const OpenDevice device = which.open();
  const RowFilter filter{&device->info(), false};
  constexpr uint32_t kRows = 4096, kDepth = 4096, kCount = 3;  // matrices of 17.8 MB
  const uint64_t matrix_bytes = kRows * quant_bytes(QuantType::q8_0, kDepth);
  Bytes bytes(kCount * matrix_bytes);
  Source source;
  REQUIRE(source.open_memory(bytes.data.data(), bytes.data.size()).ok());
  Tensor whole = {QuantType::q8_0, preferred_layout(QuantType::q8_0, filter), kRows, kDepth, kCount, {}};
  Words memory(*device, bytes_of(whole) / 4);
  whole.slice = memory.all();

  struct Calls {
    uint64_t count = 0, last = 0, widest = 0, stop_at = 0;
  } calls;
  const Progress progress = {[](void* user, uint64_t done, uint64_t) {
                               Calls& c = *static_cast<Calls*>(user);
                               c.widest = std::max(c.widest, done - c.last);
                               c.last = done;
                               return ++c.count == c.stop_at ? 1 : 0;
                             },
                             &calls};
  LoadMeter meter{progress, bytes.data.size(), 0};
  DeviceKernels kernels(*device);
  WeightUpload upload(kernels, filter, &meter);
  REQUIRE(upload.add(source, 0, 0, whole).ok());
  REQUIRE(upload.finish().ok());
  CHECK(calls.last == bytes.data.size());
  CHECK(calls.widest <= kMeterBytes);

  meter.done = 0;
  calls = {};
  calls.stop_at = 2;
  CHECK(upload.add(source, 0, 0, whole).code == Code::Cancelled);
  CHECK(calls.count == 2);
  CHECK(upload.finish().ok());

  // From mapped pages, whole matrices are packed at once.
  Buffer pages;
  if (whole.layout == Layout::Gguf || !device->import_host(bytes.data.data(), bytes.data.size(), &pages).ok())
    return;
  meter.done = 0;
  calls = {};
  CHECK(upload.pack_mapped({&pages, 0, pages.bytes}, whole).ok());
  CHECK(calls.count == kCount);
  CHECK(calls.last == bytes.data.size());
  device->release(pages);
}

TEST_CASE("weights are read in whole where the system refuses threads", "[engine]") {
  if (!GRETA_THREADS_CAN_FAIL) SKIP("a sanitizer starts the threads");
  const OpenDevice device = open_named("cpu", 1);
  constexpr uint32_t kRows = 100, kDepth = 4096;
  Tensor weights = {QuantType::q8_0, Layout::Gguf, kRows, kDepth, 1, {}};
  Bytes bytes(bytes_of(weights));
  Source source;
  REQUIRE(source.open_memory(bytes.data.data(), bytes.data.size()).ok());
  Words memory(*device, bytes_of(weights) / 4);
  weights.slice = memory.all();
  DeviceKernels kernels(*device);
  WeightUpload upload(kernels, {&device->info(), false});
  {
    const test::FailingThreads refused;
    REQUIRE(upload.add(source, 0, 0, weights).ok());
  }
  REQUIRE(upload.finish().ok());
  CHECK(memcmp(read_words(*device, memory.all()).data(), bytes.data.data(), bytes.data.size()) == 0);
}
