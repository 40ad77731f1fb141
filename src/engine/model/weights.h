// The tensors of a model by their purpose, and the list of those that a file must have.
#pragma once
#include "engine/model/shape.h"

namespace greta {

// A tensor with n = 0 is absent: the architecture has no such part, or the file leaves it out.
inline bool there(const Tensor& tensor) { return tensor.n != 0; }

// A matrix, or one for each expert, and the factors of its products where the file has some: one for each
// matrix, beside it under the name of the matrix with ".scale" for ".weight". A bias comes after the factor.
struct ScaledTensor : Tensor {
  using Tensor::operator=;
  Tensor scale;
};

struct Layer {
  ScaledTensor query, key, value, attention_output;
  Tensor attention_norm, attention_norm_bias, ffn_norm_bias, query_bias, key_bias, value_bias, query_norm,
      key_norm, sinks;
  Tensor attention_output_bias, post_attention_norm;
  ScaledTensor attention_gate;
  ScaledTensor query_down, query_up, latent;
  Tensor query_down_norm, latent_norm, key_up, value_up;
  ScaledTensor state_in, state_gate, strength, rate, state_out;
  ScaledTensor rate_down, state_key, state_query;
  Tensor conv, conv_bias, rate_bias, decay, skip, state_norm, state_out_bias;
  Tensor rate_norm, state_key_norm, state_query_norm;
  ScaledTensor gate, up, down;
  Tensor ffn_norm, gate_bias, up_bias, down_bias, post_ffn_norm;
  ScaledTensor router, expert_gate, expert_up, expert_down;
  ScaledTensor shared_router, shared_gate, shared_up, shared_down;
  Tensor router_bias, choice_bias, expert_gate_bias, expert_up_bias, expert_down_bias;
  Tensor router_gain, expert_norm, post_dense_norm, post_expert_norm;
  ScaledTensor layer_gate, layer_up;
  Tensor layer_norm, layer_scale;
};

// What a layer that drafts tokens has beside a layer's tensors: `join` makes its input of the normed
// embedding of a token and the normed hidden state of the one before.
struct Head {
  Tensor embedding;  // what it reads in place of token_embedding, if that is on another device
  Tensor embedding_norm, hidden_norm, output_norm;
  ScaledTensor join;
};

struct Weights {
  Tensor token_embedding, output_norm, output_norm_bias, output_bias;
  ScaledTensor output;
  Tensor embedding_norm, embedding_norm_bias;
  Tensor layer_embedding, layer_projection_norm;
  ScaledTensor layer_projection;
  bool tied = false;                                             // token_embedding is also the output matrix
  std::vector<Layer> layers;                                     // [Shape::cached_layers()]
  Head head;                                                     // if Shape::heads
  std::vector<float> rope_factors, long_factors, short_factors;  // [rope[0].width / 2] or empty
  std::vector<float> position_embedding;                         // [positions][width] or empty
};

enum class Use : uint8_t { Embedding, Matrix, Heads, Experts, Vector };  // Heads: one matrix for each head

// How the file holds the `count` matrices of a wanted tensor. Dimensions are in GGUF order.
enum class Held : uint8_t {
  Apart,       // as a step wants them, with rows of `depth` values: [depth, rows, count]
  Stacked,     // one below the other: [depth, rows * count]
  Transposed,  // one below the other: [n, rows * count]; of each, rows first_row .. first_row + depth - 1
               // count
  Cut,         // as Apart, with more rows: [depth, rows, count]; of each, n from first_row on
  Woven,       // pieces of rows of several matrices in turn: of each rows / pieces rows, n / pieces from
               // first_row on
};

// A tensor that a step wants. It is rows first_row .. first_row + n - 1 of the file's tensor of this name,
// which has `rows` rows in each of `count` matrices. A vector is a single row of `depth` values, or one for
// each expert; with `rows`, depth is 1, and it is values first_row .. first_row + n - 1 of that many.
struct WantedTensor {
  TensorName name;
  Tensor* tensor;
  Use use;
  uint64_t depth, n, count = 1, first_row = 0, rows = 0;  // rows 0: n
  Held held = Held::Apart;
  bool scale = false;   // the file's name ends with ".scale" in place of ".weight", and any layer may have it
  uint64_t pieces = 1;  // Woven
  bool of_experts = false;  // of the experts that a router chooses, which may be on another device
  bool finite = false;      // the file is refused where a value is not finite
  bool on_host = false;     // only some rows are read in a step, so it stays in memory of the host
  float factor = 1;         // of all values of a vector
  const char* keys = "block_count and embedding_length";  // metadata keys that determine its size
};

// Lists what layer `index` wants. `fused_query` says that the file has query, key and value as one tensor.
std::vector<WantedTensor> layer_tensors(const Arch& arch, const Shape& shape, uint32_t index,
                                        bool fused_query, Layer* layer);

// Lists all tensors that a model wants, with their names in the file, and gives `weights` its layers. If its
// embedding and its output are `apart`, a matrix that is both is wanted twice, and so is the embedding if the
// layer that drafts tokens, which lies with the output, reads it there.
struct NamedTensor {
  std::string name;
  WantedTensor wanted;
  uint32_t piece;   // of the model: index of Placement::device
  bool of_experts;  // of a layer
  bool of_head;     // of the layer that drafts tokens
};
std::vector<NamedTensor> model_tensors(const Gguf& gguf, const Arch& arch, const Shape& shape,
                                       Weights* weights, bool apart = false);

// The names of the tensors that the architecture has and that go into tables by position, of those of rotary
// factors such as this shape uses.
std::vector<std::string_view> factor_tensors(const Arch& arch, const Shape& shape);

}  // namespace greta
