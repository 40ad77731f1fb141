// The tensors of a model by what they do, and the list of those that the file must have.
#pragma once
#include "engine/model/shape.h"

namespace greta {

// A tensor with n = 0 is not there: the architecture has no such part, or the file leaves it out.
inline bool there(const Tensor& tensor) { return tensor.n != 0; }

struct Layer {
  Tensor attention_norm, query, key, value, query_bias, key_bias, value_bias, query_norm, key_norm, sinks;
  Tensor attention_output, attention_output_bias, post_attention_norm;
  Tensor query_down, query_down_norm, query_up, latent, latent_norm, key_up, value_up;
  Tensor ffn_norm, gate, up, down, gate_bias, up_bias, down_bias, post_ffn_norm;
  Tensor router, router_bias, choice_bias, expert_gate, expert_up, expert_down;
  Tensor expert_gate_bias, expert_up_bias, expert_down_bias, shared_gate, shared_up, shared_down;
};

struct Weights {
  Tensor token_embedding, output_norm, output, output_bias;
  bool tied = false;  // output is token_embedding
  std::vector<Layer> layers;
  std::vector<float> rope_factors, long_factors, short_factors;  // [rope_width / 2] or empty
};

enum class Use : uint8_t { Embedding, Matrix, Heads, Experts, Vector };  // Heads: a matrix for each head

// How the file holds the `count` matrices of a wanted tensor.
enum class Held : uint8_t {
  Apart,       // as they are wanted, rows of `depth` values: [depth, rows, count]
  Stacked,     // one below the other: [depth, rows * count]
  Transposed,  // likewise [n, rows * count]; `depth` rows of each, from first_row on, are the wanted columns
};

// A tensor that a step wants: rows first_row .. first_row + n - 1 of the file's tensor of this name, which
// has `rows` of them in each of `count` matrices. A vector has rows of `depth` too, as many as experts or
// one; with `rows` it is values first_row .. first_row + n - 1 of a vector of `rows` values, and depth is 1.
struct WantedTensor {
  TensorName name;
  Tensor* tensor;
  Use use;
  uint64_t depth, n, count = 1, first_row = 0, rows = 0;  // rows 0: n
  Held held = Held::Apart;
  const char* keys = "block_count and embedding_length";  // of the metadata, that ask for it in this size
};

// What layer `index` wants. fused_query: the file has query, key and value as one tensor.
std::vector<WantedTensor> layer_tensors(const Arch& arch, const Shape& shape, uint32_t index,
                                        bool fused_query, Layer* layer);

// All that a model wants of a file, by the names of its tensors there; sizes `weights` by layers.
struct NamedTensor {
  std::string name;
  WantedTensor wanted;
};
std::vector<NamedTensor> model_tensors(const Gguf& gguf, const Arch& arch, const Shape& shape,
                                       Weights* weights);

// The tensors of rotary factors that this shape's angles are made with, without those that the architecture
// lacks.
std::vector<std::string_view> factor_tensors(const Arch& arch, const Shape& shape);

}  // namespace greta
