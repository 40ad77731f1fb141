// The sizes of a model, read from its metadata and checked.
#pragma once
#include <string_view>

#include "engine/arch.h"
#include "engine/gguf.h"
#include "graph/graph.h"

namespace greta {

constexpr uint32_t kMaxLayers = 4096;
constexpr uint32_t kMaxWidth = 1 << 20;
constexpr uint32_t kMaxHeads = 4096;
constexpr uint32_t kMaxVocab = 1 << 24;
constexpr uint32_t kMaxContext = 1 << 24;

struct Shape {
  uint32_t layers = 0, width = 0, ffn_width = 0, vocab = 0;
  uint32_t heads = 0, kv_heads = 0;           // query heads, key-value heads
  uint32_t key_width = 0, value_width = 0;    // of one head
  uint32_t context = 0;                       // trained for
  uint32_t rope_width = 0;                    // rotated values of a head
  float rope_base = 10000.0f;
  float rope_scale = 1.0f;                    // linear scaling: positions are divided by it
  float epsilon = 1e-5f;
};

// The architecture by name; Unsupported lists what this build knows.
Status find_arch(std::string_view name, const Arch** out);

// Unsupported for features that no field expresses, so that nothing is computed wrong in silence.
Status read_shape(const Gguf& gguf, const Arch& arch, Shape* out);

}  // namespace greta
