// The format of a saved session. It is little-endian and has no gaps:
//
//   StateHeader
//   int32  tokens[tokens]
//   keys and values of the positions 0 .. tokens - 1, in the order of Executor::cache_bytes
//   uint64 checksum of all before it
//
// In version 2 the pages of layers with a window are left out that lie before first_page_kept() of `tokens`.
// It is written where the cache does not have them. Both are read. A model with recurrent layers has only
// version 2: behind keys and values it has the state of each such layer, which is that of its convolution and
// that of its scan, in float32.
//
// The reader does not trust it. It compares every count with the session's own before using it, and the total
// with the size of the source. Keys and values may be any bytes, since kernels only compute with them.
#pragma once
#include <cstdint>

#include "engine/session/session.h"

namespace greta {

constexpr char kStateMagic[8] = {'G', 'R', 'E', 'T', 'A', 'K', 'V', '\n'};
constexpr uint32_t kStateVersion = 2;  // the newest

struct StateHeader {
  char magic[8];
  uint32_t version, header_bytes;  // with `magic` they keep their places in all versions
  uint64_t total_bytes;            // of the whole state
  uint64_t model;                  // Model::identity, or with adapters identity_with() theirs
  uint32_t tokens, vocab;
  uint32_t layers, kv_heads, key_width, value_width;
  uint32_t key_type, value_type;  // kernels/abi/cache_types.def
  uint32_t page_tokens;           // kPageTokens, since the cache is saved page by page
  uint32_t long_rope;             // 1: rotated as in contexts longer than the model's original one
  uint64_t checksum;              // of the header before it
};
static_assert(sizeof(StateHeader) == 80);

// The header for `tokens` tokens, by default as this executor writes it. Where two are equal, so are the
// cache's model, its types and the order of its bytes.
// `adapters` is the identity of those with which all tokens were read; 0: there were none.
StateHeader state_header(const Executor& executor, uint32_t tokens, uint64_t adapters = 0);
StateHeader state_header(const Executor& executor, uint32_t tokens, Executor::CacheForm form,
                         uint64_t adapters = 0);
inline Executor::CacheForm form_of(const StateHeader& header) {
  return header.version == 1 ? Executor::CacheForm::Whole : Executor::CacheForm::Windows;
}

// Reads a state from its beginning and sums up what was read.
struct StateReader {
  const Source& source;
  uint64_t at = 0;
  Checksum sum = {};
  bool failed = false;  // reading failed, and that error's text has the source's name already

  Status read(void* to, uint64_t bytes);
  Status check_sum();
  // Reads all before the keys and values. Fails unless the executor could have saved it and one of its
  // sequences can hold it.
  Status read_head(const Executor& executor, uint64_t adapters, StateHeader* header,
                   std::vector<int32_t>* tokens);
};

// A saved session in the host's memory.
struct SavedState {
  StateHeader header = {};
  std::vector<int32_t> tokens;
  std::vector<uint8_t> cache;
};

// Reads and checks a whole state. Any thread may do so.
Status read_state(const Source& source, const Executor& executor, SavedState* out, uint64_t adapters = 0);
// Copies the cache of the sequence's tokens, with which it can go on.
Status save_state(Executor& executor, uint32_t sequence, std::span<const int32_t> tokens, uint64_t adapters,
                  SavedState* out);
// Fills the sequence's cache with a state that the executor can hold.
Status load_state(const SavedState& state, Executor& executor, uint32_t sequence);
Status write_state(const SavedState& state, Session::WriteState write, void* user);

}  // namespace greta
