// The sizes of a model, read from its metadata and checked.
#pragma once
#include <set>
#include <string_view>

#include "engine/model/arch.h"
#include "gguf/gguf.h"
#include "graph/graph.h"

namespace greta {

constexpr uint32_t kMaxLayers = 4096;
constexpr uint32_t kMaxWidth = 1 << 20;
constexpr uint32_t kMaxHeads = 4096;
constexpr uint32_t kMaxVocab = 1 << 24;
constexpr uint32_t kMaxContext = 1 << 24;

// How positions turn into angles. Kinds exclude each other; a table of factors may come on top.
struct RopeScaling {
  enum class Kind : uint8_t { None, Linear, Yarn, Long } kind = Kind::None;
  float factor = 1;            // linear: positions are divided by it; yarn: so are the slow pairs'
  float attention_factor = 1;  // multiplies cosine and sine
  uint32_t original_context = 0;
  float beta_fast = 32, beta_slow = 1, extrapolation = 1;
  bool whole_range = true;
};

// Two tables at most: layers with a window may turn by another base.
struct RopeTable {
  float base = 10000.0f;
  RopeScaling scaling;
  bool factors = true;  // takes the file's factors, if there are any
};
constexpr uint32_t kMaxRopeTables = 2;
constexpr uint8_t kNoRope = 0xff;

// A tensor's name in the file.
std::string layer_name(const TensorName& name, uint32_t layer);

struct LayerShape {
  uint32_t window = 0;     // positions seen, the token's own among them; 0: all
  uint8_t rope_table = 0;  // or kNoRope
  bool experts = false;
};

struct Experts {
  uint32_t count = 0, used = 0;
  uint32_t width = 0, shared_width = 0;  // hidden values of one expert, of the shared ones together
  uint32_t groups = 1, groups_used = 1, gating = kGatingSoftmax;
  bool normalise = false;
  float scale = 1;
};

// Latent attention: a head's query and key are `plain` values and rope_width rotated ones; a position caches
// `width` values, from which all heads' keys and values are made, and the rotated ones of its key.
struct Latent {
  uint32_t width = 0, query_width = 0;  // query_width: of the query's bottleneck, 0 without
  uint32_t plain = 0, value = 0;        // of a head, before and after its matrices
  bool joined = false;                  // the file has the matrices of keys and values as one tensor
};

struct Shape {
  uint32_t layers = 0, width = 0, ffn_width = 0, vocab = 0;
  uint32_t draft_layers = 0;  // the file has so many more behind them, which draft tokens and are not used
  uint32_t heads = 0, kv_heads = 0;         // query heads, cached key-value heads
  uint32_t key_width = 0, value_width = 0;  // of one cached head
  uint32_t context = 0;                     // trained for
  uint32_t rope_width = 0;                  // rotated values of a head
  float epsilon = 1e-5f;
  float attention_scale = 0, attention_softcap = 0, final_softcap = 0;
  float embedding_scale = 1, residual_scale = 1, logit_scale = 1;
  Latent latent;  // with Arch::latent; then values are the beginning of the keys
  Experts experts;
  RopeTable rope[kMaxRopeTables];
  uint32_t rope_tables = 1;
  std::vector<LayerShape> each;  // [layers]
};

// The architecture by name; Unsupported lists what this build knows.
Status find_arch(std::string_view name, const Arch** out);
// That of a file, by its general.architecture.
Status file_arch(const Gguf& gguf, const Arch** out);

// The keys that a model's sizes and settings were looked for under, whether the file has them or not.
using KeysRead = std::set<std::string, std::less<>>;

// Sizes and settings, with llama.cpp's defaults for keys that are absent.
Status read_shape(const Gguf& gguf, const Arch& arch, Shape* out, KeysRead* keys);

}  // namespace greta
