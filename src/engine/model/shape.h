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

// How the angles of rotary positions are scaled. Only one kind applies, perhaps with the file's factors.
struct RopeScaling {
  enum class Kind : uint8_t { None, Linear, Yarn, Long } kind = Kind::None;
  float factor = 1;            // linear: divides all positions; YaRN: divides those of the slow pairs
  float attention_factor = 1;  // multiplies cosine and sine
  uint32_t original_context = 0;
  float beta_fast = 32, beta_slow = 1, extrapolation = 1;
  bool whole_range = true;
};

// A model has several tables where layers with a window rotate by another base, or where queries grow with
// their position.
struct RopeTable {
  uint32_t width = 0;  // rotated values of a head
  float base = 10000.0f;
  RopeScaling scaling;
  bool factors = true;  // the file's factors apply, if it has any
  // Cosine and sine at position p grow by 1 + temperature * ln(1 + floor((p + offset) / original_context)).
  float temperature = 0;
  uint32_t offset = 0;
  // What it holds. All but the first two are such that they turn ones into the values that are said here.
  enum class Kind : uint8_t {
    Turns,      // rotations
    Still,      // rotations by nothing
    Positions,  // the embeddings of positions
    Slopes,     // marks of keys: those of a head add up to its slope times the position, in some unit
    Level,      // marks of queries that are to be multiplied with these
    Chunks,     // marks of both, by turns above and below zero from chunk to chunk
  } kind = Kind::Turns;
  uint32_t chunk = 0;  // positions
};
constexpr uint32_t kMaxRopeTables = 3;
constexpr uint8_t kNoRope = 0xff;

// A tensor's name in the file, with the layer in place of %u.
std::string layer_name(const TensorName& name, uint32_t layer);

// A layer lacks attention if it has no heads, and a feed-forward block if it has neither experts nor a width.
struct LayerShape {
  static constexpr uint32_t kOwn = ~0u;
  uint32_t window = 0;                      // how many positions a token sees, its own included; 0: all
  uint8_t rope_table = 0;                   // of keys: an index, or kNoRope
  uint8_t query_rope_table = 0;             // of queries
  bool experts = false;                     // in place of the dense feed-forward block
  bool recurrent = false;                   // it keeps a state of each sequence (Shape::recurrence)
  uint32_t heads = 0, kv_heads = 0;         // query heads, and cached key-value heads
  uint32_t key_width = 0, value_width = 0;  // of one cached head
  // The last values of a query's and a key's head, which tables make of the position: they add to the scores
  // what the weights do not (mark_heads() in transformer.cpp).
  uint32_t marks = 0;
  uint8_t query_marks = kNoRope, key_marks = kNoRope;  // tables
  uint32_t rope_width = 0;                             // rotated values of a head
  uint32_t ffn_width = 0;                              // hidden values of the dense feed-forward block
  uint32_t cache_of = kOwn;                            // the earlier layer whose keys and values it reads
  bool keys_as_values = false;                         // its values are its keys before their norm
  bool head_gates = false;                             // its gate has one value for each head
  bool norm_heads = false;                             // its queries and keys are normalised without a gain
  Xielu xielu = {};                                    // of its feed-forward block

  bool attends() const { return kv_heads != 0; }
  uint32_t own_keys() const { return key_width - marks; }  // values of a head that weights make
  bool keeps_cache() const { return attends() && cache_of == kOwn; }
  bool has_ffn() const { return experts || ffn_width; }
};

struct Experts {
  uint32_t count = 0, used = 0;
  uint32_t width = 0, shared_width = 0;  // hidden values of one expert, and of the shared experts together
  uint32_t groups = 1, groups_used = 1, gating = kGatingSoftmax;
  bool normalise = false;
  float scale = 1;
};

// Latent attention. A head's query and key have `plain` values and rope_width rotated ones. For each position
// the cache holds `width` values, which make the keys and values of all heads, and the key's rotated values.
struct Latent {
  uint32_t width = 0;
  uint32_t query_width = 0;       // width of the query's bottleneck; 0: there is none
  uint32_t plain = 0, value = 0;  // values of a head's key that are not rotated, and of its value
  bool joined = false;            // the file has the matrices of keys and values as one tensor
};

// What recurrent layers compute: a causal convolution of `channels` values of a token, and unless it is alone
// (Recurrence::ShortConv) a scan of heads that share keys and queries in groups (kernels/abi/scan.h).
struct RecurrentShape {
  uint32_t conv_width = 0, channels = 0;
  uint32_t heads = 0, groups = 0, key_width = 0, value_width = 0;
  uint32_t rank = 0;  // of Mamba 1: values that the rates of all channels are made of

  uint32_t values() const { return heads * value_width; }
  uint32_t keys() const { return groups * key_width; }
  uint64_t conv_values() const { return conv_state_values(channels, conv_width); }
  uint64_t scan_values() const { return scan_state_values(heads, key_width, value_width); }
  // Of a state the values of the convolution come first. Both begin at a multiple of 256 bytes.
  uint64_t scan_at() const { return round_up(conv_values(), 64); }
  uint64_t stride() const { return scan_at() + round_up(scan_values(), 64); }
};

struct Shape {
  uint32_t layers = 0, width = 0, vocab = 0;
  uint32_t draft_layers = 0;     // layers after these in the file, which draft tokens
  uint32_t heads = 0;            // 1: the first of them is used; its shape stands in `each` behind the others
  uint32_t context = 0;          // the context that the model was trained for, in tokens
  bool parallel = false;         // attention and feed-forward of a layer read the same residual
  uint32_t positions = 0;        // rows of the embeddings of positions; 0: there are none
  uint32_t layer_embedding = 0;  // values of the embedding that each layer has of a token; 0: there is none
  float epsilon = 1e-5f, post_epsilon = 1e-5f, head_epsilon = 1e-5f;
  float attention_scale = 0, attention_softcap = 0, final_softcap = 0;
  float embedding_scale = 1, residual_scale = 1, logit_scale = 1;
  Latent latent;  // if Arch::latent; then the cached values are the beginning of the cached keys
  Experts experts;
  RopeTable rope[kMaxRopeTables];
  uint32_t rope_tables = 1;
  std::vector<LayerShape> each;  // [layers]
  // A head's scores fall with the distance, so that marks of keys need all their bits.
  bool slopes() const { return rope_tables > 1 && rope[1].kind == RopeTable::Kind::Slopes; }
  // Layers read another one's cache, or embeddings of their own that are made with the first one, or the
  // embeddings of positions lie among the tables of the layers. Nothing brings these to another device.
  bool stays_whole() const;
  RecurrentShape recurrence;  // of all recurrent layers
  uint32_t recurrent_layers = 0;

  uint32_t cached_layers() const { return layers + heads; }
  const LayerShape& attending() const;  // the first layer with attention, or one without anything
  // The layer whose keys and values a layer reads: itself or an earlier one.
  uint32_t cache_layer(uint32_t layer) const {
    return each[layer].cache_of == LayerShape::kOwn ? layer : each[layer].cache_of;
  }
};

// Finds an architecture by its name. The text of an Unsupported failure lists those that this build knows.
Status find_arch(std::string_view name, const Arch** out);
// Finds the architecture that a file names by general.architecture.
Status file_arch(const Gguf& gguf, const Arch** out);

// The metadata keys that were looked for, whether the file has them or not.
using KeysRead = std::set<std::string, std::less<>>;

// Reads sizes and settings. Absent keys have llama.cpp's defaults.
Status read_shape(const Gguf& gguf, const Arch& arch, Shape* out, KeysRead* keys);

}  // namespace greta
