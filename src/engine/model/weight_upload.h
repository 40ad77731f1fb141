// Weights on their way to the device: read by several threads into a ring of pinned pieces, copied and, where
// the kernels want another layout, packed there. One ring serves a whole model: a piece is read while those
// before it are copied and packed. Into memory that the host sees they are read at once.
#pragma once
#include <optional>

#include "engine/model/load_meter.h"
#include "gguf/gguf.h"
#include "graph/graph.h"

namespace greta {

class WeightUpload {
 public:
  // `meter` (may be null) is told of each piece and may end the upload.
  WeightUpload(Device& device, const RowFilter& filter, LoadMeter* meter = nullptr)
      : device_(device), filter_(filter), meter_(meter), kernels_(device) {}

  // All matrices of `to`, which has its memory, from rows in GGUF order at `offset` of a part of the source.
  // They are there after finish().
  Status add(const Source& source, uint32_t part, uint64_t offset, const Tensor& to);
  Status finish() { return ring_ ? ring_->finish() : Status{}; }

  // The same from rows that the device reads where they are; done on return.
  Status pack_mapped(const Slice& from, const Tensor& to);

 private:
  struct Bytes {  // of a source, for one piece
    const Source& source;
    uint32_t part;
    uint64_t offset, bytes;
  };
  struct Rows {  // n rows of one matrix, `first` the first
    uint32_t matrix, first, n;
  };
  Status open(uint64_t piece_bytes);
  Status advance(uint64_t bytes) { return meter_ ? meter_->advance(bytes) : Status{}; }
  Status read_mapped(const Bytes& from, uint8_t* host);
  Status read(const Bytes& from, void* host);
  Status choose(const Tensor& to, const KernelRow** row) const;
  Status pack(const KernelRow& row, const Slice& from, const Tensor& to, const Rows& rows, Stream* stream);

  Device& device_;
  RowFilter filter_;
  LoadMeter* meter_;
  KernelSet kernels_;
  DeviceMemory raw_[Staging::kPieces];  // rows as they came, until they are packed
  std::optional<Staging> ring_;         // its streams go before what they use
  std::optional<ThreadPool> readers_;
};

}  // namespace greta
