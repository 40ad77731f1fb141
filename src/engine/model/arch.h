// What makes one architecture different from another, as data. models/<arch>.cpp fills in one Arch, and
// nothing else in the tree names an architecture. A model has a feature if the feature's tensor has a name
// here and, where it is optional, lies in the file.
#pragma once
#include <cstdint>

namespace greta {

enum class Rope : uint8_t {
  Pairs,   // rotates (2i, 2i + 1), as llama's converted weights are ordered
  Halves,  // rotates (i, i + width / 2)
};

enum class Activation : uint8_t { Silu = 0, Gelu = 1, Clamped = 2 };  // kActivation* of kernels/abi/ops.h

// What a value is multiplied by: kFactor* of kernels/abi/multiply.h. Those of activations are activation(x) /
// x.
enum class Factor : uint8_t { Logistic = 1, Positive = 2, Gelu = 3, GeluErf = 4, Xielu = 5, Softplus = 6 };

// What layers compute that keep a state of each sequence (kernels/abi/scan.h).
enum class Recurrence : uint8_t {
  None,
  ShortConv,  // a gated convolution
  Delta,      // a convolution, and a scan by the gated delta rule
  Groups,     // a convolution, and Mamba 2's scan
  Selective,  // a convolution, and Mamba 1's selective scan
};

// A tensor's name in the file. %u stands for the layer.
struct TensorName {
  const char* text = nullptr;  // null: the architecture has no such tensor
  bool optional = false;
  constexpr TensorName() = default;
  constexpr TensorName(const char* name, bool is_optional = false) : text(name), optional(is_optional) {}
};
constexpr TensorName maybe(const char* text) { return {text, true}; }

struct TensorNames {
  TensorName token_embedding = "token_embd.weight";
  TensorName output_norm = "output_norm.weight", output_norm_bias = {};
  TensorName output = maybe("output.weight");  // if absent, token_embedding takes its place
  TensorName output_bias = maybe("output.bias");
  TensorName position_embedding = {};  // a row for each position, added to the embeddings of its token
  TensorName embedding_norm = {}, embedding_norm_bias = {};  // of the embeddings of tokens
  TensorName rope_factors = maybe("rope_freqs.weight");
  TensorName long_factors = maybe("rope_factors_long.weight");    // for contexts longer than the original one
  TensorName short_factors = maybe("rope_factors_short.weight");  // for other contexts

  // Embeddings for each layer (Shape::layer_embedding): a table with those of all layers in a row, and what
  // makes the others from the embedding of a token.
  TensorName layer_embedding = {}, layer_projection = {}, layer_projection_norm = {};

  // Attention, in the order in which a layer uses them.
  TensorName attention_norm = "blk.%u.attn_norm.weight", attention_norm_bias = {};
  TensorName query = "blk.%u.attn_q.weight";
  TensorName key = "blk.%u.attn_k.weight";
  TensorName value = "blk.%u.attn_v.weight";
  // These two hold the rows of query, key and value in this order, in place of the tensors above.
  TensorName query_key_value = maybe("blk.%u.attn_qkv.weight");
  TensorName query_key_value_bias = maybe("blk.%u.attn_qkv.bias");
  TensorName query_bias = maybe("blk.%u.attn_q.bias");
  TensorName key_bias = maybe("blk.%u.attn_k.bias");
  TensorName value_bias = maybe("blk.%u.attn_v.bias");
  TensorName query_norm = {}, key_norm = {};  // of each head, or of all heads together (norm_all_heads)
  TensorName sinks = {};
  TensorName attention_gate = {};  // of a head's result, or of each of its values (Arch::gate_factor)
  TensorName attention_output = "blk.%u.attn_output.weight";
  TensorName attention_output_bias = maybe("blk.%u.attn_output.bias");
  TensorName post_attention_norm = {};  // normalises what attention adds to the residual

  // Latent attention (Arch::latent), in place of query, key and value.
  TensorName query_down = maybe("blk.%u.attn_q_a.weight");  // if absent, `query` is in place of down and up
  TensorName query_down_norm = "blk.%u.attn_q_a_norm.weight";
  TensorName query_up = "blk.%u.attn_q_b.weight";
  TensorName latent = "blk.%u.attn_kv_a_mqa.weight";
  TensorName latent_norm = "blk.%u.attn_kv_a_norm.weight";
  TensorName key_up = "blk.%u.attn_k_b.weight";
  TensorName value_up = "blk.%u.attn_v_b.weight";
  TensorName key_value_up = "blk.%u.attn_kv_b.weight";  // in place of key_up and value_up (Latent::joined)

  // A layer with a state, in place of attention. It has attention_norm and post_attention_norm, too.
  TensorName state_in = {};    // what is convolved
  TensorName state_gate = {};  // multiplies the result, by SiLU
  TensorName state_all = {};   // of Mamba, in place of both: [gate | convolved | rate], or [convolved | gate]
  TensorName conv = {}, conv_bias = {};
  TensorName strength = {}, rate = {};  // of the delta rule, by head; rate of Mamba 1, by channel
  TensorName strength_rate = {};        // the rows of both, for each head of keys, in place of both
  TensorName rate_key_query = {};       // of Mamba 1, from what was convolved
  TensorName rate_norm = {}, state_key_norm = {}, state_query_norm = {};  // of their parts
  TensorName rate_bias = {}, decay = {}, skip = {};
  TensorName state_norm = {};  // of each head's result, or of each group's
  TensorName state_out = {};

  // Feed-forward.
  TensorName ffn_norm = "blk.%u.ffn_norm.weight", ffn_norm_bias = {};
  TensorName head_ffn_norm = {};  // in place of ffn_norm in the layer that drafts tokens
  TensorName gate = "blk.%u.ffn_gate.weight";
  TensorName up = "blk.%u.ffn_up.weight";
  TensorName gate_up = {};  // the rows of gate, then those of up, in place of both
  TensorName down = "blk.%u.ffn_down.weight";
  TensorName gate_bias = maybe("blk.%u.ffn_gate.bias");
  TensorName up_bias = maybe("blk.%u.ffn_up.bias");
  TensorName down_bias = maybe("blk.%u.ffn_down.bias");
  TensorName post_ffn_norm = {};
  // What a layer adds last, from its own embedding: up(activation(gate(h)) * embedding), normalised.
  TensorName layer_gate = {}, layer_up = {}, layer_norm = {};
  TensorName layer_scale = {};  // of all that leaves the layer: one number

  // Experts, in layers that have them in place of gate, up and down, or beside these (Arch::experts_beside).
  TensorName router = "blk.%u.ffn_gate_inp.weight";
  TensorName router_bias = maybe("blk.%u.ffn_gate_inp.bias");
  TensorName choice_bias = maybe("blk.%u.exp_probs_b.bias");
  TensorName expert_gate = "blk.%u.ffn_gate_exps.weight";
  TensorName expert_up = "blk.%u.ffn_up_exps.weight";
  TensorName expert_down = "blk.%u.ffn_down_exps.weight";
  TensorName expert_gate_up =
      {};  // for each expert the rows of its gate, then those of its up, in place of both
  TensorName expert_gate_bias = maybe("blk.%u.ffn_gate_exps.bias");
  TensorName expert_up_bias = maybe("blk.%u.ffn_up_exps.bias");
  TensorName expert_down_bias = maybe("blk.%u.ffn_down_exps.bias");
  // Beside a dense block. All of them but post_dense_norm and post_expert_norm read what enters the layer's
  // blocks: the router behind a norm of its own, whose gain is divided by sqrt(width), the experts behind
  // another one.
  TensorName router_gain = {}, expert_norm = {}, post_dense_norm = {}, post_expert_norm = {};
  TensorName shared_router = {};  // a row by which the shared experts have a weight
  TensorName shared_gate = maybe("blk.%u.ffn_gate_shexp.weight");
  TensorName shared_up = maybe("blk.%u.ffn_up_shexp.weight");
  TensorName shared_down = maybe("blk.%u.ffn_down_shexp.weight");
};

// Numbers that a file may give are defaults here, for files that lack their key.
struct Arch {
  const char* name;  // general.architecture, and the prefix of the metadata keys
  Rope rope = Rope::Pairs;
  Activation activation = Activation::Silu;
  Factor ungated = Factor::Positive;  // of a feed-forward block without a gate; Xielu reads xielu.*
  TensorNames tensors = {};

  bool scale_embedding = false;  // embeddings are multiplied by sqrt(width)
  bool norm_embedding = false;   // they are normalised without a gain
  float post_epsilon = 0;        // of post_attention_norm and post_ffn_norm; 0: that of the other norms
  bool layer_norm =
      false;  // norms subtract the mean, may lack a gain, and have one of each head (layer_norm_epsilon)
  bool parallel =
      false;  // attention and feed-forward read the same residual, unless use_parallel_residual differs
  bool one_norm = false;        // where they do, they read it behind the same norm
  bool logit_factor = false;    // reads logit_scale, which multiplies
  bool norm_all_heads = false;  // query_norm and key_norm run over all heads of a token together
  bool latent = false;          // multi-head latent attention: keys and values are made from one cached head
  bool norm_turned = false;     // query_norm and key_norm come behind the rotation
  bool norm_heads = false;      // queries and keys that rotate are normalised without a gain
  uint32_t plain_heads = 0;     // models of this many experts do not normalise them
  bool slopes = false;          // nothing rotates: a head's scores fall with the distance (ALiBi)
  bool temperature = false;     // reads attention.temperature_scale: queries grow with their position
  float still_temperature = 0;  // the default of that key, where only queries that do not rotate grow
  bool scales = false;  // reads the keys embedding_scale, residual_scale and logit_scale, which divides

  Recurrence recurrence = Recurrence::None;  // of layers without attention
  uint32_t attention_period =
      0;                     // every n-th layer attends, the others have a state (full_attention_interval)
  bool beside = false;       // all layers have attention and a state, which read the same values
  bool lone_blocks = false;  // a layer has attention, a state or a feed-forward block
  bool tiled_heads = false;  // value head h of the delta rule has key head h % groups, not h / group size
  bool norm_values = false;  // values are normalised in each head, without a gain
  bool keys_as_values =
      false;                   // a layer without a window may lack `value`: values are keys before their norm
  bool shared_caches = false;  // the last attention.shared_kv_layers layers use the caches of earlier ones
  bool gated_attention = false;           // behind the rows of a query head stand those of its gate
  Factor gate_factor = Factor::Logistic;  // of what attention gives, by its gate

  uint32_t window = 0;           // attention.sliding_window
  bool chunks = false;           // it is the length of chunks: a token sees those of its own up to itself
  bool window_required = false;  // the file must give attention.sliding_window
  uint32_t window_period = 0;    // every n-th layer sees all positions, others a window; 0: all have a window
  bool window_behind = false;  // of each window_period layers the first sees all positions, and not the last
  bool window_sizes = false;   // heads of layers with a window have sizes of their own (..._swa)
  bool turn_windows = false;   // where some layers have a window, the others do not rotate
  bool window_rope = false;    // layers with a window rotate without scaling, by rope.freq_base_swa
  float window_rope_base = 0;  // the default of that key; 0: the base of the other layers
  uint32_t rope_skip_period = 0;   // every n-th layer does not rotate; 0: all layers rotate
  bool rope_sections = false;      // rope.dimension_sections may be there: a text has one position in all
  bool rope_by_finetuned = false;  // rope.scaling.finetuned = false means that no layer rotates

  float attention_softcap = 0, final_softcap = 0;  // attn_logit_softcapping, final_logit_softcapping
  float attention_scale = 0;       // of scores, unless the file gives one; 0: 1 / sqrt(values of a head)
  uint32_t wide_query_layers = 0;  // models of this many layers scale scores by 1 / sqrt(width / heads)
  bool whole_yarn_range = true;    // the ends of YaRN's range are rounded to whole pairs

  bool partial_layers =
      false;  // layers may lack attention (0 KV heads) or a feed-forward block (a width of 0)
  bool needs_experts = false;
  bool experts_beside = false;     // a layer has experts and a dense block, whose results add up
  bool experts_by_router = false;  // a layer has experts if it has a router
  bool scale_inputs = false;  // an expert reads its input times its weight, and one is shared as wide as it
  bool normalise_experts = false;  // expert_weights_norm
  bool softmax_experts =
      false;                  // without expert_gating_func it is the softmax, also with a bias of the choice
  bool drafts = false;        // the first layer of nextn_predict_layers can guess tokens (use_head())
  bool centred_head = false;  // its last norm subtracts the mean, and has attention.layer_norm_epsilon
};

}  // namespace greta
