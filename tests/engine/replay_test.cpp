// Layers with a state behind guesses that were right in part: the state is made anew of what the step has
// kept, so that no row is read twice, and text, cache and state are those of a text without guesses.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>

#include "engine/serve_rig.h"
#include "support/model_file.h"
#include "support/saved_session.h"

using namespace greta;
using namespace greta::test;

namespace {

using Tokens = std::vector<int32_t>;

// Each form of a state, alone, beside attention, and with experts.
constexpr const char* kModels[] = {"lfm2-converted",      "qwen35-converted",   "qwen3next-converted",
                                   "mamba-converted",     "mamba2-converted",   "jamba-converted",
                                   "nemotron_h-converted", "falcon-h1-converted", "granitehybrid-converted"};

// Knows the text that comes, and lies where `lies` says so of a position.
DraftSettings knowing(const Tokens& prompt, const Tokens& answer, uint32_t depth,
                      std::function<bool(size_t at)> lies) {
  Tokens whole = prompt;
  whole.insert(whole.end(), answer.begin(), answer.end());
  return {DraftKind::Caller, depth, [=](std::span<const int32_t> text, int32_t* out, size_t most) {
            size_t count = 0;
            for (; count < most && text.size() + count < whole.size(); ++count) {
              const int32_t next = whole[text.size() + count];
              out[count] = lies(text.size() + count) ? 3 + (next - 3 + 1) % 60 : next;
            }
            return count;
          }};
}

std::shared_ptr<Executor> shared(Engine& engine) {
  return {engine.executor.get(), [](Executor*) {}};
}

struct Written {
  Tokens tokens;
  std::string state;
  GenerateResult result;
};

struct OpenText {
  std::unique_ptr<Session> session;
  Written out;
};

void open_text(Engine& engine, const DraftSettings& draft, OpenText* text) {
  REQUIRE(Session::open(shared(engine), &text->session).ok());
  REQUIRE(text->session->set_draft(draft).ok());
}

GenerateOptions options_of(uint32_t most, Tokens* to) {
  GenerateOptions options;
  options.max_tokens = most;
  options.ignore_end = true;
  options.user = to;
  options.on_token = [](void* user, int32_t token, const char*, size_t) {
    if (token != kNoToken) static_cast<Tokens*>(user)->push_back(token);
    return 0;
  };
  return options;
}

// Texts that are written side by side, and their states.
std::vector<Written> write(Engine& engine, const std::vector<Tokens>& prompts,
                           const std::vector<DraftSettings>& drafts, uint32_t most) {
  std::vector<OpenText> texts(prompts.size());
  std::vector<Session::Generation> items;
  for (size_t i = 0; i < texts.size(); ++i) {
    open_text(engine, drafts[i], &texts[i]);
    items.push_back({texts[i].session.get(), prompts[i], options_of(most, &texts[i].out.tokens)});
  }
  const Status status = Session::generate_batch(items);
  INFO(error_text());
  REQUIRE(status.ok());
  std::vector<Written> out;
  for (size_t i = 0; i < texts.size(); ++i) {
    texts[i].out.result = items[i].result;
    REQUIRE(save(*texts[i].session, &texts[i].out.state).ok());
    out.push_back(std::move(texts[i].out));
  }
  return out;
}

EngineOptions engine_options(const char* split = "") {
  EngineOptions options;
  options.threads = 1;
  options.checked = on_cpu();
  options.executor.sequences = 3;
  options.executor.cache_tokens = 3 * 256;
  options.split = split;
  return options;
}

}  // namespace

TEST_CASE("replay: no row is read twice, whichever guesses were right", "[draft][state]") {
  const char* model = kModels[GENERATE(range(0, 9))];
  const uint32_t depth = GENERATE(1u, 3u, 7u);
  INFO(model << ", depth " << depth);
  const std::string file = write_model(read_model(model));
  Engine engine;
  open_engine(file, engine_options(), &engine);
  const Tokens prompt = some_tokens(21, 3);
  constexpr uint32_t kMost = 60;
  const Written plain = write(engine, {prompt}, {{}}, kMost)[0];
  const Executor::RowCounts before = engine.executor->row_counts();
  CHECK(before.read == prompt.size() + kMost - 1);
  CHECK(before.replayed == 0);
  const auto lies = [](size_t at) { return (at + 1) * 0x9e3779b97f4a7c15u >> 32 & 1 && at % 3; };
  const Written drafted = write(engine, {prompt}, {knowing(prompt, plain.tokens, depth, lies)}, kMost)[0];
  const Executor::RowCounts after = engine.executor->row_counts();
  CHECK(drafted.tokens == plain.tokens);
  CHECK((drafted.state == plain.state));
  CHECK(drafted.result.accepted_tokens > 10);
  CHECK(drafted.result.drafted_tokens > drafted.result.accepted_tokens + 5);
  CHECK(drafted.result.reread_tokens == 0);
  // Each step behind the prompt has read one row more than it had guesses.
  CHECK(after.read - before.read ==
        prompt.size() + drafted.result.draw_steps - 1 + drafted.result.drafted_tokens);
  CHECK(after.replayed > 5);
  CHECK(engine.executor->states()->free_pages() == engine.executor->plan().states);
}

TEST_CASE("replay: texts of one step keep different numbers of their guesses", "[draft][state]") {
  const char* model = kModels[GENERATE(0, 1, 4)];
  const char* split = GENERATE("", "middle", "turns");
  INFO(model << ", split " << split);
  const std::string file = write_model(read_model(model));
  Engine engine;
  open_engine(file, engine_options(split), &engine);
  const std::vector<Tokens> prompts = {some_tokens(21, 3), some_tokens(70, 4), some_tokens(9, 5)};
  constexpr uint32_t kMost = 50;
  std::vector<Written> plain;
  for (const Tokens& prompt : prompts) plain.push_back(write(engine, {prompt}, {{}}, kMost)[0]);
  std::vector<DraftSettings> drafts;
  for (uint32_t i = 0; i < prompts.size(); ++i)
    drafts.push_back(knowing(prompts[i], plain[i].tokens, 3, [i](size_t at) { return at % (2 + i) == 0; }));
  const Executor::RowCounts before = engine.executor->row_counts();
  const std::vector<Written> drafted = write(engine, prompts, drafts, kMost);
  uint64_t rows = 0;
  for (size_t i = 0; i < prompts.size(); ++i) {
    INFO("text " << i);
    CHECK(drafted[i].tokens == plain[i].tokens);
    if (on_cpu()) CHECK((drafted[i].state == plain[i].state));
    CHECK(drafted[i].result.accepted_tokens > 1);
    CHECK(drafted[i].result.reread_tokens == 0);
    rows += prompts[i].size() + drafted[i].result.draw_steps - 1 + drafted[i].result.drafted_tokens;
  }
  CHECK(engine.executor->row_counts().read - before.read == rows);
  CHECK(engine.executor->row_counts().replayed - before.replayed > 10);
}

TEST_CASE("replay: where it fails the rows are read again", "[draft][state]") {
  const char* model = kModels[GENERATE(0, 1)];
  INFO(model);
  const std::string file = write_model(read_model(model));
  Submissions submissions;
  EngineOptions options = engine_options();
  options.checked = false;
  options.wrap = [&](Device& inner) { return std::make_unique<FaultyDevice>(inner, false, submissions); };
  Engine engine;
  open_engine(file, options, &engine);
  const Tokens prompt = some_tokens(11, 3);
  constexpr uint32_t kMost = 12;
  const Written plain = write(engine, {prompt}, {{}}, kMost)[0];
  const DraftSettings draft =
      knowing(prompt, plain.tokens, 3, [](size_t at) { return at % 3 == 0; });
  const uint64_t begun = submissions.count;
  const uint64_t replayed = engine.executor->row_counts().replayed;
  REQUIRE(write(engine, {prompt}, {draft}, kMost)[0].tokens == plain.tokens);
  CHECK(engine.executor->row_counts().replayed > replayed);
  const uint64_t all = submissions.count - begun;
  uint32_t survived = 0;
  for (uint64_t at = 1; at <= all; ++at) {
    INFO("submission " << at << " of " << all);
    std::vector<OpenText> texts(1);
    open_text(engine, draft, &texts[0]);
    submissions.fail_at = submissions.count + at;
    Session::Generation item{texts[0].session.get(), prompt, options_of(kMost, &texts[0].out.tokens)};
    REQUIRE(Session::generate_batch({&item, 1}).ok());
    if (!item.status.ok()) continue;  // a step of the model that did not come back
    ++survived;
    CHECK(texts[0].out.tokens == plain.tokens);
    std::string state;
    REQUIRE(save(*texts[0].session, &state).ok());
    CHECK((state == plain.state));
  }
  CHECK(survived > 0);
}
