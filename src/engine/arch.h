// What makes one architecture different from another, as data. models/<arch>.cpp fills in one Arch;
// nothing else in the tree names an architecture.
#pragma once
#include <cstdint>

namespace greta {

enum class Rope : uint8_t {
  Pairs,   // rotates (2i, 2i + 1), as llama's converted weights are ordered
  Halves,  // rotates (i, i + width / 2)
};

enum class Activation : uint8_t { Silu = 0, Gelu = 1 };  // kActivation* of kernels/abi/ops.h

// Names of tensors in the file; %u is the layer.
struct TensorNames {
  const char* token_embedding = "token_embd.weight";
  const char* output_norm = "output_norm.weight";
  const char* output = "output.weight";  // absent: the embedding serves, transposed
  const char* rope_factors = "rope_freqs.weight";
  const char* attention_norm = "blk.%u.attn_norm.weight";
  const char* query = "blk.%u.attn_q.weight";
  const char* key = "blk.%u.attn_k.weight";
  const char* value = "blk.%u.attn_v.weight";
  const char* attention_output = "blk.%u.attn_output.weight";
  const char* ffn_norm = "blk.%u.ffn_norm.weight";
  const char* gate = "blk.%u.ffn_gate.weight";
  const char* up = "blk.%u.ffn_up.weight";
  const char* down = "blk.%u.ffn_down.weight";
};

struct Arch {
  const char* name;  // general.architecture, and the prefix of the metadata keys
  Rope rope = Rope::Pairs;
  Activation activation = Activation::Silu;
  TensorNames tensors;
};

}  // namespace greta
