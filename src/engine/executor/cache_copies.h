// Copies of the cache: a sequence's part of it to the host and back, whole pages and states that the host
// keeps, and pages that a step would write to although others use them.
#pragma once
#include <functional>

#include "engine/executor/executor_devices.h"
#include "engine/executor/sequences.h"

namespace greta {

using CacheBytes = std::function<Status(uint8_t* bytes, uint64_t count)>;

struct CachePage {
  uint32_t full, window = PagePool::kGone;  // of group 0, and of the one with a window, which may be gone
};

class CacheCopies {
 public:
  CacheCopies(const Model& model, ExecutorDevices& on, Sequences& sequences)
      : model_(model), on_(on), sequences_(sequences) {}

  // The cache of a sequence's first `positions` positions as a stream of bytes: by page, layer, keys before
  // values, head, position. It passes through a buffer of at most kCachePieceBytes. In the form `Windows` the
  // pages of layers with a window before first_page_kept() are left out, and the states of recurrent layers
  // come last.
  uint64_t bytes(uint32_t positions, CacheForm form) const;
  // Saves them in the executor's own form.
  Status save(uint32_t sequence, uint32_t positions, const CacheBytes& take);
  // Fills fresh pages, and the token log with `tokens`. The pages become the sequence's when all are filled;
  // on a failure the sequence keeps those that it has.
  Status restore(uint32_t sequence, std::span<const int32_t> tokens, CacheForm form, const CacheBytes& fill);

  // Submits the copy of a whole page to memory of `page_bytes()` or back: keys and values by layer, then the
  // page's part of the token log. Steps that are submitted later come behind it; the host waits for nothing.
  uint64_t page_bytes() const;
  Status save_page(const CachePage& page, const Slice& to);
  Status load_page(const Slice& from, const CachePage& page);
  // The same for a state. 0 bytes: layers keep none, or several devices have parts of it.
  uint64_t kept_state_bytes() const {
    return sequences_.states() && on_.size() == 1 ? saved_state_bytes() : 0;
  }
  Status save_state(uint32_t state, const Slice& to);
  Status load_state(const Slice& from, uint32_t state);

  // Records the copies of pages and states that the sequences of a step share, before it writes into them.
  Status copy_shared();

 private:
  class Pieces;
  using Spans = std::function<Status(uint32_t device, Slice)>;
  using Walk = std::function<Status(const Spans& visit)>;
  uint32_t first_saved(uint32_t layer, uint32_t positions, CacheForm form) const;
  Status walk_page(const CachePage& page, const Spans& visit) const;
  Status walk_cache(uint32_t sequence, uint32_t positions, CacheForm form, const Spans& visit) const;
  Status walk_state(uint32_t state, const Spans& visit) const;
  Status walk_log(uint32_t sequence, uint32_t positions, const Spans& visit) const;
  uint64_t saved_state_bytes() const;
  Status copy_out(const Walk& walk, const Slice& to);
  Status copy_in(const Slice& from, const Walk& walk);
  Status load_pages(const Walk& walk, uint64_t bytes, const CacheBytes& fill);

  const Model& model_;
  ExecutorDevices& on_;
  Sequences& sequences_;
};

}  // namespace greta
