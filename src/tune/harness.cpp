#include "tune/harness.h"

#include <algorithm>
#include <cstring>

namespace greta {

constexpr uint64_t kColdBytes = 256u << 20;       // larger than any cache
constexpr uint64_t kMostStagingBytes = 4u << 20;  // it grows to this, or to what is read at once
constexpr uint64_t kStagingAlignment = 256;
constexpr uint64_t kWarmingNs = 300'000'000;  // an idle GPU has slow clocks at first

Harness::~Harness() {
  stream_.reset();  // before the memory and the kernels that it works on
  for (Event* event : {&from_, &to_}) device_.destroy(*event);
  for (Loaded& loaded : kernels_) device_.unload(loaded.kernel);
}

Status Harness::open() {
  Stream* opened = nullptr;
  GRETA_TRY(device_.create_stream(&opened));
  stream_.reset(opened);
  return {};
}

Status Harness::room(uint64_t bytes, Slice* out) {
  GRETA_TRY(rooms_.emplace_back().allocate(device_, bytes, Memory::Device));
  *out = rooms_.back().slice(0, bytes);
  return {};
}

Status Harness::put(const void* from, uint64_t bytes, Slice* out) {
  GRETA_TRY(room(bytes, out));
  return write(*out, from);
}

// Allocating host memory that a GPU reaches takes milliseconds, so the buffers are kept.
Status Harness::grow(DeviceMemory& staging, Memory memory, uint64_t bytes) {
  const uint64_t had = staging.buffer().bytes;
  if (had >= bytes) return {};
  GRETA_TRY(finish());
  staging.reset();
  return staging.allocate(device_, std::max(bytes, std::min(2 * had, kMostStagingBytes)), memory);
}

Status Harness::write(const Slice& to, const void* from) {
  if (to.bytes && reaches(to)) {
    if (recorded_) GRETA_TRY(finish());
    memcpy(static_cast<uint8_t*>(to.buffer->mapped) + to.offset, from, to.bytes);
    return {};
  }
  for (uint64_t at = 0; at < to.bytes;) {
    const uint64_t some = std::min(kMostStagingBytes, to.bytes - at);
    if (staged_ + some > upload_.buffer().bytes) {
      if (recorded_) GRETA_TRY(finish());
      GRETA_TRY(grow(upload_, Memory::Upload, some));
    }
    memcpy(static_cast<uint8_t*>(upload_.buffer().mapped) + staged_, static_cast<const uint8_t*>(from) + at,
           some);
    recorded_ = true;
    GRETA_TRY(stream_->copy({to.buffer, to.offset + at, some}, upload_.slice(staged_, some)));
    GRETA_TRY(stream_->barrier());
    staged_ += round_up(some, kStagingAlignment);
    at += some;
  }
  return {};
}

Status Harness::read(std::span<const Slice> from, void* to) {
  uint64_t bytes = 0;
  for (const Slice& slice : from) bytes += reaches(slice) ? 0 : slice.bytes;
  GRETA_TRY(grow(readback_, Memory::Readback, bytes));
  uint64_t at = 0;
  for (const Slice& slice : from) {
    if (!slice.bytes || reaches(slice)) continue;
    recorded_ = true;
    GRETA_TRY(stream_->copy(readback_.slice(at, slice.bytes), slice));
    at += slice.bytes;
  }
  if (recorded_) GRETA_TRY(finish());
  const auto* copied = static_cast<const uint8_t*>(readback_.buffer().mapped);
  auto* out = static_cast<uint8_t*>(to);
  for (const Slice& slice : from) {
    if (!slice.bytes) continue;
    const bool there = reaches(slice);
    memcpy(out, there ? static_cast<const uint8_t*>(slice.buffer->mapped) + slice.offset : copied,
           slice.bytes);
    out += slice.bytes;
    copied += there ? 0 : slice.bytes;
  }
  return {};
}

Status Harness::fill(const Slice& to, uint32_t word) {
  recorded_ = true;
  GRETA_TRY(stream_->fill(to, word));
  return stream_->barrier();
}

Status Harness::copies(uint64_t bytes, bool cold, Copies* out) {
  out->bytes = bytes;
  out->count = cold ? std::max<uint64_t>(1, kColdBytes / bytes) : 1;
  return room(bytes * out->count, &out->all);
}

Status Harness::repeat(const Copies& copies) {
  recorded_ = true;
  for (uint64_t i = 1; i < copies.count; ++i) GRETA_TRY(stream_->copy(copies[i], copies[0]));
  return stream_->barrier();
}

std::vector<Call> packing_calls(const Slice& gguf, const Tensor& to) {
  std::vector<Call> calls;
  const uint64_t from_bytes = gguf.bytes / to.count, bytes = to.slice.bytes / to.count;
  for (uint32_t i = 0; i < to.count; ++i) {
    Tensor one = to;
    one.count = 1;
    one.slice = {to.slice.buffer, to.slice.offset + i * bytes, bytes};
    calls.push_back(CallMaker{}.pack({gguf.buffer, gguf.offset + i * from_bytes, from_bytes}, one));
  }
  return calls;
}

Status Harness::pack(const Slice& gguf, const Tensor& to) {
  if (to.layout == Layout::Gguf) {
    recorded_ = true;
    GRETA_TRY(stream_->copy(to.slice, gguf));
    return stream_->barrier();
  }
  for (const Call& call : packing_calls(gguf, to)) {
    const KernelRow* row = nullptr;
    GRETA_TRY(choose_row({&call, 1}, 1, filter(), &row));
    Launch one;
    GRETA_TRY(prepare({&call, 1}, *row, 1, &one));
    GRETA_TRY(launch(one));
  }
  return {};
}

Status Harness::finish() {
  GRETA_TRY(stream_->wait());
  staged_ = 0;
  recorded_ = false;
  return {};
}

void Harness::reset() { rooms_.clear(); }

Status Harness::prepare(std::span<const Call> calls, const KernelRow& row, uint32_t bucket, Launch* out,
                        std::span<const uint32_t> more) {
  *out = {};
  make_launch(calls, row, bucket, &info(), out);
  std::vector<uint32_t> constants = constants_of(row, *out);
  constants.insert(constants.end(), more.begin(), more.end());
  for (const Loaded& loaded : kernels_)
    if (loaded.code == row.code.name && loaded.target == row.target && loaded.constants == constants) {
      out->kernel = &loaded.kernel;
      return {};
    }
  KernelCode code = row.code;
  code.constants = constants;
  Kernel kernel;
  GRETA_TRY(within(device_.load(code, &kernel), "kernel %s", row.name));
  kernel.name = row.name;
  out->kernel =
      &kernels_.emplace_back(Loaded{row.code.name, row.target, std::move(constants), kernel}).kernel;
  return {};
}

Status Harness::launch(const Launch& launch) {
  recorded_ = true;
  GRETA_TRY(stream_->dispatch(*launch.kernel, launch.groups, launch.arguments(),
                              {launch.accesses, launch.access_count}));
  return stream_->barrier();
}

Status Harness::time(std::span<const Launch> launches, Order order, uint64_t* ns) {
  for (Event* event : {&from_, &to_})
    if (!event->handle) GRETA_TRY(device_.create_event(event));
  recorded_ = true;
  GRETA_TRY(stream_->signal(from_));
  for (const Launch& launch : launches) {
    GRETA_TRY(stream_->dispatch(*launch.kernel, launch.groups, launch.arguments(),
                                {launch.accesses, launch.access_count}));
    if (order == Order::Apart) GRETA_TRY(stream_->barrier());
  }
  GRETA_TRY(stream_->barrier());
  GRETA_TRY(stream_->signal(to_));
  GRETA_TRY(finish());
  GRETA_TRY(device_.elapsed_ns(from_, to_, ns));
  *ns = std::max<uint64_t>(*ns, 1);
  return {};
}

Status Harness::best_time(std::span<const Launch> launches, Order order, uint64_t* ns, uint32_t rounds) {
  const uint64_t warming = info().cpu_type ? 0 : kWarmingNs, start = now_ns();
  *ns = ~uint64_t(0);
  for (uint32_t counted = 0; counted < rounds;) {
    const bool warm = now_ns() - start >= warming;
    uint64_t round = 0;
    GRETA_TRY(time(launches, order, &round));
    if (!warm) continue;
    *ns = std::min(*ns, round);
    ++counted;
  }
  return {};
}

}  // namespace greta
