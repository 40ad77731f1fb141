// Device memory in large pieces. A Pool hands out aligned slices of buffers of at most 1 GiB.
#pragma once
#include <memory>
#include <vector>

#include "runtime/device.h"

namespace greta {

// A device buffer that is released with this object.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  ~DeviceMemory() { reset(); }
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  Status allocate(Device& device, uint64_t bytes, Memory memory);
  Status import_host(Device& device, const void* pages, uint64_t bytes);
  Status share_host(Device& device, void* pages, uint64_t bytes);
  void reset();
  const Buffer& buffer() const { return buffer_; }
  Slice slice(uint64_t offset, uint64_t bytes) const { return {&buffer_, offset, bytes}; }
  Slice all() const { return {&buffer_, 0, buffer_.bytes}; }

 private:
  Device* device_ = nullptr;
  Buffer buffer_;
};

// Pages that are given back with this object.
class MappedPages {
 public:
  MappedPages() = default;
  ~MappedPages() {
    if (pages_) unmap_pages(pages_, bytes_);
  }
  MappedPages(const MappedPages&) = delete;
  MappedPages& operator=(const MappedPages&) = delete;
  bool map(uint64_t bytes) { return (pages_ = map_pages(bytes_ = bytes)); }  // once; false: no memory
  void* pages() const { return pages_; }

 private:
  void* pages_ = nullptr;
  uint64_t bytes_ = 0;
};

// The largest size of a pool's buffer in bytes: kMaxArenaBytes, or less if the device allows less.
uint64_t arena_limit(const DeviceInfo& info);

class Pool {
 public:
  // `chunk_bytes` is the size of each buffer. A larger slice gets a buffer of its own; with own_buffers all
  // do. `slices` are sizes that will be taken in this order, so that no buffer is larger than they need.
  Pool(Device& device, uint64_t chunk_bytes, std::vector<uint64_t> slices = {},
       Memory memory = Memory::Device)
      : device_(device), memory_(memory), chunk_bytes_(chunk_bytes), slices_(std::move(slices)) {}

  // Takes a slice that is aligned to 256 bytes and lives as long as the pool.
  Status take(uint64_t bytes, Slice* out);
  uint64_t allocated_bytes() const { return allocated_bytes_; }

 private:
  uint64_t next_chunk_bytes(uint64_t first) const;

  Device& device_;
  Memory memory_;
  uint64_t chunk_bytes_, used_ = 0, allocated_bytes_ = 0;
  std::vector<uint64_t> slices_;
  size_t taken_ = 0;
  std::vector<std::unique_ptr<DeviceMemory>> chunks_;
};

}  // namespace greta
