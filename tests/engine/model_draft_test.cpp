// Guesses of a second model: they change no text, and a model whose tokens are others is refused.
#include "engine/write/model_draft.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include "engine/serve_rig.h"
#include "support/failing_memory.h"
#include "support/model_file.h"

using namespace greta;
using namespace greta::test;

namespace {

using Tokens = std::vector<int32_t>;

// A second model: the same weights, which are always right, or others.
std::string draft_file(bool same) {
  TinyShape shape;
  if (!same) shape.seed = 2, shape.layers = 1;
  return make_tiny(shape).file;
}

struct Second {
  const std::string file;
  Engine engine;
  explicit Second(std::string bytes, ExecutorOptions sizes) : file(std::move(bytes)) {
    EngineOptions options;
    options.threads = 1;
    options.executor = sizes;
    options.executor.key_type = options.executor.value_type = 0;
    options.split = {};
    open_engine(file, options, &engine);
  }
  std::shared_ptr<Executor> executor() {
    return {engine.executor.get(), [](Executor*) {}};
  }
};

}  // namespace

TEST_CASE("model drafts: requests write the same answers, in fewer steps where guesses are right",
          "[serve][draft]") {
  const bool same = GENERATE(true, false), ahead = GENERATE(false, true);
  Rig rig({.context = 256, .sequences = 4, .cache_tokens = 64 * 24}, {}, ahead);
  Second second(draft_file(same), {.context = 256, .sequences = 4, .cache_tokens = 1024});
  std::vector<RequestOptions> requests;
  std::vector<Tokens> expected;
  for (uint32_t i = 0; i < 6; ++i) {
    requests.push_back(request_of(some_tokens(30 + 7 * i, i), 60, i == 4 ? 7 : 0));
    if (i == 3) requests[i].sampling.typical_p = 0.9f;  // on the host
    expected.push_back(alone(rig, requests[i]));
    requests[i].draft = {DraftKind::Model, 1 + i};
    requests[i].draft.executor = second.executor();
  }
  std::vector<std::shared_ptr<Request>> handles;
  for (const RequestOptions& request : requests) handles.push_back(rig.add(request));
  rig.run();
  for (size_t i = 0; i < requests.size(); ++i) {
    const Answer answer = answer_of(*handles[i]);
    INFO("request " << i << " " << answer.result.error);
    CHECK(answer.result.status.ok());
    CHECK(answer.tokens == expected[i]);
    CHECK(answer.result.drafted_tokens > 0);
    CHECK(!answer.result.draft_stopped);
    // The last step may have guessed beyond the end.
    if (same && i < 3) CHECK(answer.result.accepted_tokens + 7 >= answer.result.drafted_tokens);
    if (same && i == 2) CHECK(answer.result.draw_steps < 35);
  }
  rig.check_clean();
  CHECK(second.engine.executor->pages().free_pages() == second.engine.executor->plan().pages);
}

TEST_CASE("model drafts: texts share the steps of the second model", "[serve][draft]") {
  const std::string draft = draft_file(true);
  // How many steps the second model makes for these texts.
  const auto steps_for = [&](std::initializer_list<uint32_t> texts) {
    Rig rig({.context = 256, .sequences = 4, .cache_tokens = 64 * 24});
    Second second(draft, {.context = 256, .sequences = 4, .cache_tokens = 1024});
    std::vector<std::shared_ptr<Request>> handles;
    for (const uint32_t i : texts) {
      RequestOptions request = request_of(some_tokens(20, i), 60);
      request.draft = {DraftKind::Model, 2};
      request.draft.executor = second.executor();
      handles.push_back(rig.add(request));
    }
    rig.run();
    for (const auto& handle : handles) CHECK(answer_of(*handle).result.accepted_tokens > 10);
    return second.engine.executor->submitted();
  };
  const uint64_t alone = steps_for({0}) + steps_for({1}) + steps_for({2}), shared = steps_for({0, 1, 2});
  INFO(shared << " steps for three texts, " << alone << " for each alone");
  CHECK(shared * 2 < alone);
}

TEST_CASE("model drafts: where the second model has no sequence or page left, a text goes on without",
          "[serve][draft]") {
  const bool sequences = GENERATE(true, false);
  Rig rig({.context = 256, .sequences = 4, .cache_tokens = 64 * 24});
  Second second(draft_file(true), {.context = 256, .sequences = sequences ? 1u : 4u, .cache_tokens = 64});
  std::vector<std::shared_ptr<Request>> handles;
  std::vector<Tokens> expected;
  for (uint32_t i = 0; i < 3; ++i) {
    RequestOptions request = request_of(some_tokens(sequences ? 20 : 50, i), 30);
    expected.push_back(alone(rig, request));
    request.draft = {DraftKind::Model, 3};
    request.draft.executor = second.executor();
    handles.push_back(rig.add(request));
  }
  rig.run();
  uint32_t stopped = 0;
  for (size_t i = 0; i < handles.size(); ++i) {
    const Answer answer = answer_of(*handles[i]);
    CHECK(answer.result.status.ok());
    CHECK(answer.tokens == expected[i]);
    stopped += answer.result.draft_stopped;
  }
  CHECK(stopped >= 2);
}

TEST_CASE("model drafts: a session goes on in the second model's cache", "[draft]") {
  const std::string file = make_tiny({}).file;
  Engine engine;
  open_engine(file, {}, &engine);
  Second second(file, {.context = 256, .sequences = 1, .cache_tokens = 256});
  std::unique_ptr<Session> session;
  REQUIRE(Session::open(std::shared_ptr<Executor>(engine.executor.get(), [](Executor*) {}), &session).ok());
  DraftSettings settings{DraftKind::Model, 7};
  settings.executor = second.executor();
  const auto write = [&](const Tokens& prompt, GenerateResult* result) {
    Tokens out;
    GenerateOptions options;
    options.max_tokens = 30;
    options.ignore_end = true;
    options.user = &out;
    options.on_token = [](void* user, int32_t token, const char*, size_t) {
      if (token != kNoToken) static_cast<Tokens*>(user)->push_back(token);
      return 0;
    };
    const Status status = session->generate(prompt, options, result);
    INFO(error_text());
    REQUIRE(status.ok());
    return out;
  };
  GenerateResult result;
  std::vector<Tokens> plain, drafted;
  for (const bool guesses : {false, true}) {
    REQUIRE(session->truncate(0).ok());
    REQUIRE(session->set_draft(guesses ? settings : DraftSettings{}).ok());
    for (uint32_t i = 0; i < 3; ++i) {
      (guesses ? drafted : plain).push_back(write(some_tokens(12, i), &result));
      REQUIRE(session->truncate(session->position() - 2).ok());
      if (guesses) CHECK(result.accepted_tokens > 20);
    }
  }
  CHECK(drafted == plain);
}

TEST_CASE("model drafts: a second model that cannot guess is refused in words", "[draft]") {
  const ModelFile good = read_model("llama-plain");
  const std::string bytes = write_model(good);
  Second first(bytes, {.context = 64, .sequences = 1});
  const auto refused = [&](const std::string& file, uint32_t context) {
    Second second(file, {.context = context, .sequences = 1});
    const Status status = check_draft_model(*first.engine.model, 64, *second.engine.executor);
    return status.ok() ? std::string() : std::string(error_text());
  };
  CHECK(refused(bytes, 64).empty());
  CHECK(refused(bytes, 32).empty());
  CHECK(refused(bytes, 128) ==
        "the second model's context of 128 tokens is longer than the text's of 64, so a part would never be "
        "used: open its executor with that one");
  ModelFile other = good;
  std::string& tokens = other.value("tokenizer.ggml.tokens").payload;
  const size_t at = tokens.find("\u258140");
  REQUIRE(at != std::string::npos);
  tokens[at + 4] = 'x';
  CHECK(refused(write_model(other), 64).find("token 40 is") == 0);
  CHECK(refused(make_tiny({}).file, 64).find("the second model has 67 tokens, and the first one 64") == 0);
}
