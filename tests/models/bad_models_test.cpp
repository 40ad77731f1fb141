// Models whose parts contradict each other: a good golden with one thing broken must be refused at load,
// with a sentence that names what is wrong.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <limits>

#include "support/gguf_writer.h"
#include "support/model_file.h"

using namespace greta;
using namespace greta::test;

namespace {

// Another length in one dimension, with data to match (a block of it must fit into four bytes, or 17 at 32).
void resize(ModelFile::Tensor& t, size_t dimension, uint64_t length) {
  t.ne[dimension] = length;
  uint64_t values = 1;
  for (const uint64_t n : t.ne) values *= n;
  QuantType type;
  REQUIRE(quant_from_gguf(t.type, &type));
  t.data.resize(quant_bytes(type, values));
}

struct Row {
  const char* what;
  const char* golden;
  Edit edit;
  const char* named;  // in the sentence
};

// A tensor as another one has it, under another name.
Edit copied(const char* from, const char* golden, const char* to) {
  return [=](ModelFile& m) {
    ModelFile other = read_model(golden);
    m.tensors.push_back(other.tensor(from));
    m.tensors.back().name = to;
  };
}

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

void check(const std::vector<Row>& rows) {
  ModelLoader loader;
  for (const Row& row : rows) {
    DYNAMIC_SECTION(row.golden << ": " << row.what) {
      ModelFile model = read_model(row.golden);
      row.edit(model);
      loader.check_refused(model, row.named);
    }
  }
}

}  // namespace

TEST_CASE("bad models: sizes that contradict each other", "[models][architectures][bad]") {
  check({
      {"an architecture nobody knows", "llama-plain", set_text("general.architecture", "lama"), "\"lama\""},
      {"an adapter", "llama-plain",
       [](ModelFile& m) {
         m.values.push_back({"general.type", 8, std::string("\7\0\0\0\0\0\0\0adapter", 15)});
         m.drop_tensor("token_embd.weight");
       },
       "an adapter (LoRA)"},
      {"CVE-2024-8063: no layers", "llama-plain", set_u32("llama.block_count", 0), "block_count"},
      {"a layer more than there is", "llama-plain", set_u32("llama.block_count", 3),
       "blk.2.attn_norm.weight"},
      {"layers without end", "llama-plain", set_u32("llama.block_count", UINT32_MAX), "block_count"},
      {"no width", "llama-plain", set_u32("llama.embedding_length", 0), "embedding_length"},
      {"twice the width", "llama-plain", set_u32("llama.embedding_length", 64), "token_embd.weight"},
      {"no width given", "llama-plain", drop("llama.embedding_length"), "embedding_length"},
      {"CVE-2024-8063: no heads", "llama-plain", set_u32("llama.attention.head_count", 0), "head_count"},
      {"heads that do not divide the width", "llama-plain", set_u32("llama.attention.head_count", 6),
       "width 32"},
      {"heads without end", "llama-plain", set_u32("llama.attention.head_count", UINT32_MAX), "head_count"},
      {"key heads that do not divide the heads", "llama-plain", set_u32("llama.attention.head_count_kv", 3),
       "3 key-value"},
      {"no key heads", "llama-plain", set_u32("llama.attention.head_count_kv", 0), "head_count_kv"},
      {"no keys", "llama-tied-head20", set_u32("llama.attention.key_length", 0), "key_length"},
      {"keys of another length", "llama-tied-head20", set_u32("llama.attention.key_length", 24),
       "attn_q.weight"},
      {"a rotated part wider than the head", "llama-plain", set_u32("llama.rope.dimension_count", 10),
       "dimension_count"},
      {"an odd rotated part", "llama-plain", set_u32("llama.rope.dimension_count", 7), "dimension_count"},
      {"no feed-forward", "llama-plain", set_u32("llama.feed_forward_length", 0), "feed_forward_length"},
      {"another feed-forward", "llama-plain", set_u32("llama.feed_forward_length", 30), "ffn_"},
      {"no context", "llama-plain", set_u32("llama.context_length", 0), "context_length"},
      {"a negative epsilon", "llama-plain", set_f32("llama.attention.layer_norm_rms_epsilon", -1), "epsilon"},
      {"an epsilon that is no number", "llama-plain", set_f32("llama.attention.layer_norm_rms_epsilon", kNan),
       "epsilon"},
      {"a text for a number", "llama-plain", set_text("llama.block_count", "2"), "block_count"},
      {"more tokens than rows", "llama-plain",
       [](ModelFile& m) {
         resize(m.tensor("token_embd.weight"), 1, 63);
         resize(m.tensor("output.weight"), 1, 63);
       },
       "token_embd.weight"},
      {"more tokens than rows, tied", "qwen2-tied",
       [](ModelFile& m) { resize(m.tensor("token_embd.weight"), 1, 60); }, "token_embd.weight"},
      {"a soft cap below zero", "gemma2-head24", set_f32("gemma2.attn_logit_softcapping", -50),
       "softcapping"},
      {"a soft cap that is no number", "gemma2-head24", set_f32("gemma2.final_logit_softcapping", kNan),
       "softcapping"},
      {"an endless scale", "granite-tied", set_f32("granite.embedding_scale", kInfinity), "embedding_scale"},
      {"a score scale below zero", "granite-tied", set_f32("granite.attention.scale", -1), "attention.scale"},
      {"a window of another type", "gemma3-pattern6", set_text("gemma3.attention.sliding_window", "6"),
       "sliding_window"},
      {"a pattern for fewer layers", "gemma3-pattern6",
       [](ModelFile& m) {
         m.values.push_back({"gemma3.attention.sliding_window_pattern", 9,
                             Bytes().u32(7).u64(3).data + std::string("\1\1\0", 3)});
       },
       "sliding_window_pattern"},
  });
}

TEST_CASE("bad models: layers with states", "[models][architectures][bad]") {
  const auto zeros = [](const char* key) {
    return [key](ModelFile& m) {
      const std::string name = key;
      std::erase_if(m.values, [&](const auto& value) { return value.key == name; });
      Bytes values;
      values.u32(5).u64(4);  // int32
      for (int i = 0; i < 4; ++i) values.u32(0);
      m.values.push_back({name, 9, values.data});
    };
  };
  check({
      {"a convolution without width", "qwen35-converted", set_u32("qwen35.ssm.conv_kernel", 0),
       "ssm.conv_kernel"},
      {"a convolution of half of all bits", "qwen35-converted", set_u32("qwen35.ssm.conv_kernel", 1u << 31),
       "ssm.conv_kernel"},
      {"another width", "qwen35-converted", set_u32("qwen35.ssm.conv_kernel", 5), "ssm_conv1d.weight"},
      {"no width given", "lfm2-converted", drop("lfm2.shortconv.l_cache"), "shortconv.l_cache"},
      {"a short convolution of another width", "lfm2-converted", set_u32("lfm2.shortconv.l_cache", 4),
       "shortconv.conv.weight"},
      {"groups that do not divide the heads", "qwen35-converted", set_u32("qwen35.ssm.group_count", 3),
       "ssm.group_count"},
      {"no groups", "mamba2-converted", set_u32("mamba2.ssm.group_count", 0), "ssm.group_count"},
      {"heads that do not divide the values", "mamba2-converted", set_u32("mamba2.ssm.time_step_rank", 7),
       "ssm.time_step_rank"},
      {"a state without end", "mamba2-converted", set_u32("mamba2.ssm.state_size", UINT32_MAX),
       "ssm.state_size"},
      {"rates of another rank", "mamba-converted", set_u32("mamba.ssm.time_step_rank", 5), "ssm_x.weight"},
      {"norms without a gain", "mamba-converted",
       [](ModelFile& m) { m.values.push_back({"mamba.ssm.dt_b_c_rms", 7, std::string(1, '\1')}); },
       "ssm.dt_b_c_rms"},
      {"a decay that is no number", "qwen35-converted", poke("blk.0.ssm_a", kNan), "blk.0.ssm_a"},
      {"an endless decay", "mamba-converted", poke("blk.1.ssm_a", kInfinity), "blk.1.ssm_a"},
      {"a rate that is no number", "granitehybrid-converted", poke("blk.1.ssm_dt.bias", kNan),
       "blk.1.ssm_dt.bias"},
      {"no decay", "mamba2-converted", without("blk.0.ssm_a"), "blk.0.ssm_a"},
      {"no convolution", "qwen3next-converted", without("blk.1.ssm_conv1d.weight"),
       "blk.1.ssm_conv1d.weight"},
      {"no strength and rate", "qwen3next-converted", without("blk.0.ssm_ba.weight"), "blk.0.ssm_ba.weight"},
      {"no gate", "qwen35-converted", without("blk.0.attn_gate.weight"), "blk.0.attn_gate.weight"},
      {"no way out", "jamba-converted", without("blk.0.ssm_out.weight"), "blk.0.ssm_out.weight"},
      {"no rates", "jamba-converted", without("blk.0.ssm_dt.weight"), "blk.0.ssm_dt.weight"},
      {"no key heads in any layer", "lfm2-converted", zeros("lfm2.attention.head_count_kv"), "head_count_kv"},
      {"key heads for fewer layers", "jamba-converted",
       [](ModelFile& m) {
         std::erase_if(m.values, [](const auto& v) { return v.key == "jamba.attention.head_count_kv"; });
         m.values.push_back({"jamba.attention.head_count_kv", 9, Bytes().u32(5).u64(2).u32(0).u32(2).data});
       },
       "head_count_kv"},
      {"a text for key heads", "lfm2-converted", set_text("lfm2.attention.head_count_kv", "2"),
       "head_count_kv"},
  });
}

TEST_CASE("bad models: rope", "[models][architectures][bad]") {
  check({
      {"sections of more than half a head", "qwen3vl-converted",
       [](ModelFile& m) {
         m.drop_value("qwen3vl.rope.dimension_sections");
         m.values.push_back(
             {"qwen3vl.rope.dimension_sections", 9, Bytes().u32(5).u64(4).u32(4).u32(3).u32(2).u32(0).data});
       },
       "rope.dimension_sections adds up to 9 pairs, but of a head 8 rotate"},
      {"sections of half of all bits", "qwen3vl-converted",
       [](ModelFile& m) {
         m.drop_value("qwen3vl.rope.dimension_sections");
         m.values.push_back(
             {"qwen3vl.rope.dimension_sections", 9, Bytes().u32(5).u64(2).u32(1u << 31).u32(1u << 31).data});
       },
       "rope.dimension_sections"},
      {"a scaling nobody knows", "llama-rope-linear", set_text("llama.rope.scaling.type", "banana"),
       "\"banana\""},
      {"a negative factor", "llama-rope-linear", set_f32("llama.rope.scaling.factor", -4),
       "rope.scaling.factor"},
      {"a factor that is no number", "llama-rope-linear", set_f32("llama.rope.scaling.factor", kNan),
       "rope.scaling.factor"},
      {"a base of 0", "llama-plain", set_f32("llama.rope.freq_base", 0), "freq_base"},
      {"a base that is no number", "llama-plain", set_f32("llama.rope.freq_base", kNan), "freq_base"},
      {"a factor of 0", "llama-rope-llama3", poke("rope_freqs.weight", 0), "rope_freqs.weight"},
      {"a factor below 0", "llama-rope-llama3", poke("rope_freqs.weight", -1), "rope_freqs.weight"},
      {"a factor of NaN", "llama-rope-llama3", poke("rope_freqs.weight", kNan), "rope_freqs.weight"},
      {"an endless factor", "llama-rope-llama3", poke("rope_freqs.weight", kInfinity), "rope_freqs.weight"},
      {"too few factors", "llama-rope-llama3",
       [](ModelFile& m) { resize(m.tensor("rope_freqs.weight"), 0, 4); }, "rope_freqs.weight"},
      {"a long factor of 0", "phi3-longrope-long", poke("rope_factors_long.weight", 0),
       "rope_factors_long.weight"},
      {"a short factor below 0", "phi3-longrope-long", poke("rope_factors_short.weight", -2),
       "rope_factors_short.weight"},
      {"no long factors", "phi3-longrope-long", without("rope_factors_long.weight"),
       "rope_factors_long.weight"},
      {"no short factors", "phi3-longrope-long", without("rope_factors_short.weight"),
       "rope_factors_short.weight"},
      {"no original context", "phi3-longrope-long", set_u32("phi3.rope.scaling.original_context_length", 0),
       "original_context_length"},
      {"an attention factor of 0", "phi3-longrope-long", set_f32("phi3.rope.scaling.attn_factor", 0),
       "attn_factor"},
      {"a ramp without an end", "llama-rope-yarn", set_f32("llama.rope.scaling.yarn_beta_fast", 0),
       "yarn_beta_fast"},
      {"a window base of 0", "gemma3-pattern6", set_f32("gemma3.rope.freq_base_swa", 0), "freq_base_swa"},
  });
}

TEST_CASE("bad models: experts and latent attention", "[models][architectures][bad]") {
  check({
      {"no experts, but their tensors", "llama-experts", set_u32("llama.expert_count", 0), "expert_count"},
      {"experts not mentioned", "llama-experts", drop("llama.expert_count"), "expert_count"},
      {"no experts", "qwen3moe-plain", set_u32("qwen3moe.expert_count", 0), "expert_count"},
      {"an expert more than there are", "llama-experts", set_u32("llama.expert_count", 6),
       "ffn_gate_inp.weight"},
      {"experts without end", "llama-experts", set_u32("llama.expert_count", UINT32_MAX), "expert_count"},
      {"none used", "llama-experts", set_u32("llama.expert_used_count", 0), "expert_used_count"},
      {"more used than there are", "llama-experts", set_u32("llama.expert_used_count", 6),
       "expert_used_count"},
      {"used not mentioned", "llama-experts", drop("llama.expert_used_count"), "expert_used_count"},
      {"experts of another width", "qwen3moe-plain", set_u32("qwen3moe.expert_feed_forward_length", 11),
       "_exps.weight"},
      {"a gating nobody knows", "deepseek2-v3", set_u32("deepseek2.expert_gating_func", 9),
       "expert_gating_func"},
      {"groups that do not divide the experts", "deepseek2-v3", set_u32("deepseek2.expert_group_count", 3),
       "3 groups"},
      {"more groups used than there are", "deepseek2-v3", set_u32("deepseek2.expert_group_used_count", 5),
       "5 of 4 groups"},
      {"groups with fewer experts than are used", "deepseek2-v3",
       set_u32("deepseek2.expert_group_used_count", 1), "1 of 4 groups"},
      {"more dense layers than layers", "deepseek2-v3", set_u32("deepseek2.leading_dense_block_count", 3),
       "leading_dense_block_count"},
      {"an endless scale", "deepseek2-v3", set_f32("deepseek2.expert_weights_scale", kInfinity),
       "expert_weights_scale"},
      {"a number for a truth", "deepseek2-v3", set_f32("deepseek2.expert_weights_norm", 1),
       "expert_weights_norm"},
      {"shared experts without end", "deepseek2-v3", set_u32("deepseek2.expert_shared_count", UINT32_MAX),
       "expert_shared_count"},
      {"another latent width", "deepseek2-v3", set_u32("deepseek2.attention.kv_lora_rank", 15),
       "latent attention"},
      {"no latent width", "deepseek2-v3", drop("deepseek2.attention.kv_lora_rank"), "kv_lora_rank"},
      {"a head without a plain part", "deepseek2-v3", set_u32("deepseek2.attention.key_length_mla", 8),
       "latent attention"},
      {"no values", "deepseek2-v3", set_u32("deepseek2.attention.value_length_mla", 0), "value_length_mla"},
      {"two key heads", "deepseek2-v3", set_u32("deepseek2.attention.head_count_kv", 2), "latent attention"},
      {"another query rank", "deepseek2-v3", set_u32("deepseek2.attention.q_lora_rank", 23), "attn_q_a"},
      {"no experts, but their tensors", "deepseek2-lite", drop("deepseek2.expert_count"), "expert_count"},
      {"neither experts nor a width", "deepseek2-dense", drop("deepseek2.feed_forward_length"),
       "feed_forward_length"},
      {"a dense layer without a width", "deepseek2-lite", drop("deepseek2.feed_forward_length"),
       "feed_forward_length"},
      {"experts that are not there", "deepseek2-dense",
       [](ModelFile& m) {
         m.set_u32("deepseek2.expert_count", 4);
         m.set_u32("deepseek2.expert_used_count", 2);
         m.set_u32("deepseek2.leading_dense_block_count", 1);
       },
       "blk.1.ffn_gate_inp.weight"},
  });
}

TEST_CASE("bad models: what single architectures have", "[models][architectures][bad]") {
  check({
      {"a temperature that is no number", "mistral3-converted",
       set_f32("mistral3.attention.temperature_scale", kNan), "temperature_scale"},
      {"a temperature below 0", "mistral3-converted", set_f32("mistral3.attention.temperature_scale", -1),
       "temperature_scale"},
      {"a temperature of queries that rotate in part", "mistral3-converted",
       set_u32("mistral3.rope.dimension_count", 4), "scales whole queries, and of their 8 values 4 rotate"},
      {"a temperature where queries have none", "llama-converted",
       [](ModelFile& m) {
         m.values.push_back({"llama.attention.temperature_scale", 6, Bytes().number(0.1f).data});
       },
       "queries scaled by their position"},
      {"experts that are weighed, by two rows", "qwen2moe-converted",
       [](ModelFile& m) { resize(m.tensor("blk.1.ffn_gate_inp_shexp.weight"), 1, 2); },
       "blk.1.ffn_gate_inp_shexp.weight"},
      {"no norm of turned keys", "hunyuan-dense-converted", without("blk.1.attn_k_norm.weight"),
       "blk.1.attn_k_norm.weight"},
      {"no window", "granite_swa-converted", drop("granite_swa.attention.sliding_window"), "sliding_window"},
      {"layers that do not rotate", "granite_swa-converted",
       [](ModelFile& m) {
         m.values.push_back({"granite_swa.attention.rope_pattern", 9,
                             Bytes().u32(7).u64(5).data + std::string("\1\1\0\1\1", 5)});
       },
       "rope_pattern"},
      {"sinks for fewer heads", "granite_swa-converted",
       [](ModelFile& m) { resize(m.tensor("blk.1.attn_sinks.weight"), 0, 3); }, "blk.1.attn_sinks.weight"},
      {"a pattern for more layers", "exaone4-converted",
       [](ModelFile& m) {
         m.drop_value("exaone4.attention.sliding_window_pattern");
         m.values.push_back({"exaone4.attention.sliding_window_pattern", 9,
                             Bytes().u32(7).u64(6).data + std::string("\1\1\1\0\1\1", 6)});
       },
       "sliding_window_pattern"},
      {"experts in every second layer", "ernie4_5-moe-converted",
       set_u32("ernie4_5-moe.interleave_moe_layer_step", 2), "interleave_moe_layer_step"},
      {"a bias of the choice in one layer alone", "ernie4_5-moe-converted", without("blk.2.exp_probs_b.bias"),
       "blk.2.exp_probs_b.bias"},
  });
}

TEST_CASE("bad models: the two forms of latent attention", "[models][architectures][bad]") {
  check({
      {"a width of the newer form alone", "deepseek2-joined-v3",
       set_u32("deepseek2.attention.value_length_mla", 8), "key_length_mla\" is missing"},
      {"the other one alone", "deepseek2-joined-v3", set_u32("deepseek2.attention.key_length_mla", 14),
       "value_length_mla\" is missing"},
      {"the widths of the other form", "deepseek2-v3",
       [](ModelFile& m) {
         m.drop_value("deepseek2.attention.key_length_mla");
         m.drop_value("deepseek2.attention.value_length_mla");
       },
       "1 key-value heads, expected 2"},
      {"the tensors of the other form", "deepseek2-v3",
       [](ModelFile& m) {
         m.drop_value("deepseek2.attention.key_length_mla");
         m.drop_value("deepseek2.attention.value_length_mla");
         m.set_u32("deepseek2.attention.head_count_kv", 2);
       },
       "attention.key_length_mla"},
      {"both forms", "deepseek2-v3",
       copied("blk.0.attn_kv_b.weight", "deepseek2-joined-v3", "blk.0.attn_kv_b.weight"),
       "tensor \"blk.0.attn_kv_b.weight\" would not be used"},
      {"both forms, by the older one's widths", "deepseek2-joined-v3",
       copied("blk.0.attn_v_b.weight", "deepseek2-v3", "blk.1.attn_v_b.weight"), "blk.1.attn_v_b.weight"},
      {"a layer in the newer form", "deepseek2-joined-v3",
       [](ModelFile& m) {
         m.drop_tensor("blk.1.attn_kv_b.weight");
         copied("blk.1.attn_k_b.weight", "deepseek2-v3", "blk.1.attn_k_b.weight")(m);
         copied("blk.1.attn_v_b.weight", "deepseek2-v3", "blk.1.attn_v_b.weight")(m);
       },
       "blk.1.attn_kv_b.weight"},
      {"no keys and values", "deepseek2-joined-v3", without("blk.1.attn_kv_b.weight"),
       "no tensor blk.1.attn_kv_b.weight"},
      {"no widths", "deepseek2-joined-v3", drop("deepseek2.attention.key_length"),
       "attention.key_length\" is missing"},
      {"no width of values", "deepseek2-joined-v3", drop("deepseek2.attention.value_length"),
       "attention.value_length\" is missing"},
      {"no latent width", "deepseek2-joined-v3", drop("deepseek2.attention.kv_lora_rank"), "kv_lora_rank"},
      {"fewer key heads", "deepseek2-joined-v3", set_u32("deepseek2.attention.head_count_kv", 2),
       "2 key-value heads, expected 4"},
      {"wider keys", "deepseek2-joined-v3", set_u32("deepseek2.attention.key_length", 15), "attn_q_b"},
      {"wider values", "deepseek2-joined-v3", set_u32("deepseek2.attention.value_length", 9),
       "blk.0.attn_kv_b.weight has shape [12, 72, 1, 1], expected [12, 76, 1]"},
      {"a head without a plain part", "deepseek2-joined-v3", set_u32("deepseek2.rope.dimension_count", 14),
       "latent attention"},
      {"heads apart", "deepseek2-joined-v3",
       [](ModelFile& m) { m.tensor("blk.0.attn_kv_b.weight").ne = {12, 18, 4}; }, "blk.0.attn_kv_b.weight"},
      {"keys and values of integers", "deepseek2-joined-v3", retype("blk.1.attn_kv_b.weight", 26),
       "blk.1.attn_kv_b.weight"},
  });
}

TEST_CASE("bad models: tensor types", "[models][architectures][bad]") {
  check({
      {"a type nobody knows", "llama-plain", retype("blk.1.attn_q.weight", 99), "blk.1.attn_q.weight"},
      {"a removed type", "llama-plain", retype("blk.1.attn_q.weight", 31), "blk.1.attn_q.weight"},
      {"integers as weights", "llama-plain", retype("blk.1.attn_q.weight", 26), "blk.1.attn_q.weight"},
      {"integers as an embedding", "llama-plain", retype("token_embd.weight", 26), "token_embd.weight"},
      {"integers as experts", "llama-experts", retype("blk.1.ffn_up_exps.weight", 26),
       "blk.1.ffn_up_exps.weight"},
      {"a norm of integers", "llama-plain", retype("blk.1.attn_norm.weight", 26), "blk.1.attn_norm.weight"},
      {"factors of integers", "llama-rope-llama3", retype("rope_freqs.weight", 26), "rope_freqs.weight"},
      {"sinks of integers", "gpt-oss-f32", retype("blk.1.attn_sinks.weight", 26), "blk.1.attn_sinks.weight"},
      {"rows that are not whole blocks", "llama-plain",
       [](ModelFile& m) {
         ModelFile::Tensor& t = m.tensor("blk.1.ffn_down.weight");  // rows of 28
         t.type = 8;
         t.data.resize(t.data.size() / 4 * 34 / 32);
       },
       "blk.1.ffn_down.weight"},
  });
}

// Tensors without which a file may be whole: tied heads, biases that some models have.
static bool may_be_absent(const std::string& architecture, const std::string& name) {
  static constexpr const char* kOptional[] = {"attn_q.bias", "attn_k.bias", "attn_v.bias",
                                              "attn_output.bias"};
  if (name == "output.weight") return architecture != "gpt-oss";
  if (name == "rope_freqs.weight" || name.ends_with("exp_probs_b.bias")) return true;
  for (const char* end : kOptional)
    if (name.ends_with(end)) return architecture != "gpt-oss" && architecture != "qwen2";
  return false;
}

TEST_CASE("bad models: each tensor missing, or of another shape", "[models][architectures][bad]") {
  static constexpr const char* kGoldens[] = {"llama-rope-llama3",     "llama-biases",        "llama-experts",
                                             "qwen2-untied-head20",   "qwen3-untied-head24", "gemma2-head10",
                                             "gemma3-pattern3",       "phi3-longrope-long",  "olmo2-head20",
                                             "granite-untied-head20", "qwen3moe-plain",      "gpt-oss-f32",
                                             "gpt-oss-mxfp4",         "deepseek2-v3",        "deepseek2-lite",
                                             "deepseek2-dense",       "deepseek2-joined-v3"};
  ModelLoader loader;
  for (const std::string golden : kGoldens) {
    DYNAMIC_SECTION(golden) {
      const ModelFile good = read_model(golden);
      const std::string architecture =
          golden.substr(0, golden.find('-') == 3 ? 7 : golden.find('-'));  // gpt-oss
      const bool loads = loader.load(good).ok();
      INFO(error_text());
      REQUIRE(loads);
      for (size_t i = 0; i < good.tensors.size(); ++i) {
        const std::string name = good.tensors[i].name;
        if (name.starts_with("blk.0.") && !name.starts_with("blk.0.ffn_"))
          continue;  // as in layer 1, but deepseek2's
        INFO(name);
        ModelFile model = good;
        model.tensors.erase(model.tensors.begin() + ptrdiff_t(i));
        // Where a tensor stands for others, the sentence may name one of those.
        std::string named = name;
        if (name.find("attn_qkv") != name.npos) named = "attn_q";
        if (name.find("attn_q_a.") != name.npos) named = "attn_q";
        if (may_be_absent(architecture, name)) {
          (void)loader.load(model);  // either way, but never a crash
        } else {
          loader.check_refused(model, named);
        }
        for (size_t d = 0; d < good.tensors[i].ne.size(); ++d)
          for (const int change : {1, -1}) {
            model = good;
            ModelFile::Tensor& t = model.tensors[i];
            const int step = d == 0 && t.type != 0 ? 32 : 1;
            if (int64_t(t.ne[d]) + change * step <= 0) continue;
            resize(t, d, uint64_t(int64_t(t.ne[d]) + change * step));
            if (name == "token_embd.weight" && d == 1 && change > 0) continue;  // rows to spare are allowed
            INFO("dimension " << d << " of " << t.ne[d]);
            // The embedding says how many tokens there are, so the head is said to be wrong.
            const bool with_head =
                std::any_of(good.tensors.begin(), good.tensors.end(),
                            [](const auto& other) { return other.name == "output.weight"; });
            loader.check_refused(model,
                                 name == "token_embd.weight" && d == 1 && with_head ? "output.weight" : name);
          }
        model = good;
        model.tensors[i].ne.push_back(2);  // one dimension more
        resize(model.tensors[i], model.tensors[i].ne.size() - 1, 2);
        if (model.tensors[i].ne.size() <= kMaxDims) loader.check_refused(model, name);
      }
    }
  }
}

TEST_CASE("odd models: windows of any length load", "[models][architectures][bad]") {
  static constexpr const char* kGoldens[][2] = {{"llama-window", "llama"},
                                                {"phi3-window", "phi3"},
                                                {"gemma2-head24", "gemma2"},
                                                {"gemma3-pattern6", "gemma3"},
                                                {"gpt-oss-f32", "gpt-oss"},
                                                {"olmo2-window", "olmo2"},
                                                {"llama4-converted-chunks", "llama4"}};
  ModelLoader loader;
  for (const auto& [golden, prefix] : kGoldens)
    for (const uint32_t window : {0u, 1u, 255u, 256u, 1u << 31, UINT32_MAX}) {
      DYNAMIC_SECTION(golden << ", " << window) {
        ModelFile model = read_model(golden);
        set_u32(std::string(prefix) + ".attention.sliding_window", window)(model);
        const Status status = loader.load(model);
        INFO(error_text());
        CHECK(status.ok());  // 0 is "none", and what is beyond every context is as good as none
      }
    }
}
