// A saved session. Little-endian, without gaps:
//
//   StateHeader
//   int32  tokens[tokens]
//   keys and values of the positions 0 .. tokens - 1, in the order of Executor::cache_bytes
//   uint64 checksum of all before it
//
// It is read as untrusted: every count is compared with the session's own before it is used, and what follows
// from them with the size of the source. Keys and values may be any bytes: kernels only compute with them.
#pragma once
#include <cstdint>

namespace greta {

constexpr char kStateMagic[8] = {'G', 'R', 'E', 'T', 'A', 'K', 'V', '\n'};
constexpr uint32_t kStateVersion = 1;

struct StateHeader {
  char magic[8];
  uint32_t version, header_bytes;  // these three stay where they are in any version
  uint64_t total_bytes;            // of the state
  uint64_t model;                  // Model::identity
  uint32_t tokens, vocab;
  uint32_t layers, kv_heads, key_width, value_width;
  uint32_t key_type, value_type;  // kernels/abi/cache_types.def
  uint32_t page_tokens;           // kPageTokens, by which the cache is ordered
  uint32_t long_rope;             // 1: positions turn as in contexts past the model's original one
  uint64_t checksum;              // of the header before it
};
static_assert(sizeof(StateHeader) == 80);

}  // namespace greta
