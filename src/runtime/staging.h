// Uploads host bytes to device memory through a ring of pinned buffers. The caller fills a piece (by pread,
// never from mapped pages), and the device copies it while the next piece is filled.
#pragma once
#include "runtime/pool.h"

namespace greta {

class Staging {
 public:
  static constexpr uint32_t kPieces = 4;

  Status open(Device& device, uint64_t piece_bytes);
  ~Staging();

  struct Piece {
    DeviceMemory memory;
    Stream* stream = nullptr;
    uint32_t index = 0;
  };
  // Gives the piece whose turn it is. What was last submitted on its stream is done, so it may be filled.
  Status next(Piece** out);
  uint64_t piece_bytes() const { return piece_bytes_; }

  // Fills `to` piece by piece: fill(context, offset, host, bytes) writes bytes [offset, offset + bytes) of
  // the upload to `host`. The first failure ends it. It returns when all is queued; finish() waits.
  Status upload(const Slice& to, Status (*fill)(void* context, uint64_t offset, void* host, uint64_t bytes),
                void* context);
  Status finish();

 private:
  Piece piece_[kPieces];
  uint64_t piece_bytes_ = 0;
  uint32_t next_ = 0;
};

}  // namespace greta
