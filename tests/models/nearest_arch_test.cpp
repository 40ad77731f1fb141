// What is said of a file with an architecture that nobody knows: which known one is nearest by its tensors.
#include <catch2/catch_test_macros.hpp>

#include "engine/model/file_audit.h"
#include "support/gguf_writer.h"
#include "support/model_file.h"

using namespace greta;
using namespace greta::test;

namespace {

// A golden under a name of its own.
ModelFile renamed(const char* golden, const std::string& name) {
  ModelFile model = read_model(golden);
  const std::string prefix = model.text("general.architecture") + ".";
  set_text("general.architecture", name.c_str())(model);
  for (ModelFile::Value& value : model.values)
    if (value.key.starts_with(prefix)) value.key = name + "." + value.key.substr(prefix.size());
  return model;
}

}  // namespace

TEST_CASE("nearest architecture: the error for an unknown one names it, and what is different", "[models]") {
  ModelLoader loader;
  loader.check_refused(
      renamed("qwen3-converted", "nobody"),
      "nearest by its tensors: \"hunyuan-dense\", \"qwen3\", \"qwen3vl\", with the same tensors and keys");
  loader.check_refused(renamed("gpt-oss-f32", "nobody"), "nearest by its tensors: \"gpt-oss\"");
  loader.check_refused(renamed("glm4-converted", "nobody"), "nearest by its tensors: \"glm4\"");
  loader.check_refused(renamed("deepseek2-v3", "nobody"), "nearest by its tensors: \"deepseek2\"");
  loader.check_refused(renamed("gemma3-pattern6", "nobody"), "nearest by its tensors: \"gemma3\"");

  ModelFile gated = renamed("qwen3-converted", "nobody");
  for (const char* name : {"blk.0.attn_gate.weight", "blk.1.attn_gate.weight"})
    gated.tensors.push_back({name, 0, {4}, std::string(16, 0)});
  gated.drop_tensor("blk.1.ffn_norm.weight");
  gated.values.push_back({"nobody.attention.clamp_kqv", 6, Bytes().number(8.0f).data});
  loader.check_refused(gated, "tensors that it has no use for, 1: \"blk.*.attn_gate.weight\"");
  loader.check_refused(gated, "tensors that it would lack, 1: \"blk.*.ffn_norm.weight\"");
  loader.check_refused(gated, "keys that it does not read, 1: \"nobody.attention.clamp_kqv\"");
}

TEST_CASE("nearest architecture: a file whose sizes are like nothing is refused all the same", "[models]") {
  ModelLoader loader;
  ModelFile model = renamed("llama-plain", "nobody");
  model.drop_value("nobody.embedding_length");
  loader.check_refused(model, "no known architecture has sizes like its own");
  model = renamed("llama-plain", std::string(300, 'x'));
  loader.check_refused(model, "is not one of those this build runs");
}
