#include "runtime/staging.h"

#include <algorithm>

namespace greta {

Status Staging::open(Device& device, uint64_t piece_bytes) {
  for (Piece& piece : piece_) {
    GRETA_TRY(piece.memory.allocate(device, piece_bytes, Memory::Upload));
    GRETA_TRY(device.create_stream(&piece.stream));
    piece.index = uint32_t(&piece - piece_);
  }
  piece_bytes_ = piece_bytes;
  return {};
}

// The streams are deleted first, then the memory that their copies read.
Staging::~Staging() {
  for (Piece& piece : piece_) delete piece.stream;
}

Status Staging::next(Piece** out) {
  if (!piece_bytes_) return fail(Code::Argument, "staging: used before it was opened");
  *out = &piece_[next_];
  next_ = (next_ + 1) % kPieces;
  return (*out)->stream->wait();
}

Status Staging::upload(const Slice& to,
                       Status (*fill)(void* context, uint64_t offset, void* host, uint64_t bytes),
                       void* context) {
  for (uint64_t offset = 0; offset < to.bytes;) {
    Piece* piece = nullptr;
    GRETA_TRY(next(&piece));
    const uint64_t bytes = std::min(piece_bytes_, to.bytes - offset);
    GRETA_TRY(fill(context, offset, piece->memory.buffer().mapped, bytes));
    GRETA_TRY(piece->stream->copy({to.buffer, to.offset + offset, bytes}, piece->memory.slice(0, bytes)));
    GRETA_TRY(piece->stream->submit());
    offset += bytes;
  }
  return {};
}

Status Staging::finish() {
  for (Piece& piece : piece_)
    if (piece.stream) GRETA_TRY(piece.stream->wait());
  return {};
}

}  // namespace greta
