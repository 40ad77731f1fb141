// Device memory that is taken and given back in any order. A Pool (runtime/pool.h) only grows; a Heap serves
// programs whose buffers come and go.
#pragma once
#include <list>
#include <map>
#include <mutex>

#include "runtime/pool.h"

namespace greta {

// It cuts slices out of chunks, since drivers allow few allocations. Chunks double in size as more is taken.
// A slice of more than a quarter of the largest chunk has a buffer of its own, and on a device with
// own_buffers all have. A chunk without slices is released, but one is kept. It is thread-safe.
class Heap {
 public:
  static constexpr uint64_t kAlignment = 256;  // of slices, and what their sizes are rounded up to
  static constexpr uint64_t kFirstChunkBytes = 1 << 20, kLastChunkBytes = 64 << 20;

  // Destroy it when nothing uses its slices any more; whether they were given back does not matter then.
  Heap(Device& device, Memory memory) : device_(device), memory_(memory) {}
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;

  // Takes a slice of `bytes`, for which it may allocate at most `room` bytes of the device. What the slice
  // holds is not known. Without a place and without room it fails with Code::Memory.
  Status take(uint64_t bytes, uint64_t room, Slice* out);
  void give_back(const Slice& slice) noexcept;

  uint64_t allocated_bytes() const;  // of the device, for all chunks
  uint64_t taken_bytes() const;      // of all slices, as they were rounded up

 private:
  struct Block {
    uint64_t bytes;
    bool taken;
  };
  using Blocks = std::map<uint64_t, Block>;  // by offset, without gaps; no two free ones are neighbours
  struct Chunk {
    DeviceMemory memory;
    Blocks blocks;
    uint64_t taken = 0;
    bool own = false;  // for one slice
  };
  static Blocks::iterator find(Chunk& chunk, uint64_t bytes);
  static void take_block(Chunk& chunk, Blocks::iterator block, uint64_t bytes);
  Status add_chunk(uint64_t bytes, bool own, uint64_t room);

  Device& device_;
  Memory memory_;
  mutable std::mutex mutex_;
  std::list<Chunk> chunks_;
  uint64_t allocated_ = 0, taken_ = 0, next_chunk_ = kFirstChunkBytes;
};

}  // namespace greta
