#include "runtime/pool.h"

#include <algorithm>

namespace greta {

Status DeviceMemory::allocate(Device& device, uint64_t bytes, Memory memory) {
  Buffer buffer;
  GRETA_TRY(device.allocate(bytes, memory, &buffer));
  reset();
  device_ = &device;
  buffer_ = buffer;
  return {};
}

Status DeviceMemory::import_host(Device& device, const void* pages, uint64_t bytes) {
  Buffer buffer;
  GRETA_TRY(device.import_host(pages, bytes, &buffer));
  reset();
  device_ = &device;
  buffer_ = buffer;
  return {};
}

Status DeviceMemory::share_host(Device& device, void* pages, uint64_t bytes) {
  Buffer buffer;
  GRETA_TRY(device.share_host(pages, bytes, &buffer));
  reset();
  device_ = &device;
  buffer_ = buffer;
  return {};
}

void DeviceMemory::reset() {
  if (device_) device_->release(buffer_);
  device_ = nullptr;
  buffer_ = {};
}

constexpr uint64_t kSliceAlignment = 256;  // the strictest alignment that a device asks for storage buffers

uint64_t arena_limit(const DeviceInfo& info) {
  return std::min(kMaxArenaBytes, info.max_allocation_bytes / kSliceAlignment * kSliceAlignment);
}

// The size of a chunk for a slice of `first` bytes and the slices after it.
uint64_t Pool::next_chunk_bytes(uint64_t first) const {
  if (slices_.empty()) return std::max(first, chunk_bytes_);
  uint64_t bytes = first;
  for (size_t i = taken_ + 1; i < slices_.size(); ++i) {
    const uint64_t padded = round_up(slices_[i], kSliceAlignment);
    if (padded > chunk_bytes_) continue;  // it gets a chunk of its own
    if (bytes + padded > chunk_bytes_) break;
    bytes += padded;
  }
  return bytes;
}

// The last chunk is the one that is being filled, so a slice with a buffer of its own goes before it.
Status Pool::take(uint64_t bytes, Slice* out) {
  if (!bytes || bytes > uint64_t(1) << 62)
    return fail(Code::Argument, "pool: a slice of %llu bytes", (unsigned long long)bytes);
  const uint64_t padded = round_up(bytes, kSliceAlignment);
  const bool alone = device_.info().own_buffers, own = alone || padded > chunk_bytes_;
  const bool fits = !chunks_.empty() && padded <= chunks_.back()->buffer().bytes - used_;
  if (!own && fits) {
    *out = chunks_.back()->slice(used_, bytes);
    used_ += padded;
    ++taken_;
    return {};
  }
  auto chunk = std::make_unique<DeviceMemory>();
  chunks_.reserve(chunks_.size() + 1);
  const uint64_t chunk_bytes = alone ? bytes : own ? padded : next_chunk_bytes(padded);
  GRETA_TRY(chunk->allocate(device_, chunk_bytes, memory_));
  allocated_bytes_ += chunk_bytes;
  ++taken_;
  *out = chunk->slice(0, bytes);
  if (own && !chunks_.empty()) {
    chunks_.insert(chunks_.end() - 1, std::move(chunk));
  } else {
    chunks_.push_back(std::move(chunk));
    used_ = padded;
  }
  return {};
}

}  // namespace greta
