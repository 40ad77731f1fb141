// A step: a StepState in memory of the device, which stream work changes and operations read.
#pragma once
#include "api/compute/objects.h"

namespace greta {

class StepObject final : public Object {
 public:
  StepObject(greta_compute& compute, const greta_step_options& options);
  Status open(greta_compute& compute);

  // Record changes.
  Status set(StreamObject& stream, std::span<const greta_row> list);
  Status set_draw(StreamObject& stream, uint32_t sequence, const greta_draw& draw);
  // What is recorded next moves rows one position further. Fails where one would leave its sequence.
  Status draw(const StreamObject& stream);
  Status set_pages(StreamObject& stream, uint32_t sequence, uint32_t first, std::span<const uint32_t> pages);

  const Slice& state() const { return state_->slice; }
  const std::shared_ptr<BufferObject>& buffer() const { return state_; }

  const uint32_t capacity, sequences, positions;
  const bool lone_rows;           // at most one row of each sequence lives
  const uint32_t sequence_pages;  // entries of a page table
  const uint32_t pages;           // of caches

 private:
  // Bytes that go to `at` of the state.
  struct Piece {
    uint64_t at;
    const void* data;
    uint64_t bytes;
  };
  static constexpr size_t kMostOnTheWay = 64;
  Status send(StreamObject& stream, std::span<const Piece> pieces);
  friend Status use_step(const greta_compute& compute, const StreamObject& stream, StepObject& step);
  Status take_upload(std::shared_ptr<BufferObject>* out);
  uint64_t table_at(uint32_t sequence, uint32_t entry) const {
    return sizeof(StepState) + (uint64_t(sequence) * sequence_pages + entry) * sizeof(uint32_t);
  }
  uint64_t state_bytes() const { return table_at(sequences, 0) + sequences * sizeof(SamplePenalties); }

  Memories& memories_;
  std::shared_ptr<BufferObject> state_;
  std::mutex mutex_;       // of what follows
  uint64_t stream_ = 0;    // the number of the one that it is used on
  uint64_t furthest_ = 0;  // position of a row that lives
  uint64_t forgets_ = 0;   // of the stream when that was known
  // What is on the way to the device: those that no stream uses any more are free.
  std::vector<std::shared_ptr<BufferObject>> uploads_;
};

// Fails while another stream, which is open, is the step's.
Status use_step(const greta_compute& compute, const StreamObject& stream, StepObject& step);

}  // namespace greta
