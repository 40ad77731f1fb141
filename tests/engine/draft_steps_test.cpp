// How many steps a text takes where all guesses are right, to the step: of sessions, batches and services,
// with each source, and also where layers keep states.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include "engine/serve_rig.h"
#include "support/model_file.h"

using namespace greta;
using namespace greta::test;

namespace {

using Tokens = std::vector<int32_t>;

constexpr uint32_t kTexts = 2, kLength = 61;

// The step that reads the prompt draws the first token, and the next one has a single guess.
uint32_t steps_for(uint32_t depth) { return 2 + (kLength - 3 + depth) / (depth + 1); }

enum class Place { Session, Batch, Service };

std::shared_ptr<Executor> shared(Engine& engine) {
  return {engine.executor.get(), [](Executor*) {}};
}

GenerateOptions options_of(Tokens* out) {
  GenerateOptions options;
  options.max_tokens = kLength;
  options.ignore_end = true;
  options.user = out;
  options.on_token = [](void* user, int32_t token, const char*, size_t) {
    if (token != kNoToken) static_cast<Tokens*>(user)->push_back(token);
    return 0;
  };
  return options;
}

struct Counts {
  uint32_t steps, drafted, accepted;
  bool operator==(const Counts&) const = default;
};

std::vector<Counts> write(Rig& rig, Place place, const std::vector<RequestOptions>& requests,
                          std::vector<Tokens>* texts) {
  std::vector<Counts> counts;
  const auto note = [&](const auto& result) {
    counts.push_back({result.draw_steps, result.drafted_tokens, result.accepted_tokens});
  };
  texts->assign(requests.size(), {});
  if (place == Place::Service) {
    std::vector<std::shared_ptr<Request>> handles;
    for (const RequestOptions& request : requests) handles.push_back(rig.add(request));
    rig.run();
    for (size_t i = 0; i < handles.size(); ++i) {
      const Answer answer = answer_of(*handles[i]);
      (*texts)[i] = answer.tokens;
      note(answer.result);
    }
    return counts;
  }
  std::vector<std::unique_ptr<Session>> sessions(requests.size());
  std::vector<Session::Generation> items;
  for (size_t i = 0; i < requests.size(); ++i) {
    REQUIRE(Session::open(shared(rig.engine), &sessions[i]).ok());
    REQUIRE(sessions[i]->set_draft(requests[i].draft).ok());
    items.push_back({sessions[i].get(), requests[i].tokens, options_of(&(*texts)[i])});
  }
  if (place == Place::Batch) {
    REQUIRE(Session::generate_batch(items).ok());
    for (const Session::Generation& item : items) note(item.result);
    return counts;
  }
  for (size_t i = 0; i < requests.size(); ++i) {
    GenerateResult result;
    REQUIRE(sessions[i]->generate(requests[i].tokens, items[i].options, &result).ok());
    note(result);
  }
  return counts;
}

GuessTokens knowing(const Tokens& prompt, const Tokens& answer) {
  Tokens whole = prompt;
  whole.insert(whole.end(), answer.begin(), answer.end());
  return [whole](std::span<const int32_t> text, int32_t* out, size_t most) {
    const size_t count = std::min(most, whole.size() - std::min(text.size(), whole.size()));
    std::copy_n(whole.end() - std::ptrdiff_t(whole.size() - text.size()), count, out);
    return count;
  };
}

}  // namespace

TEST_CASE("drafts: a text whose guesses are all right takes so many steps and no more", "[serve][draft]") {
  struct Source {
    DraftKind kind;
    const char* file;
  };
  const Source source =
      GENERATE(Source{DraftKind::Caller, ""}, Source{DraftKind::Caller, "qwen35-converted"},
               Source{DraftKind::Caller, "lfm2-converted"}, Source{DraftKind::Model, ""},
               Source{DraftKind::Model, "qwen35-converted"}, Source{DraftKind::Head, "../heads/qwen35-head"},
               Source{DraftKind::Head, "../heads/glm4moe-head"});
  const Place place = GENERATE(Place::Session, Place::Batch, Place::Service);
  const bool ahead = GENERATE(false, true);
  const uint32_t depth = GENERATE(1u, 3u);
  INFO(source.file << ", kind " << int(source.kind) << ", place " << int(place) << ", depth " << depth
                   << (ahead ? ", ahead" : ""));
  const std::string file = *source.file ? write_model(read_model(source.file)) : make_tiny({}).file;
  const ExecutorOptions sizes{.context = 128, .sequences = 4, .cache_tokens = 64 * 12};
  const bool head = source.kind == DraftKind::Head;
  Rig rig(sizes, {}, ahead, file, head);
  Engine second;
  if (source.kind == DraftKind::Model) {
    EngineOptions options;
    options.threads = 1;
    options.executor = sizes;
    options.executor.key_type = options.executor.value_type = 0;
    open_engine(file, options, &second);
  }
  std::vector<RequestOptions> requests;
  std::vector<Tokens> expected;
  for (uint32_t i = 0; i < kTexts; ++i) {
    RequestOptions& request = requests.emplace_back(request_of(some_tokens(20 + 9 * i, i + 1), kLength));
    expected.push_back(alone(rig, request));
    request.draft = {source.kind, depth};
    if (source.kind == DraftKind::Model)
      request.draft.executor = shared(second);
    else
      request.draft.guess_tokens = knowing(request.tokens, expected[i]);
  }
  std::vector<Tokens> texts;
  const std::vector<Counts> counts = write(rig, place, requests, &texts);
  for (uint32_t i = 0; i < kTexts; ++i) {
    INFO("text " << i);
    CHECK(texts[i] == expected[i]);
    CHECK(counts[i].steps == steps_for(depth));
    CHECK(counts[i].drafted == kLength - counts[i].steps);  // so none is guessed beyond the end
    CHECK(counts[i].accepted == counts[i].drafted);
  }
}
