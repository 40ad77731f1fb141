// LoRAs on all matrices of the small random models of every architecture, against the same models with the
// adapters merged into their weights.
#include <catch2/catch_test_macros.hpp>
#include <set>

#include "support/lora_file.h"

using namespace greta;
using namespace greta::test;

namespace {

constexpr double kLimit = 1e-8;  // of NMSE, at any position

// The f32 tensors that an adapter may change, as the model names them.
std::vector<std::string> matrices_of(const ModelFile& file, const Model& model) {
  std::set<std::string> names;
  for (const NamedTensor& each : model.store.named()) {
    const WantedTensor& w = each.wanted;
    const bool matrix =
        w.use == Use::Matrix || w.use == Use::Experts || w.tensor == &model.weights().token_embedding;
    if (matrix && there(*w.tensor) && w.held != Held::Transposed && w.held != Held::Stacked)
      names.insert(each.name);
  }
  std::erase_if(names,
                [&](const std::string& name) { return const_cast<ModelFile&>(file).tensor(name).type != 0; });
  return {names.begin(), names.end()};
}

std::shared_ptr<Adapter> open_adapter(const Model& model, const std::string& file) {
  Source source;
  AdapterFile read;
  std::shared_ptr<Adapter> adapter;
  REQUIRE(source.open_memory(file.data(), file.size()).ok());
  const bool opened =
      read_adapter(std::move(source), &read).ok() && Adapter::open(model, std::move(read), {}, &adapter).ok();
  INFO(error_text());
  REQUIRE(opened);
  return adapter;
}

std::vector<int32_t> tokens_of(const Model& model) {
  std::vector<int32_t> tokens;
  for (uint32_t i = 0; i < 20; ++i) tokens.push_back(int32_t((i * 7 + 3) % model.tokenizer->size()));
  return tokens;
}

// Logits of all tokens, which are fed in pieces of 1, 3 and 16.
std::vector<float> logits(LoadedModel& model, std::vector<AdapterUse> uses, std::span<const int32_t> tokens) {
  std::unique_ptr<Session> session;
  REQUIRE(Session::open(model.executor, &session).ok());
  std::shared_ptr<const AdapterList> list;
  const bool set = AdapterList::make(uses, &list).ok() && session->set_adapters(list).ok();
  INFO(error_text());
  REQUIRE(set);
  std::vector<float> all;
  size_t at = 0;
  for (const size_t piece : {1, 3, 16}) {
    const float* rows = nullptr;
    const Status status = session->eval(tokens.subspan(at, piece), OutputRows::All, &rows);
    INFO(error_text());
    REQUIRE(status.ok());
    all.insert(all.end(), rows, rows + piece * model.model.shape.vocab);
    at += piece;
  }
  return all;
}

}  // namespace

TEST_CASE("adapters: a LoRA on all matrices of each architecture computes what merged weights do",
          "[models][adapter]") {
  ModelLoader loader;
  for (const std::string& name : golden_names()) {
    INFO(name);
    const ModelFile file = read_model(name);
    std::unique_ptr<LoadedModel> model, merged;
    REQUIRE(loader.load(file, 64, &model).ok());
    const std::vector<std::string> names = matrices_of(file, model->model);
    if (names.empty()) continue;
    const Lora lora = make_lora(file, names, 6, 12, 1);
    const std::shared_ptr<Adapter> adapter = open_adapter(model->model, lora.file());
    ModelFile changed = file;
    lora.merge_into(&changed, 0.75f);
    REQUIRE(loader.load(changed, 64, &merged).ok());
    const std::vector<int32_t> tokens = tokens_of(model->model);
    const size_t vocab = model->model.shape.vocab;
    const std::vector<float> expected = logits(*merged, {}, tokens), plain = logits(*model, {}, tokens),
                             adapted = logits(*model, {{adapter, 0.75f}}, tokens);
    CHECK(worst_error(adapted, expected, vocab) < kLimit);
    CHECK(worst_error(plain, expected, vocab) > 1e-4);  // so that a part that is left out would show
    CHECK(logits(*model, {{adapter, 0}}, tokens) == plain);
    CHECK(logits(*model, {}, tokens) == plain);
    CHECK(adapter->users() == 0);
  }
}
