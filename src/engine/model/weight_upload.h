// Uploads weights to the device. Several threads read them into a ring of pinned pieces; the device copies
// each piece and, where the kernels want another layout, packs it. A piece is read while those before it are
// copied and packed, and one ring serves a whole model. Memory that the host sees is read into directly.
#pragma once
#include <optional>

#include "engine/model/load_meter.h"
#include "gguf/gguf.h"
#include "graph/graph.h"

namespace greta {

class WeightUpload {
 public:
  static constexpr uint64_t kPieceBytes = 4 << 20;
  // `meter` may be null. It is told of each piece and may end the upload. Pieces are as large as is said, or
  // as the weights are.
  WeightUpload(DeviceKernels& kernels, const RowFilter& filter, LoadMeter* meter = nullptr,
               uint64_t most_piece_bytes = kPieceBytes)
      : device_(kernels.device()),
        filter_(filter),
        meter_(meter),
        most_piece_bytes_(most_piece_bytes),
        kernels_(kernels) {}

  // Uploads all matrices of `to`, whose memory is allocated, from rows in GGUF order at `offset` of a part of
  // the source. They are there after finish().
  Status add(const Source& source, uint32_t part, uint64_t offset, const Tensor& to);
  Status finish() { return ring_ ? ring_->finish() : Status{}; }
  // Allocates all memory for pieces of so many bytes: ring_bytes(). It is allocated when needed otherwise.
  Status open(uint64_t piece_bytes);
  static uint64_t ring_bytes(uint64_t piece_bytes) { return 2 * Staging::kPieces * piece_bytes; }
  uint64_t piece_bytes(const Tensor& to) const;  // the size of the pieces with which it is loaded

  // The same from rows that the device can read where they lie. They are there on return.
  Status pack_mapped(const Slice& from, const Tensor& to);

 private:
  struct Bytes {  // of one piece, in a source
    const Source& source;
    uint32_t part;
    uint64_t offset, bytes;
  };
  struct Rows {  // rows first .. first + n - 1 of one matrix
    uint32_t matrix, first, n;
  };
  Status open_ring(uint64_t piece_bytes);
  Status advance(uint64_t bytes) { return meter_ ? meter_->advance(bytes) : Status{}; }
  Status read_mapped(const Bytes& from, uint8_t* host);
  Status read(const Bytes& from, void* host);
  Status choose(const Tensor& to, const KernelRow** row) const;
  Status pack(const KernelRow& row, const Slice& from, const Tensor& to, const Rows& rows, Stream* stream);

  Device& device_;
  RowFilter filter_;
  LoadMeter* meter_;
  uint64_t most_piece_bytes_;
  KernelSet kernels_;
  DeviceMemory raw_[Staging::kPieces];  // rows in GGUF order, until they are packed
  std::optional<Staging> ring_;  // declared later, since its streams are destroyed before what they use
  std::optional<ThreadPool> readers_;
};

}  // namespace greta
