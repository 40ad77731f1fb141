// Sources of guesses that are made to be right, wrong or right by chance: whatever they say, sessions and
// requests write the same tokens and are left with the same cache and states.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include "engine/serve_rig.h"
#include "support/model_file.h"
#include "support/saved_session.h"

using namespace greta;
using namespace greta::test;

namespace {

using Tokens = std::vector<int32_t>;

// Windows, and states of a convolution, of the gated delta rule as well, and in layers none of which attends.
constexpr const char* kModels[] = {"", "gemma2-head24", "lfm2-converted", "qwen35-converted",
                                   "mamba2-converted"};

std::string file_of(const char* golden) {
  return *golden ? write_model(read_model(golden)) : make_tiny({}).file;
}

enum class Right { Always, Never, ByChance };

// Knows what the text will be, and says it or something else.
DraftSettings knowing(const Tokens& prompt, const Tokens& answer, Right right, uint32_t depth,
                      uint32_t seed) {
  Tokens whole = prompt;
  whole.insert(whole.end(), answer.begin(), answer.end());
  auto random = std::make_shared<std::mt19937>(seed);
  return {DraftKind::Caller, depth, [=](std::span<const int32_t> text, int32_t* out, size_t most) {
            size_t count = 0;
            for (; count < most && text.size() + count < whole.size(); ++count) {
              const int32_t next = whole[text.size() + count];
              const bool lies = right == Right::Never || (right == Right::ByChance && (*random)() % 3 == 0);
              out[count] = lies ? 3 + (next - 3 + 1) % 60 : next;
            }
            return count;
          }};
}

// Text and cache of a session that has generated twice.
struct Written {
  Tokens first, second;
  std::string state;
  GenerateResult result;
};

Written write_twice(Engine& engine, const RequestOptions& request, const Tokens& more,
                    const DraftSettings& one, const DraftSettings& two) {
  std::unique_ptr<Session> session;
  REQUIRE(Session::open(std::shared_ptr<Executor>(engine.executor.get(), [](Executor*) {}), &session).ok());
  REQUIRE(session->set_sampling(request.sampling).ok());
  Written out;
  const auto write = [&](const Tokens& prompt, const DraftSettings& draft, Tokens* to,
                         GenerateResult* result) {
    REQUIRE(session->set_draft(draft).ok());
    GenerateOptions options;
    options.max_tokens = request.max_tokens;
    options.ignore_end = true;
    options.user = to;
    options.on_token = [](void* user, int32_t token, const char*, size_t) {
      if (token != kNoToken) static_cast<Tokens*>(user)->push_back(token);
      return 0;
    };
    const Status status = session->generate(prompt, options, result);
    INFO(error_text());
    REQUIRE(status.ok());
  };
  GenerateResult second;
  write(request.tokens, one, &out.first, &out.result);
  write(more, two, &out.second, &second);
  REQUIRE(save(*session, &out.state).ok());
  return out;
}

}  // namespace

TEST_CASE("drafts: sessions with any source write the same text and keep the same cache", "[draft][state]") {
  const char* model = kModels[GENERATE(0, 1, 2, 3, 4)];
  const Right right = GENERATE(Right::Always, Right::Never, Right::ByChance);
  const uint32_t kind = GENERATE(0u, 1u, 2u);  // greedy, drawn on the device, chosen on the host
  INFO(model << ", right " << int(right) << ", kind " << kind);
  const std::string file = file_of(model);
  Engine engine;
  EngineOptions options;
  options.threads = 1;
  options.checked = on_cpu();
  options.executor.sequences = 2;
  open_engine(file, options, &engine);
  RequestOptions request = request_of(some_tokens(21, 3), 40, kind == 1 ? 11 : 0);
  if (kind == 2)
    request.sampling.typical_p = 0.9f, request.sampling.temperature = 1, request.sampling.seed = 5;
  request.sampling.repeat = 1.1f;
  const Tokens more = some_tokens(5, 8);
  const Written plain = write_twice(engine, request, more, {}, {});
  REQUIRE(plain.first.size() == 40);
  Tokens held = request.tokens;  // what the second text stands behind: its last token was not fed
  held.insert(held.end(), plain.first.begin(), plain.first.end() - 1);
  held.insert(held.end(), more.begin(), more.end());
  const uint32_t depth = GENERATE(1u, 3u, 7u);
  const Written drafted =
      write_twice(engine, request, more, knowing(request.tokens, plain.first, right, depth, 1),
                  knowing(held, plain.second, right, depth, 2));
  CHECK(drafted.first == plain.first);
  CHECK(drafted.second == plain.second);
  CHECK(drafted.state == plain.state);
  CHECK(drafted.result.drafted_tokens > 0);
  CHECK((drafted.result.accepted_tokens == 0) == (right == Right::Never));
  CHECK(drafted.result.draw_steps + drafted.result.accepted_tokens == 40);
  CHECK(!drafted.result.draft_stopped);
  if (right == Right::Always) CHECK(drafted.result.draw_steps <= 40 / (depth + 1) + 4);
  if (right == Right::Never) CHECK(drafted.result.drafted_tokens <= 10);  // it falls to 0
  if (PagePool* states = engine.executor->states())
    CHECK(states->free_pages() == engine.executor->plan().states);
}

TEST_CASE("drafts: requests with any source share steps and give the same answers", "[serve][draft][state]") {
  const char* model = kModels[GENERATE(0, 1, 2, 3, 4)];
  const bool ahead = GENERATE(false, true);
  const uint32_t pages = GENERATE(24u, 6u);
  INFO(model << ", ahead " << ahead << ", pages " << pages);
  const ExecutorOptions sizes{.context = 256, .sequences = 4, .cache_tokens = 64 * pages};
  const std::string file = file_of(model);
  Rig rig(sizes, {}, ahead, file);
  std::vector<RequestOptions> requests;
  std::vector<Tokens> expected;
  for (uint32_t i = 0; i < 6; ++i) {
    requests.push_back(request_of(some_tokens(30 + 7 * i, i), 60, i == 4 ? 7 : 0));
    if (i == 3) requests[i].sampling.typical_p = 0.9f;  // on the host
    expected.push_back(alone(rig, requests[i]));
  }
  std::vector<std::shared_ptr<Request>> handles;
  for (uint32_t i = 0; i < 6; ++i) {
    if (i != 5) requests[i].draft = knowing(requests[i].tokens, expected[i], Right(i % 3), 1 + i, i);
    handles.push_back(rig.add(requests[i]));
  }
  rig.run();
  uint32_t accepted = 0;
  for (size_t i = 0; i < requests.size(); ++i) {
    INFO("request " << i);
    const Answer answer = answer_of(*handles[i]);
    INFO(answer.result.error);
    CHECK(answer.result.status.ok());
    CHECK(answer.tokens == expected[i]);
    accepted += answer.result.accepted_tokens;
  }
  CHECK(accepted > 20);
  rig.check_clean();
}

TEST_CASE("drafts: where memory lacks for a guess the text goes on without, and says so", "[draft]") {
  const std::string file = file_of("");
  Engine engine;
  open_engine(file, {}, &engine);
  const RequestOptions request = request_of(some_tokens(21, 3), 40);
  const Written plain = write_twice(engine, request, {5}, {}, {});
  const DraftSettings failing{DraftKind::Caller, 7, [](std::span<const int32_t>, int32_t*, size_t) -> size_t {
                                throw std::bad_alloc();
                              }};
  const Written drafted = write_twice(engine, request, {5}, failing, failing);
  CHECK(drafted.first == plain.first);
  CHECK(drafted.state == plain.state);
  CHECK(drafted.result.draft_stopped);
  CHECK(drafted.result.drafted_tokens == 0);
  CHECK(!plain.result.draft_stopped);
}

TEST_CASE("drafts: a guess that is no token of the vocabulary ends the guesses of its step", "[draft]") {
  const std::string file = file_of("");
  Engine engine;
  open_engine(file, {}, &engine);
  const RequestOptions request = request_of(some_tokens(21, 3), 12);
  const Written plain = write_twice(engine, request, {5}, {}, {});
  for (const int32_t wrong : {-1, 67, INT32_MAX}) {
    const auto guess = [&](std::span<const int32_t> text, int32_t* out, size_t most) {
      const size_t at = text.size() - request.tokens.size();
      const int32_t guesses[] = {at < plain.first.size() ? plain.first[at] : 0, wrong, 0};
      return size_t(std::copy_n(guesses, std::min(most, std::size(guesses)), out) - out);
    };
    const DraftSettings odd{DraftKind::Caller, 3, guess};
    const Written drafted = write_twice(engine, request, {5}, odd, {});
    CHECK(drafted.first == plain.first);
    // The first step read the prompt, and behind the last token that is wanted none is guessed.
    CHECK(drafted.result.drafted_tokens + 2 == drafted.result.draw_steps);
    CHECK(drafted.result.accepted_tokens > 4);
  }
}
