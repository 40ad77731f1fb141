// Guessed tokens change nothing of a text: it is the same as without guesses, however it is chosen and
// wherever it ends. What is drawn behind a guess has the model's own probabilities.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <cmath>
#include <functional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "places.h"
#include "support/api_objects.h"
#include "support/test_data.h"

using namespace greta::test;

namespace {

constexpr char kModel[] = GRETA_SOURCE_DIR "/models/tales-llama-7m-q4_k_m.gguf";

// Two texts of one session, the second of which goes on from the first, and what was counted.
struct Texts {
  std::vector<int32_t> tokens;
  std::string text;
  greta_generate_result first = sized<greta_generate_result>(), second = sized<greta_generate_result>();
  uint32_t position = 0;
};

struct Setting {
  const char* name;
  uint32_t max_tokens, ignore_end;
  bool repeats;  // the text is known to repeat itself
  std::function<greta_status(greta_session*)> set = [](greta_session*) { return GRETA_OK; };
  const char* stop = nullptr;
};

greta_status sampled(greta_session* session, float temperature, uint64_t seed) {
  greta_session_seed(session, seed);
  greta_session_top_k(session, 20);
  greta_session_top_p(session, 0.9f);
  return greta_session_temperature(session, temperature);
}

int forbid_nothing(void*, float*, size_t, const int32_t*, size_t) { return 0; }

const Setting kSettings[] = {
    {"greedy", 150, 1, true},
    {"to the end of the context", 0, 1, true},
    {"a single token", 1, 1, false},
    {"drawn", 150, 1, false, [](greta_session* s) { return sampled(s, 0.3f, 7); }},
    {"drawn, to its end", 150, 0, false, [](greta_session* s) { return sampled(s, 1, 8); }},
    {"chosen on the host", 150, 1, true,
     [](greta_session* s) { return greta_session_logit_filter(s, forbid_nothing, nullptr); }},
    {"with a grammar", 100, 0, true,
     [](greta_session* s) {
       return greta_session_grammar(s, "root ::= (\"the king \" | \"a cat \")+", nullptr);
     }},
    {"with a stop string", 150, 1, false, [](greta_session*) { return GRETA_OK; }, "and the"},
};

// A trained model on the CPU, the bundled one if none is named, with the same bits for any number of rows in
// a step.
struct Tales {
  greta_runtime* runtime = nullptr;
  greta_model* model = nullptr;
  greta_session* session = nullptr;

  explicit Tales(const std::string& path = kModel) {
    auto on = sized<greta_runtime_options>();
    on.device = "cpu";
    on.exact = 1;
    REQUIRE(greta_runtime_open(&on, &runtime) == GRETA_OK);
    auto source = sized<greta_source>();
    source.path = path.c_str();
    auto load = sized<greta_model_options>();
    load.source = &source;
    REQUIRE(greta_model_open(runtime, &load, &model) == GRETA_OK);
    auto sizes = sized<greta_executor_options>();
    sizes.context = 256;
    auto options = sized<greta_session_options>();
    options.private_executor = &sizes;
    REQUIRE(greta_session_open(model, &options, &session) == GRETA_OK);
  }
  ~Tales() {
    greta_session_close(session);
    greta_model_close(model);
    greta_runtime_close(runtime);
  }
  Tales(const Tales&) = delete;
  Tales& operator=(const Tales&) = delete;

  std::vector<int32_t> tokens(const std::string& text) const {
    std::vector<int32_t> out(text.size() + 1);
    size_t count = 0;
    REQUIRE(greta_tokenizer_encode(greta_model_tokenizer(model), text.data(), text.size(), 0, out.data(),
                                   out.size(), &count) == GRETA_OK);
    out.resize(count);
    return out;
  }
};

Texts write(const Setting& setting, uint32_t draft_tokens) {
  const Tales tales;
  greta_session* session = tales.session;
  REQUIRE(setting.set(session) == GRETA_OK);
  REQUIRE(greta_session_draft_tokens(session, draft_tokens) == GRETA_OK);
  Texts texts;
  auto options = sized<greta_generate_options>();
  options.max_tokens = setting.max_tokens;
  options.ignore_end = setting.ignore_end;
  options.user = &texts;
  options.on_token = [](void* user, int32_t token, const char* text, size_t bytes) {
    Texts& to = *static_cast<Texts*>(user);
    if (token >= 0) to.tokens.push_back(token);
    to.text.append(text, bytes);
    return 0;
  };
  options.stop_strings = &setting.stop;
  options.stop_count = setting.stop ? 1 : 0;
  const std::vector<int32_t> prompt =
      tales.tokens("Once upon a time there was a king, and the king had a cat. Once upon a time");
  REQUIRE(greta_session_generate(session, prompt.data(), prompt.size(), &options, &texts.first) == GRETA_OK);
  const std::vector<int32_t> more = tales.tokens(" The");
  if (greta_session_position(session) + more.size() < 256)
    REQUIRE(greta_session_generate(session, more.data(), more.size(), &options, &texts.second) == GRETA_OK);
  texts.position = greta_session_position(session);
  return texts;
}

}  // namespace

TEST_CASE("drafts: a text is the same with guesses as without", "[api][draft]") {
  const Setting& setting = GENERATE(from_range(std::begin(kSettings), std::end(kSettings)));
  const uint32_t most = GENERATE(1u, 7u);
  INFO(setting.name << ", at most " << most);
  const Texts plain = write(setting, 0), guessed = write(setting, most);
  CHECK(guessed.tokens == plain.tokens);
  CHECK(guessed.text == plain.text);
  CHECK(guessed.position == plain.position);
  CHECK(guessed.first.reason == plain.first.reason);
  CHECK(guessed.second.reason == plain.second.reason);
  CHECK(guessed.first.generated_tokens == plain.first.generated_tokens);
  CHECK(guessed.first.stop_string == plain.first.stop_string);
  CHECK(plain.first.drafted_tokens == 0);
  CHECK(guessed.first.accepted_tokens <= guessed.first.drafted_tokens);
  if (setting.repeats) CHECK(guessed.first.accepted_tokens > 10);
}

namespace {

// What tokens the model writes behind these, after what the session holds.
std::vector<int32_t> generated(greta_session* session, std::span<const int32_t> tokens, uint32_t max_tokens,
                               greta_generate_result* result) {
  std::vector<int32_t> out;
  auto options = sized<greta_generate_options>();
  options.max_tokens = max_tokens;
  options.ignore_end = 1;
  options.user = &out;
  options.on_token = [](void* user, int32_t token, const char*, size_t) {
    if (token >= 0) static_cast<std::vector<int32_t>*>(user)->push_back(token);
    return 0;
  };
  REQUIRE(greta_session_generate(session, tokens.data(), tokens.size(), &options, result) == GRETA_OK);
  return out;
}

// What 40 tokens the model writes behind a prompt, and the session's state behind these. *sum is added to.
std::pair<std::vector<int32_t>, std::string> continued(greta_session* session,
                                                       const std::vector<int32_t>& prompt,
                                                       const greta_draft_options* draft,
                                                       greta_generate_result* sum) {
  REQUIRE(greta_session_truncate(session, 0) == GRETA_OK);
  REQUIRE(greta_session_draft(session, draft) == GRETA_OK);
  auto result = sized<greta_generate_result>();
  const std::vector<int32_t> out = generated(session, prompt, 40, &result);
  sum->drafted_tokens += result.drafted_tokens;
  sum->accepted_tokens += result.accepted_tokens;
  std::string state;
  const auto write = [](void* user, const void* data, size_t count) {
    static_cast<std::string*>(user)->append(static_cast<const char*>(data), count);
    return 0;
  };
  REQUIRE(greta_session_save(session, write, &state) == GRETA_OK);
  return {out, state};
}

// Who guesses: the text, a second model, or who knows the text and says it, something else, or either.
enum class By { Text, Model, Right, Wrong, Chance };

struct Knowing {
  By by;
  std::vector<int32_t> whole = {};
  std::mt19937 random{7};

  static size_t guess(void* user, const int32_t*, size_t count, int32_t* out, size_t most) {
    Knowing& k = *static_cast<Knowing*>(user);
    size_t made = 0;
    for (; made < most && count + made < k.whole.size(); ++made) {
      const bool lies = k.by == By::Wrong || (k.by == By::Chance && k.random() % 3 == 0);
      out[made] = k.whole[count + made] ^ int32_t(lies);
    }
    return made;
  }
};

// Chi-square of counts against probabilities, less its number of degrees of freedom, in standard deviations
// (Wilson and Hilferty). Outcomes that are expected less than five times count as one.
double surprise(const std::vector<int>& counts, const std::vector<double>& probabilities, int draws) {
  double square = 0, rest = 0, seen_rest = 0;
  int bins = 0;
  const auto add = [&](double seen, double expected) {
    square += (seen - expected) * (seen - expected) / expected;
    ++bins;
  };
  for (size_t i = 0; i < counts.size(); ++i) {
    const double expected = draws * probabilities[i];
    if (expected >= 5) add(counts[i], expected);
    if (expected < 5) rest += expected, seen_rest += counts[i];
  }
  if (rest >= 5) add(seen_rest, rest);
  REQUIRE(bins > 2);
  const double freedom = bins - 1, of_cube = 2 / (9 * freedom);
  return (std::cbrt(square / freedom) - (1 - of_cube)) / std::sqrt(of_cube);
}

}  // namespace

namespace {

// Writes behind 200 prompts of `facts` sentences, some of them drawn, with guesses and without. The text, the
// cache and the position are the same.
void compare_prompts(int facts, By by) {
  const Tales tales((test_data() / "models/stories260K-f32.gguf").string());
  const Tales second((test_data() / "models/stories260K-q4_0.gguf").string());
  Knowing knowing{by};
  auto draft = sized<greta_draft_options>();
  draft.kind = by == By::Text ? GRETA_DRAFT_TEXT : by == By::Model ? GRETA_DRAFT_MODEL : GRETA_DRAFT_CALLBACK;
  draft.depth = 7;
  if (by != By::Text && by != By::Model) draft.guess = Knowing::guess, draft.user = &knowing;
  auto sizes = sized<greta_executor_options>();
  sizes.context = 256, sizes.sequences = 1;
  if (by == By::Model) REQUIRE(greta_executor_open(second.model, &sizes, &draft.executor) == GRETA_OK);
  const char* const names[] = {"Lily", "Tom", "Mia", "Ben", "Sue", "Max", "Sara", "Tim", "Anna", "Sam"};
  const char* const things[] = {"ball", "dog",  "cat",  "hat",  "car", "boat", "bird", "cake", "doll", "tree",
                                "book", "frog", "bike", "fish", "toy", "kite", "box",  "bear", "duck", "cup"};
  int prompts = 0, differ = 0;
  auto sum = sized<greta_generate_result>();
  for (const char* name : names)
    for (const char* thing : things) {
      const std::string fact = std::string(name) + " had a big red " + thing + ". ";
      std::string text;
      for (int i = 0; i < facts; ++i) text += fact;
      const std::vector<int32_t> prompt = tales.tokens(text + name);
      // Every fourth one is drawn.
      REQUIRE(greta_session_seed(tales.session, uint64_t(prompts)) == GRETA_OK);
      REQUIRE(greta_session_temperature(tales.session, prompts % 4 == 3 ? 0.7f : 0) == GRETA_OK);
      const auto plain = continued(tales.session, prompt, nullptr, &sum);
      knowing.whole = prompt;
      knowing.whole.insert(knowing.whole.end(), plain.first.begin(), plain.first.end());
      differ += plain != continued(tales.session, prompt, &draft, &sum);
      ++prompts;
    }
  REQUIRE(greta_session_draft(tales.session, nullptr) == GRETA_OK);
  greta_executor_close(draft.executor);
  INFO(sum.accepted_tokens << " of " << sum.drafted_tokens << " guesses were right");
  CHECK(prompts == 200);
  CHECK(differ == 0);
  CHECK(sum.drafted_tokens > 150);
  CHECK((by == By::Wrong ? sum.accepted_tokens == 0 : sum.accepted_tokens > 100));
}

// Compares what is drawn behind guesses with the probabilities that the model gives, for so many seeds.
void compare_draws(uint64_t seeds) {
  const Tales tales((test_data() / "models/stories260K-f32.gguf").string());
  greta_session* session = tales.session;
  const std::string fact = "Once upon a time, there was a little girl named Lily. ";
  std::vector<int32_t> prompt = tales.tokens(fact + fact + "Once upon");
  const auto before = std::search(prompt.begin(), prompt.end(), prompt.end() - 3, prompt.end()) + 3;
  REQUIRE(before < prompt.end() - 3);
  const std::vector<int32_t> guess(before, before + 3);  // what followed the last three tokens
  const float temperature = 0.8f;
  REQUIRE(greta_session_temperature(session, temperature) == GRETA_OK);

  // The probabilities behind the prompt and three tokens that repeat what was there before.
  std::vector<int32_t> text = prompt;
  text.insert(text.end(), guess.begin(), guess.end());
  const float* logits = nullptr;
  REQUIRE(greta_session_eval(session, text.data(), text.size(), GRETA_ROWS_LAST, &logits) == GRETA_OK);
  auto info = sized<greta_model_info>();
  REQUIRE(greta_model_describe(tales.model, &info) == GRETA_OK);
  std::vector<double> probabilities(info.vocab_size);
  double sum = 0;
  for (size_t i = 0; i < probabilities.size(); ++i) sum += std::exp(double(logits[i]) / temperature);
  for (size_t i = 0; i < probabilities.size(); ++i)
    probabilities[i] = std::exp(double(logits[i]) / temperature) / sum;

  std::vector<int> counts(info.vocab_size);
  int draws = 0;
  for (uint64_t seed = 0; seed < seeds; ++seed) {
    REQUIRE(greta_session_truncate(session, uint32_t(prompt.size() - 1)) == GRETA_OK);
    REQUIRE(greta_session_draft_tokens(session, 7) == GRETA_OK);
    REQUIRE(greta_session_seed(session, seed) == GRETA_OK);
    auto result = sized<greta_generate_result>();
    const std::vector<int32_t> out = generated(session, {&prompt.back(), 1}, 4, &result);
    REQUIRE(out.size() == 4);
    if (!std::equal(guess.begin(), guess.end(), out.begin())) continue;
    CHECK(result.accepted_tokens > 0);  // the third token was guessed, so the fourth is drawn behind a guess
    ++counts[size_t(out[3])];
    ++draws;
  }
  INFO(draws << " draws");
  CHECK(uint64_t(draws) * 3 > seeds * 2);
  CHECK(surprise(counts, probabilities, draws) < 3.5);
}

}  // namespace

TEST_CASE("drafts: 200 prompts of a trained model have the same text with guesses, greedy and drawn",
          "[api][draft]") {
  compare_prompts(2, By::Text);
}

TEST_CASE("drafts: 1,000 prompts of a trained model have the same text with guesses", "[.long]") {
  const By by = GENERATE(By::Text, By::Model, By::Right, By::Wrong, By::Chance);
  INFO("guesses of kind " << int(by));
  for (const int facts : {2, 3, 4, 5, 6}) compare_prompts(facts, by);
}

TEST_CASE("drafts: what is drawn behind a right guess has the model's own probabilities", "[api][draft]") {
  compare_draws(1500);
}

TEST_CASE("drafts: 100,000 draws behind guesses have the model's own probabilities", "[.long]") {
  compare_draws(140'000);  // of which so many are behind right guesses
}

TEST_CASE("drafts: texts of a batch are guessed side by side", "[api][draft][batch]") {
  const Tales tales;
  auto sizes = sized<greta_executor_options>();
  sizes.context = 256;
  sizes.sequences = 4;
  sizes.cache_tokens = 4 * 256;
  greta_executor* executor = nullptr;
  REQUIRE(greta_executor_open(tales.model, &sizes, &executor) == GRETA_OK);
  auto shared = sized<greta_session_options>();
  shared.executor = executor;
  const std::string said = "Once upon a time there was a king, and the king had a cat. ";
  const std::vector<int32_t> prompts[] = {tales.tokens(said + said + "Once upon"), tales.tokens(said + said),
                                          tales.tokens(said + said + "Once"), tales.tokens(said + "Once")};
  greta_session* sessions[4] = {};
  std::vector<int32_t> alone[4], together[4];
  greta_generate_item items[4] = {};
  greta_generate_options options[4];
  greta_generate_result results[4];
  for (size_t i = 0; i < 4; ++i) {
    REQUIRE(greta_session_open(tales.model, &shared, &sessions[i]) == GRETA_OK);
    auto result = sized<greta_generate_result>();
    alone[i] = generated(sessions[i], prompts[i], 60, &result);
    REQUIRE(greta_session_truncate(sessions[i], 0) == GRETA_OK);
    REQUIRE(greta_session_draft_tokens(sessions[i], 7) == GRETA_OK);
    options[i] = sized<greta_generate_options>();
    options[i].max_tokens = 60;
    options[i].ignore_end = 1;
    options[i].user = &together[i];
    options[i].on_token = [](void* user, int32_t token, const char*, size_t) {
      if (token >= 0) static_cast<std::vector<int32_t>*>(user)->push_back(token);
      return 0;
    };
    results[i] = sized<greta_generate_result>();
    items[i].session = sessions[i];
    items[i].tokens = prompts[i].data();
    items[i].count = prompts[i].size();
    items[i].options = &options[i];
    items[i].result = &results[i];
  }
  REQUIRE(greta_batch_generate(items, 4) == GRETA_OK);
  uint32_t accepted = 0;
  for (size_t i = 0; i < 4; ++i) {
    INFO("session " << i << ": " << items[i].error);
    CHECK(items[i].status == GRETA_OK);
    CHECK(together[i] == alone[i]);
    accepted += results[i].accepted_tokens;
    greta_session_close(sessions[i]);
  }
  CHECK(accepted > 5);
  greta_executor_close(executor);
}

TEST_CASE("drafts: a callback guesses, and is asked only for tokens that are known", "[api][draft]") {
  const Tales tales;
  const std::vector<int32_t> prompt = tales.tokens("Once upon a time there was a king");
  auto result = sized<greta_generate_result>();
  const std::vector<int32_t> plain = generated(tales.session, prompt, 60, &result);
  CHECK(result.draw_steps == 60);
  struct Knows {
    std::vector<int32_t> whole;
    size_t wrong = 0, asked = 0;
  } knows{prompt, 0, 0};
  knows.whole.insert(knows.whole.end(), plain.begin(), plain.end());
  auto options = sized<greta_draft_options>();
  options.kind = GRETA_DRAFT_CALLBACK;
  options.depth = 7;
  options.user = &knows;
  options.guess = [](void* user, const int32_t* tokens, size_t count, int32_t* out, size_t most) -> size_t {
    Knows& all = *static_cast<Knows*>(user);
    ++all.asked;
    all.wrong +=
        count > all.whole.size() || !std::equal(tokens, tokens + count, all.whole.begin()) || most > 7;
    size_t made = 0;
    for (; made < most && count + made < all.whole.size(); ++made) out[made] = all.whole[count + made];
    return made;
  };
  REQUIRE(greta_session_draft(tales.session, &options) == GRETA_OK);
  REQUIRE(greta_session_truncate(tales.session, 0) == GRETA_OK);
  CHECK(generated(tales.session, prompt, 60, &result) == plain);
  CHECK(knows.wrong == 0);
  CHECK(result.draw_steps < 15);
  CHECK(result.draw_steps + result.accepted_tokens == 60);
  CHECK(result.draft_stopped == 0);
  REQUIRE(greta_session_draft(tales.session, nullptr) == GRETA_OK);
  const size_t asked = knows.asked;
  REQUIRE(greta_session_truncate(tales.session, 0) == GRETA_OK);
  CHECK(generated(tales.session, prompt, 60, &result) == plain);
  CHECK(knows.asked == asked);
}

TEST_CASE("drafts: more than seven are refused", "[api][draft]") {
  const Tales tales;
  CHECK(greta_session_draft_tokens(tales.session, 8) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_error_text() == std::string("8 tokens to guess in a step, expected 1 to 7"));
  CHECK(greta_session_draft_tokens(nullptr, 1) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_session_draft(nullptr, nullptr) == GRETA_ERROR_ARGUMENT);
  for (const uint32_t depth : {0u, 8u, 1u << 31}) {
    auto options = sized<greta_draft_options>();
    options.kind = GRETA_DRAFT_TEXT;
    options.depth = depth;
    CHECK(greta_session_draft(tales.session, &options) == GRETA_ERROR_ARGUMENT);
    CHECK(greta_error_text() == std::to_string(depth) + " tokens to guess in a step, expected 1 to 7");
  }
  auto options = sized<greta_draft_options>();
  options.depth = 1;
  options.kind = GRETA_DRAFT_CALLBACK;  // without one
  CHECK(greta_session_draft(tales.session, &options) == GRETA_ERROR_ARGUMENT);
  options.kind = 77;
  CHECK(greta_session_draft(tales.session, &options) == GRETA_ERROR_ARGUMENT);
  CHECK(std::string(greta_error_text()).find("77") != std::string::npos);
}
