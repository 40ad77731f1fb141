// Stop strings are compared with a plain search, however the text is cut, and tried in generation.
#include "engine/session/stop.h"

#include <catch2/catch_test_macros.hpp>
#include <random>

#include "support/tiny_model.h"

using namespace greta;
using namespace greta::test;

namespace {

struct Stopped {
  std::string text;
  int32_t found = -1;
  bool operator==(const Stopped&) const = default;
};

// Finds the match that ends first; of several, the longest; of equal ones, the first in the list.
Stopped plain_search(const std::string& text, const std::vector<std::string_view>& stops) {
  for (size_t end = 1; end <= text.size(); ++end) {
    Stopped best;
    size_t longest = 0;
    for (size_t i = 0; i < stops.size(); ++i)
      if (stops[i].size() > longest && std::string_view(text).substr(0, end).ends_with(stops[i])) {
        longest = stops[i].size();
        best = {text.substr(0, end - longest), int32_t(i)};
      }
    if (longest) return best;
  }
  return {text, -1};
}

Stopped in_pieces(const std::string& text, const std::vector<std::string_view>& stops, std::mt19937& random,
                  size_t most) {
  StopMatcher matcher;
  REQUIRE(matcher.open(stops).ok());
  Stopped out;
  for (size_t at = 0; at < text.size();) {
    const size_t count = random() % (most + 1);
    const bool found = matcher.push(std::string_view(text).substr(at, count), &out.text);
    at += count;
    REQUIRE(found == (matcher.found() >= 0));
    if (found) break;
    // Text that came out can no longer be part of a match, and text that is held back may be.
    const std::string whole = text.substr(0, std::min(at, text.size()));
    REQUIRE(whole.starts_with(out.text));
    bool may_begin = out.text == whole;
    for (const std::string_view stop : stops)
      may_begin = may_begin || stop.starts_with(whole.substr(out.text.size()));
    REQUIRE(may_begin);
  }
  if (matcher.found() < 0) matcher.flush(&out.text);
  out.found = matcher.found();
  return out;
}

}  // namespace

TEST_CASE("stop: any cut of a text gives the same", "[stop]") {
  const std::vector<std::string_view> sets[] = {{"ab"},
                                                {"aab", "ab"},
                                                {"abab", "b"},
                                                {"aaaa"},
                                                {"ba", "aba", "ba"},
                                                {"abcabd", "cab", "bcc"},
                                                {"\n\nUser:", "</s>"},
                                                {"é", "aé"},
                                                {}};
  std::mt19937 random(1);
  size_t stopped = 0;
  for (const auto& stops : sets)
    for (int repeat = 0; repeat < 400; ++repeat) {
      std::string text;
      const char* const letters[] = {"a", "b", "c", "d", "é", "\n", "User:", "</", "s>"};
      for (uint32_t i = random() % 40; i > 0; --i) text += letters[random() % (repeat % 2 ? 9 : 3)];
      const Stopped want = plain_search(text, stops);
      stopped += want.found >= 0;
      for (const size_t most : {1, 2, 5, 100}) {
        const Stopped got = in_pieces(text, stops, random, most);
        INFO(text << " gave " << got.text << " not " << want.text);
        REQUIRE(got == want);
      }
    }
  REQUIRE(stopped > 500);
}

TEST_CASE("stop: a long text is not held back, and bad strings are refused", "[stop]") {
  StopMatcher matcher;
  const std::vector<std::string_view> end = {"END"};
  REQUIRE(matcher.open(end).ok());
  std::string out;
  CHECK_FALSE(matcher.push(std::string(10000, 'x') + "EN", &out));
  CHECK(out.size() == 10000);
  CHECK_FALSE(matcher.push("E", &out));
  CHECK(out.size() == 10002);
  const std::string long_text(kMaxStopBytes + 1, 'a');
  for (const std::string_view wrong :
       {std::string_view(""), std::string_view("\xff"), std::string_view(long_text)}) {
    const std::vector<std::string_view> one = {wrong};
    CHECK(matcher.open(one).code == Code::Argument);
  }
  CHECK(matcher.open(std::vector<std::string_view>(kMaxStopStrings + 1, "a")).code == Code::Argument);
}

TEST_CASE("stop: generation ends before a stop string, wherever its tokens meet", "[stop]") {
  const TinyModel tiny = make_tiny({});
  Engine engine;
  open_engine(tiny.file, {}, &engine);
  std::unique_ptr<Session> session;
  REQUIRE(Session::open(std::shared_ptr<Executor>(engine.executor.get(), [](Executor*) {}), &session).ok());
  SamplerSettings settings;
  settings.temperature = 1.5f;
  GenerateResult result;
  const auto generate = [&](std::vector<std::string_view> stops) {
    std::string text;
    GenerateOptions options;
    options.max_tokens = 60;
    options.ignore_end = true;
    options.stops = stops;
    options.user = &text;
    options.on_token = [](void* user, int32_t, const char* piece, size_t bytes) {
      static_cast<std::string*>(user)->append(piece, bytes);
      return 0;
    };
    const int32_t prompt[] = {1, 5};
    REQUIRE(session->truncate(0).ok());
    REQUIRE(session->generate(prompt, options, &result).ok());
    return text;
  };
  for (uint64_t seed = 0; seed < 10; ++seed) {
    settings.seed = seed;
    REQUIRE(session->set_sampling(settings).ok());
    const std::string whole = generate({});
    REQUIRE(result.reason == StopReason::Length);
    REQUIRE(whole.size() > 8);
    for (size_t at = 0; at + 4 < whole.size(); at += 5) {
      const std::string stop = whole.substr(at, 4);
      if (!is_valid_utf8(stop)) continue;
      const std::string text = generate({"never there", stop});
      REQUIRE(text == whole.substr(0, whole.find(stop)));
      REQUIRE(result.reason == StopReason::String);
      REQUIRE(result.stop_string == 1);
    }
  }
}
