// Host bytes to device memory through a ring of pinned buffers: the caller fills a piece (by pread,
// never from mapped pages), the device copies it while the next is filled.
#pragma once
#include "runtime/pool.h"

namespace greta {

class Staging {
 public:
  static constexpr uint32_t kPieces = 4;

  Status open(Device& device, uint64_t piece_bytes);
  ~Staging();

  // The piece whose turn it is, free again: what was last submitted on its stream is done.
  struct Piece {
    DeviceMemory memory;
    Stream* stream = nullptr;
    uint32_t index = 0;
  };
  Status next(Piece** out);
  uint64_t piece_bytes() const { return piece_bytes_; }

  // Fills `to` piece by piece: fill(context, offset, host, bytes) writes host bytes [offset, offset + bytes).
  // A failing fill stops it and is returned. Returns when all has been queued; finish() waits.
  Status upload(const Slice& to, Status (*fill)(void* context, uint64_t offset, void* host, uint64_t bytes),
                void* context);
  Status finish();

 private:
  Piece piece_[kPieces];
  uint64_t piece_bytes_ = 0;
  uint32_t next_ = 0;
};

}  // namespace greta
