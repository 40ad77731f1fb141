// The handles and arguments that random calls of greta_compute.h are made of.
#pragma once
#include <algorithm>
#include <string_view>
#include <vector>

#include "api_tape.h"
#include "greta_compute.h"

namespace greta::fuzz {

constexpr uint64_t kMostBytes = 8192;  // of a buffer, and of what the host gives and takes
constexpr size_t kKept = 6;            // handles of a kind

// Whether a call did what it was asked for. Traps where it is none of the statuses that calls may give.
inline bool ok(greta_status status) {
  if (status < GRETA_OK || status > GRETA_ERROR_BUSY || status == GRETA_ERROR_DEVICE) __builtin_trap();
  const std::string_view text = greta_error_text();
  if (status && (text.empty() || text.find("internal error") != text.npos)) __builtin_trap();
  return status == GRETA_OK;
}
inline void must(greta_status status) {
  if (status != GRETA_OK) __builtin_trap();
}

// Handles of a kind. They stay in the list when they are closed.
template <class Handle>
struct Handles {
  std::vector<Handle> list;
  Handle pick(Tape& tape) const {
    const uint8_t which = tape.byte();
    if (list.empty() || which == 255) return Handle{};
    Handle handle = list[which % list.size()];
    if (which == 254) handle.number += tape.number();
    if (which == 253) handle.owner ^= 1;
    return handle;
  }
  void keep(Handle handle) {
    if (list.size() < kKept)
      list.push_back(handle);
    else
      list[handle.number % kKept] = handle;
  }
};

struct ComputeTape {
  explicit ComputeTape(Tape& from) : tape(from) {}

  Tape& tape;
  greta_compute* compute = nullptr;
  Handles<greta_buffer> buffers;
  Handles<greta_stream> streams;
  Handles<greta_timeline> timelines;
  Handles<greta_graph> graphs;
  Handles<greta_step> steps;
  std::vector<greta_buffer> slots;           // of graphs, open or not
  uint64_t rows = 1, width = 32, inner = 8;  // of the operation that is being made

  uint64_t bytes() { return tape.below(3) ? 16 * (1 + tape.below(64)) : tape.number(); }
  uint64_t offset() { return tape.below(3) ? 0 : tape.below(3) ? 16 * tape.below(40) : tape.number(); }
  uint64_t dimension() { return tape.below(6) ? 1 + tape.below(12) : tape.number(); }

  // Of the shape that this call has, or sometimes of another one.
  greta_tensor tensor(uint32_t rank = 2, uint64_t last = 0) {
    greta_tensor made = {};
    const bool odd = !tape.below(12);
    made.type = odd && !tape.below(8) ? uint32_t(tape.number()) : GRETA_TYPE_F32;
    made.rank = odd ? tape.below(6) : rank;
    const uint64_t wide = last ? last : width,
                   shape[] = {rank > 1 ? rows : wide, rank > 2 ? 2 : wide, wide, 1};
    const bool gaps = !tape.below(4);
    for (int d = 0; d < 4; ++d) {
      made.shape[d] = odd ? dimension() : shape[d];
      if (odd && gaps) made.strides[d] = tape.below(2) ? 1 : 8 * dimension();
    }
    if (gaps && !odd && rank > 1) {
      made.strides[rank - 1] = 1;
      made.strides[rank - 2] = wide + 4 * tape.below(3);
      if (rank > 2) made.strides[0] = 2 * made.strides[1];
    }
    made.buffer = buffers.pick(tape);
    made.offset = odd ? offset() : 16 * tape.below(4);
    return made;
  }
  greta_weights weights() {
    static constexpr uint32_t kTypes[] = {0, 1, 8, 12, 30};
    greta_weights made = {};
    uint64_t unused, unused2;
    const uint32_t type = tape.below(8) ? kTypes[tape.below(5)] : uint32_t(tape.number());
    const uint64_t n = tape.below(8) ? inner : dimension(), depth = tape.below(8) ? width : 32 * dimension();
    if (!ok(greta_weights_size(compute, type, n, depth, &made, &unused, &unused2))) {
      made.type = type, made.n = n, made.depth = depth;
    }
    if (!tape.below(10)) made.layout = uint32_t(tape.number());
    made.buffer = buffers.pick(tape);
    made.offset = tape.below(3) ? 0 : 256 * tape.below(8);
    return made;
  }
  greta_cache cache() {
    greta_cache made = {};
    uint64_t bytes;
    made.type = tape.below(8) ? tape.below(2) : uint32_t(tape.number());
    made.heads = tape.below(8) ? 1 + tape.below(2) : uint32_t(dimension());
    made.width = tape.below(8) ? uint32_t(width) : uint32_t(dimension());
    made.pages = tape.below(8) ? 1 : uint32_t(dimension());
    ok(greta_cache_size(compute, &made, &bytes));
    made.buffer = buffers.pick(tape);
    if (!tape.below(8)) made.offset = offset();
    return made;
  }
};

}  // namespace greta::fuzz
