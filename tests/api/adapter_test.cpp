// Adapters through greta.h: several in one step, scales, states, requests, control vectors, and what is
// refused.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <deque>
#include <functional>
#include <limits>

#include "support/api_services.h"
#include "support/lora_file.h"

using namespace greta::test;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr double kLimit = 1e-8;  // of NMSE, at any position

const std::vector<std::string> kParts = {"attn_q",   "attn_k", "attn_v",  "attn_output",
                                         "ffn_gate", "ffn_up", "ffn_down"};

std::vector<std::string> matrices(uint32_t layers) {
  std::vector<std::string> names;
  for (uint32_t l = 0; l < layers; ++l)
    for (const std::string& part : kParts)
      names.push_back("blk." + std::to_string(l) + "." + part + ".weight");
  return names;
}

greta_runtime_options plain_kernels() {
  auto options = sized<greta_runtime_options>();
  options.exact = 1;
  return options;
}

// A model of the goldens behind greta.h, with an f32 cache.
struct Opened {
  ModelFile file;
  std::string bytes;
  greta_runtime* runtime = nullptr;
  greta_model* model = nullptr;
  greta_executor* executor = nullptr;
  uint32_t vocab = 0;

  explicit Opened(ModelFile of) : file(std::move(of)), bytes(write_model(file)) {
    auto options = plain_kernels();
    options.device = test_device();
    REQUIRE(greta_runtime_open(&options, &runtime) == GRETA_OK);
    auto source = sized<greta_source>();
    source.memory = bytes.data(), source.memory_bytes = bytes.size();
    auto load = sized<greta_model_options>();
    load.source = &source;
    REQUIRE(greta_model_open(runtime, &load, &model) == GRETA_OK);
    auto sizes = sized<greta_executor_options>();
    sizes.context = 256, sizes.sequences = 8, sizes.cache_tokens = 2048;
    sizes.key_type = sizes.value_type = GRETA_CACHE_F32;
    REQUIRE(greta_executor_open(model, &sizes, &executor) == GRETA_OK);
    auto info = sized<greta_model_info>();
    REQUIRE(greta_model_describe(model, &info) == GRETA_OK);
    vocab = info.vocab_size;
  }
  explicit Opened(const std::string& golden) : Opened(read_model(golden)) {}
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;
  ~Opened() {
    greta_executor_close(executor);
    greta_model_close(model);
    greta_runtime_close(runtime);
  }
  greta_session* session() const {
    auto options = sized<greta_session_options>();
    options.executor = executor;
    greta_session* session = nullptr;
    REQUIRE(greta_session_open(model, &options, &session) == GRETA_OK);
    return session;
  }
};

// An adapter whose file's bytes live as long as it.
struct OpenedAdapter {
  std::string bytes;
  greta_adapter* adapter = nullptr;

  OpenedAdapter(greta_model* model, std::string file, const greta_adapter_options* options = nullptr)
      : bytes(std::move(file)) {
    auto source = sized<greta_source>();
    source.memory = bytes.data(), source.memory_bytes = bytes.size();
    const greta_status status = greta_adapter_open(model, &source, options, &adapter);
    INFO(greta_error_text());
    REQUIRE(status == GRETA_OK);
  }
  OpenedAdapter(const OpenedAdapter&) = delete;
  OpenedAdapter& operator=(const OpenedAdapter&) = delete;
  ~OpenedAdapter() { CHECK(greta_adapter_close(adapter) == GRETA_OK); }
};

void set(greta_session* session, const std::vector<greta_adapter*>& adapters,
         const std::vector<float>& scales) {
  const greta_status status =
      greta_session_set_adapters(session, adapters.data(), scales.data(), adapters.size());
  INFO(greta_error_text());
  REQUIRE(status == GRETA_OK);
}

std::vector<float> eval(greta_session* session, const std::vector<int32_t>& tokens, uint32_t vocab) {
  const float* rows = nullptr;
  const greta_status status =
      greta_session_eval(session, tokens.data(), tokens.size(), GRETA_ROWS_ALL, &rows);
  INFO(greta_error_text());
  REQUIRE(status == GRETA_OK);
  return {rows, rows + tokens.size() * vocab};
}

std::vector<float> anew(greta_session* session, const std::vector<int32_t>& tokens, uint32_t vocab) {
  REQUIRE(greta_session_truncate(session, 0) == GRETA_OK);
  return eval(session, tokens, vocab);
}

std::vector<float> of_merged(const ModelFile& file, const std::vector<std::pair<const Lora*, float>>& loras,
                             const std::vector<int32_t>& tokens) {
  ModelFile merged = file;
  for (const auto& [lora, scale] : loras) lora->merge_into(&merged, scale);
  const Opened model(merged);
  greta_session* session = model.session();
  const std::vector<float> logits = eval(session, tokens, model.vocab);
  greta_session_close(session);
  return logits;
}

const std::vector<int32_t> kTokens = {3, 10, 17, 24, 31, 38, 5, 12};

std::string save(greta_session* session) {
  std::string bytes;
  const auto write = [](void* user, const void* data, size_t count) {
    static_cast<std::string*>(user)->append(static_cast<const char*>(data), count);
    return 0;
  };
  REQUIRE(greta_session_save(session, write, &bytes) == GRETA_OK);
  return bytes;
}

greta_status restore(greta_session* session, const std::string& state) {
  auto source = sized<greta_source>();
  source.memory = state.data(), source.memory_bytes = state.size();
  return greta_session_restore(session, &source);
}

}  // namespace

TEST_CASE("adapters: eight sessions of one step have a LoRA each, with the logits of merged weights",
          "[api][adapter]") {
  Opened model("qwen3-converted");
  std::deque<Lora> loras;
  std::deque<OpenedAdapter> adapters;
  std::vector<greta_session*> sessions;
  std::vector<greta_batch_item> items;
  const std::vector<int32_t> prompts[] = {kTokens, {7},    {9, 1, 4}, kTokens,
                                          {40},    {3, 3}, kTokens,   {8, 2, 6, 5}};
  for (uint32_t i = 0; i < 8; ++i) {
    loras.push_back(make_lora(model.file, matrices(2), i % 2 ? 6 : 5, i % 3 ? 8.f : 0.f, i));
    adapters.emplace_back(model.model, loras.back().file());
    sessions.push_back(model.session());
    set(sessions.back(), {adapters.back().adapter}, {0.25f + 0.25f * float(i)});
    auto item = greta_batch_item{};
    item.session = sessions.back();
    item.tokens = prompts[i].data(), item.count = prompts[i].size();
    items.push_back(item);
  }
  const greta_status status = greta_batch_eval(items.data(), items.size());
  INFO(greta_error_text());
  REQUIRE(status == GRETA_OK);
  for (uint32_t i = 0; i < 8; ++i) {
    const std::vector<float> expected =
        of_merged(model.file, {{&loras[i], 0.25f + 0.25f * float(i)}}, prompts[i]);
    const std::span last = std::span(expected).last(model.vocab);
    CHECK(worst_error({items[i].logits, model.vocab}, last, model.vocab) < kLimit);
  }
  for (greta_session* session : sessions) greta_session_close(session);
}

TEST_CASE("adapters: several of one session add up, and 0 or none gives the bits of the model",
          "[api][adapter]") {
  Opened model("qwen3-converted");
  std::vector<std::string> names = matrices(2);
  names.push_back("token_embd.weight");  // which is the output matrix, too
  const Lora first = make_lora(model.file, names, 6, 12, 1), second = make_lora(model.file, names, 3, 0, 2);
  OpenedAdapter a(model.model, first.file()), b(model.model, second.file());
  greta_session* session = model.session();
  const std::vector<float> plain = eval(session, kTokens, model.vocab);
  set(session, {a.adapter, b.adapter}, {0.5f, -0.75f});
  const std::vector<float> both = anew(session, kTokens, model.vocab);
  CHECK(worst_error(both, of_merged(model.file, {{&first, 0.5f}, {&second, -0.75f}}, kTokens), model.vocab) <
        kLimit);
  set(session, {b.adapter, a.adapter}, {-0.75f, 0.5f});
  CHECK(anew(session, kTokens, model.vocab) == both);
  set(session, {a.adapter, b.adapter}, {0.0f, 0.0f});
  CHECK(anew(session, kTokens, model.vocab) == plain);
  set(session, {}, {});
  CHECK(anew(session, kTokens, model.vocab) == plain);

  // Changed between tokens: what was fed stays, and what follows is computed with the others.
  set(session, {a.adapter}, {1});
  const std::vector<float> with_a = anew(session, kTokens, model.vocab);
  set(session, {b.adapter}, {1});
  const std::vector<float> then_b = eval(session, {9, 4}, model.vocab);
  const std::vector<float> with_b = anew(session, kTokens, model.vocab);
  const std::vector<float> all_b = eval(session, {9, 4}, model.vocab);
  CHECK(with_a != with_b);
  CHECK(worst_error(then_b, all_b, model.vocab) > 1e-6);
  greta_session_close(session);
}

TEST_CASE("adapters: a step without them runs the same kernels as before there were any", "[api][adapter]") {
  Opened model("qwen3-converted");
  greta_session* session = model.session();
  const auto stages = [&] {
    std::string all;
    const auto add = [](void* user, const greta_profile_stage* stage) {
      *static_cast<std::string*>(user) += std::string(stage->stage) + " " + stage->kernel + " " +
                                          std::to_string(stage->launches) + " " +
                                          std::to_string(stage->bytes) + "\n";
    };
    REQUIRE(greta_session_truncate(session, 0) == GRETA_OK);
    REQUIRE(greta_session_profile(session, kTokens.data(), kTokens.size(), add, &all) == GRETA_OK);
    return all;
  };
  const std::string before = stages();
  {
    OpenedAdapter adapter(model.model, make_lora(model.file, matrices(2), 6, 12, 1).file());
    CHECK(stages() == before);
    set(session, {adapter.adapter}, {1});
    CHECK(stages() != before);
    set(session, {adapter.adapter}, {0});
    CHECK(stages() == before);
    set(session, {}, {});
  }
  CHECK(stages() == before);
  greta_session_close(session);
}

TEST_CASE("adapters: a saved session belongs to its adapters and scales", "[api][adapter]") {
  Opened model("qwen3-converted");
  OpenedAdapter adapter(model.model, make_lora(model.file, matrices(2), 6, 12, 1).file());
  greta_session *session = model.session(), *other = model.session();
  set(session, {adapter.adapter}, {0.5f});
  eval(session, kTokens, model.vocab);
  const std::string state = save(session);
  CHECK(restore(other, state) == GRETA_ERROR_UNSUPPORTED);
  CHECK_THAT(greta_error_text(), ContainsSubstring("other adapters or scales"));
  set(other, {adapter.adapter}, {1});
  CHECK(restore(other, state) == GRETA_ERROR_UNSUPPORTED);
  set(other, {adapter.adapter}, {0.5f});
  REQUIRE(restore(other, state) == GRETA_OK);
  const std::vector<float> next = eval(session, {9}, model.vocab);
  CHECK(eval(other, {9}, model.vocab) == next);
  // A fork goes on with the same adapters.
  greta_session* fork = nullptr;
  REQUIRE(greta_session_fork(session, &fork) == GRETA_OK);
  auto info = sized<greta_adapter_info>();
  REQUIRE(greta_adapter_describe(adapter.adapter, &info) == GRETA_OK);
  CHECK(info.users == 3);
  CHECK(eval(fork, {2}, model.vocab) == eval(session, {2}, model.vocab));
  // With tokens of several settings there is no state that any session could go on from.
  set(session, {}, {});
  CHECK(save(session).size() > state.size());
  eval(session, {2}, model.vocab);
  std::string none;
  const auto write = [](void*, const void*, size_t) { return 0; };
  CHECK(greta_session_save(session, write, nullptr) == GRETA_ERROR_UNSUPPORTED);
  REQUIRE(greta_session_truncate(session, 0) == GRETA_OK);
  CHECK(greta_session_save(session, write, nullptr) == GRETA_OK);
  for (greta_session* each : {session, other, fork}) greta_session_close(each);
}

TEST_CASE("adapters: one that is in use is not closed, and the call says how many use it", "[api][adapter]") {
  Opened model("qwen3-converted");
  const std::string bytes = make_lora(model.file, matrices(2), 6, 12, 1).file();
  auto source = sized<greta_source>();
  source.memory = bytes.data(), source.memory_bytes = bytes.size();
  greta_adapter* adapter = nullptr;
  REQUIRE(greta_adapter_open(model.model, &source, nullptr, &adapter) == GRETA_OK);
  greta_session *a = model.session(), *b = model.session();
  set(a, {adapter}, {1});
  set(b, {adapter}, {2});
  const std::vector<float> before = eval(a, kTokens, model.vocab);
  CHECK(greta_adapter_close(adapter) == GRETA_ERROR_ARGUMENT);
  CHECK_THAT(greta_error_text(), ContainsSubstring("2 sessions or requests use it"));
  CHECK(anew(a, kTokens, model.vocab) == before);
  greta_session_close(a);
  CHECK(greta_adapter_close(adapter) == GRETA_ERROR_ARGUMENT);
  CHECK_THAT(greta_error_text(), ContainsSubstring("1 session or request uses it"));
  set(b, {}, {});
  CHECK(greta_adapter_close(adapter) == GRETA_OK);
  CHECK(greta_session_set_adapters(b, &adapter, nullptr, 1) == GRETA_ERROR_ARGUMENT);  // it is gone
  REQUIRE(greta_adapter_open(model.model, &source, nullptr, &adapter) == GRETA_OK);
  set(b, {adapter}, {1});
  CHECK(eval(b, kTokens, model.vocab) == before);
  greta_session_close(b);
  CHECK(greta_adapter_close(adapter) == GRETA_OK);
  CHECK(greta_adapter_close(nullptr) == GRETA_OK);
}

TEST_CASE("adapters: a control vector adds a direction to the outputs of its layers", "[api][adapter]") {
  Opened model("llama-converted-biases");  // with biases of the last matrix of a layer, which do the same
  const uint32_t width = uint32_t(model.file.tensor("output_norm.weight").ne[0]);
  std::vector<float> direction(width);
  for (uint32_t i = 0; i < width; ++i) direction[i] = std::sin(float(i) * 1.7f);
  const std::string_view bytes(reinterpret_cast<const char*>(direction.data()), width * sizeof(float));
  const auto file = [&](const std::string& name) {
    return GgufWriter()
        .value("general.architecture", "controlvector")
        .value("controlvector.model_hint", "llama")
        .tensor(name, 0, {width}, bytes)
        .file();
  };
  OpenedAdapter vector(model.model, file("direction.1"));
  ModelFile changed = model.file;
  std::string& bias = changed.tensor("blk.1.ffn_down.bias").data;
  for (uint32_t i = 0; i < width; ++i) {
    float value;
    memcpy(&value, &bias[i * sizeof value], sizeof value);
    value += -1.5f * direction[i];
    memcpy(&bias[i * sizeof value], &value, sizeof value);
  }
  greta_session* session = model.session();
  const std::vector<float> plain = eval(session, kTokens, model.vocab);
  set(session, {vector.adapter}, {-1.5f});
  const std::vector<float> expected = of_merged(changed, {}, kTokens);
  CHECK(worst_error(anew(session, kTokens, model.vocab), expected, model.vocab) < kLimit);
  CHECK(worst_error(plain, expected, model.vocab) > 1e-4);
  greta_session_close(session);

  const std::string bad = file("direction.9"), zero = file("direction.0"), word = file("direction.x");
  for (const std::string& each : {bad, zero, word}) {
    auto source = sized<greta_source>();
    source.memory = each.data(), source.memory_bytes = each.size();
    greta_adapter* adapter = nullptr;
    CHECK(greta_adapter_open(model.model, &source, nullptr, &adapter) == GRETA_ERROR_FILE);
    CHECK_THAT(greta_error_text(), ContainsSubstring("direction."));
  }
  auto options = sized<greta_adapter_options>();
  options.first_layer = 1, options.last_layer = 7;
  auto source = sized<greta_source>();
  source.memory = vector.bytes.data(), source.memory_bytes = vector.bytes.size();
  greta_adapter* adapter = nullptr;
  CHECK(greta_adapter_open(model.model, &source, &options, &adapter) == GRETA_ERROR_ARGUMENT);
}

TEST_CASE("adapters: bad files are refused in words, and the model goes on", "[api][adapter]") {
  Opened model("qwen3-converted");
  greta_session* session = model.session();
  const std::vector<float> plain = eval(session, kTokens, model.vocab);
  const Lora good = make_lora(model.file, {"blk.0.attn_q.weight", "blk.1.ffn_down.weight"}, 6, 12, 1);
  const auto refused = [&](const std::string& bytes, const std::string& words) {
    auto source = sized<greta_source>();
    source.memory = bytes.data(), source.memory_bytes = bytes.size();
    greta_adapter* adapter = nullptr;
    CHECK(greta_adapter_open(model.model, &source, nullptr, &adapter) != GRETA_OK);
    CHECK(adapter == nullptr);
    CHECK_THAT(greta_error_text(), ContainsSubstring(words));
  };
  Lora bad = good;
  bad.architecture = "llama";
  refused(bad.file(), "an adapter for llama, and the model is qwen3");
  bad = good;
  bad.pairs[0].target = "blk.7.attn_q.weight";
  refused(bad.file(), "blk.7.attn_q.weight.lora_a: the model has no tensor");
  bad = good;
  bad.pairs[0].target = "blk.0.attn_norm.weight";
  refused(bad.file(), "blk.0.attn_norm.weight.lora_b has shape");
  bad = good;
  bad.pairs[0].of[0] -= 1;
  bad.pairs[0].a.resize(bad.pairs[0].of[0] * 6);
  refused(bad.file(), "blk.0.attn_q.weight.lora_a has shape [31, 6, 1], expected [32, 6, 1]");
  bad = good;
  bad.pairs[1].b[3] = std::numeric_limits<float>::infinity();
  refused(bad.file(), "blk.1.ffn_down.weight.lora_b: it holds a number that is not finite");
  bad = good;
  bad.alpha = std::numeric_limits<float>::quiet_NaN();
  refused(bad.file(), "adapter.lora.alpha");
  bad.pairs.clear();
  bad.alpha = 1;
  refused(bad.file(), "a LoRA without matrices");

  const auto writer = [] {
    GgufWriter w;
    w.value("general.type", "adapter").value("general.architecture", "qwen3").value("adapter.type", "lora");
    return w;
  };
  const std::string two(2 * 32 * sizeof(float), 0), name = "blk.0.attn_q.weight";
  refused(writer().tensor(name + ".lora_a", 0, {32, 2}, two).file(), name + ".lora_a has no partner");
  refused(writer().tensor(name + ".lora_b", 0, {2, 32}, two).file(), name + ".lora_b has no partner");
  refused(writer().tensor(name, 0, {2, 32}, two).file(), name + ": a LoRA has matrices whose names");
  refused(writer().tensor(name + ".lora_a", 0, {32, 2}, two).tensor(name + ".lora_b", 0, {1, 64}, two).file(),
          name + ".lora_a has rank 2, and " + name + ".lora_b has rank 1");
  refused(writer().raw_tensor(name + ".lora_a", 2, {32, 0}, 0, 0).file() + std::string(64, 0), "lora_a");
  GgufWriter other;
  other.value("general.type", "adapter").value("general.architecture", "qwen3").value("adapter.type", "dora");
  refused(other.file(), "adapter.type is \"dora\"");
  refused(model.bytes, "no adapter");
  refused("GGUF", "");
  CHECK(anew(session, kTokens, model.vocab) == plain);
  greta_session_close(session);
}

TEST_CASE("adapters: bad lists and too many are refused in words, and the model goes on", "[api][adapter]") {
  Opened model("qwen3-converted");
  greta_session* session = model.session();
  const std::vector<float> plain = eval(session, kTokens, model.vocab);
  const Lora good = make_lora(model.file, {"blk.0.attn_q.weight"}, 6, 12, 1);
  {
    OpenedAdapter adapter(model.model, good.file()), again(model.model, good.file());
    greta_adapter* const twice[] = {adapter.adapter, again.adapter};
    CHECK(greta_session_set_adapters(session, twice, nullptr, 2) == GRETA_ERROR_ARGUMENT);
    CHECK_THAT(greta_error_text(), ContainsSubstring("adapters 0 and 1 are the same"));
    for (const float scale : {INFINITY, -INFINITY, NAN, 3e38f}) {
      CHECK(greta_session_set_adapters(session, twice, &scale, 1) == GRETA_ERROR_ARGUMENT);
      CHECK_THAT(greta_error_text(), ContainsSubstring("expected a finite number"));
    }
    const std::vector<greta_adapter*> many(4096, adapter.adapter);
    CHECK(greta_session_set_adapters(session, many.data(), nullptr, many.size()) == GRETA_ERROR_ARGUMENT);
    CHECK_THAT(greta_error_text(), ContainsSubstring("4096 adapters at once, at most 16"));
    CHECK(greta_session_set_adapters(session, nullptr, nullptr, 1) == GRETA_ERROR_ARGUMENT);
    CHECK(anew(session, kTokens, model.vocab) == plain);
  }
  std::deque<OpenedAdapter> open;
  const std::string small = make_lora(model.file, {"blk.0.attn_k.weight"}, 1, 0, 1).file();
  for (uint32_t i = 0; i < 1024; ++i) open.emplace_back(model.model, small);
  auto source = sized<greta_source>();
  source.memory = small.data(), source.memory_bytes = small.size();
  greta_adapter* more = nullptr;
  CHECK(greta_adapter_open(model.model, &source, nullptr, &more) == GRETA_ERROR_FULL);
  CHECK_THAT(greta_error_text(), ContainsSubstring("the model has 1024 adapters"));
  CHECK(anew(session, kTokens, model.vocab) == plain);
  greta_session_close(session);
}

TEST_CASE("adapters: requests have their own, and share cached pages only with those of the same",
          "[api][adapter]") {
  Opened model("qwen3-converted");
  OpenedAdapter adapter(model.model, make_lora(model.file, matrices(2), 6, 12, 1).file());
  std::vector<int32_t> prompt;
  for (int32_t i = 0; i < 150; ++i) prompt.push_back(3 + i * 7 % 40);
  greta_session* session = model.session();
  const auto alone = [&](float scale) {
    set(session, {adapter.adapter}, {scale});
    std::vector<float> logits = anew(session, prompt, model.vocab);
    std::vector<int32_t> tokens;
    for (int i = 0; i < 12; ++i) {
      const auto last = logits.end() - ptrdiff_t(model.vocab);
      tokens.push_back(int32_t(std::max_element(last, logits.end()) - last));
      if (i < 11) logits = eval(session, {tokens.back()}, model.vocab);
    }
    return tokens;
  };
  const std::vector<int32_t> plain = alone(0), adapted = alone(1), half = alone(0.5f);
  greta_session_close(session);
  REQUIRE(plain != adapted);

  auto options = Served::own_thread();
  auto sizes = sized<greta_executor_options>();
  sizes.context = 256, sizes.sequences = 8, sizes.cache_tokens = 2048;
  sizes.key_type = sizes.value_type = GRETA_CACHE_F32;
  options.executor = &sizes;
  greta_service* service = nullptr;
  REQUIRE(greta_service_open(model.model, &options, &service) == GRETA_OK);
  const auto request = [&](const float* scale) {
    auto wanted = ask(prompt, 12);
    wanted.adapters = &adapter.adapter, wanted.adapter_scales = scale, wanted.adapter_count = scale ? 1 : 0;
    return add(service, wanted);
  };
  const float one = 1, middle = 0.5f;
  greta_request* const together[] = {request(nullptr), request(&one), request(&middle), request(nullptr)};
  CHECK(greta_adapter_close(adapter.adapter) == GRETA_ERROR_ARGUMENT);
  CHECK_THAT(greta_error_text(), ContainsSubstring("use"));
  CHECK(read_all(together[0]).tokens == plain);
  CHECK(read_all(together[1]).tokens == adapted);
  CHECK(read_all(together[2]).tokens == half);
  CHECK(read_all(together[3]).tokens == plain);
  const Read cached = read_all(request(&one));
  CHECK(cached.tokens == adapted);
  CHECK(cached.result.cached_tokens == 128);
  const float third = 0.25f;
  CHECK(read_all(request(&third)).result.cached_tokens == 0);
  greta_service_close(service);
}
