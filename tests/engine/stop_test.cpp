// Stop strings are compared with a plain search, however the text is cut, and tried in generation.
#include "engine/write/stop.h"

#include <catch2/catch_test_macros.hpp>
#include <fstream>
#include <iterator>
#include <random>

#include "places.h"
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

TEST_CASE("stop: any of several strings matches with what is hidden, and without all of it", "[stop]") {
  const std::string_view stops[] = {"no", "ab", "cqd"};
  for (const auto& [text, found] :
       {std::pair{"a\xFFqb", 1}, std::pair{"c\xFFqd", 2}, std::pair{"n\xFFqo", 0}}) {
    CAPTURE(found);
    StopMatcher matcher;
    REQUIRE(matcher.open(stops).ok());
    std::string out;
    CHECK(matcher.push(std::string("_") + text, &out));
    CHECK(matcher.found() == found);
    CHECK(out == "_");
  }
}

TEST_CASE("stop: a text that begins anew does not go on with the one before", "[stop]") {
  const std::string_view stops[] = {"ab"};
  StopMatcher matcher;
  REQUIRE(matcher.open(stops).ok());
  std::string out;
  CHECK_FALSE(matcher.push("a", &out));
  matcher.flush(&out);
  matcher.begin_anew();
  CHECK_FALSE(matcher.push("b", &out));
  matcher.flush(&out);
  CHECK(out == "ab");
  matcher.begin_anew();
  CHECK(matcher.push("ab", &out));
}

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

// A text of which some is hidden. A match ends where one in the whole text or in the shown text does; of
// several, the one that begins first counts, then the first in the list.
TEST_CASE("stop: hidden text is matched, and never given out", "[stop]") {
  const std::vector<std::string_view> sets[] = {
      {"ab"}, {"<x>"}, {"a<x>"}, {"<x>b", "ab"}, {"<x><x>", "bb"}, {"a<x>b<x>", "ba", "aab"}, {}};
  std::mt19937 random(2);
  size_t ends[2] = {};  // matches with hidden text, and without
  for (const auto& stops : sets)
    for (int repeat = 0; repeat < 500; ++repeat) {
      StopMatcher matcher;
      REQUIRE(matcher.open(stops).ok());
      std::string whole, shown, got, want;
      std::vector<size_t> shown_before = {0};  // [whole.size() + 1]
      bool found = false;
      int32_t want_found = -1;
      for (uint32_t i = random() % 12; i > 0 && !found; --i) {
        const bool hidden = random() % 3 == 0;
        const std::string piece = hidden ? "<x>" : random() % 2 ? "a" : "b";
        // A hidden text may itself be of several tokens or bytes: only the whole piece is tried here.
        std::string pushed;
        for (const char byte : piece) (hidden ? pushed += '\xff' : pushed) += byte;
        found = matcher.push(pushed, &got);
        for (const char byte : piece) {
          whole += byte;
          if (!hidden) shown += byte;
          shown_before.push_back(shown.size());
          size_t first = whole.size();
          for (size_t s = 0; s < stops.size(); ++s) {
            const size_t bytes = stops[s].size();
            size_t start = whole.ends_with(stops[s]) ? whole.size() - bytes : whole.size();
            if (!hidden && shown.ends_with(stops[s]))
              for (size_t at = 0; at < start; ++at)  // the last place before the match's first byte
                if (shown_before[at] == shown.size() - bytes && shown_before[at + 1] > shown_before[at])
                  start = at;
            if (start >= first) continue;
            first = start;
            want_found = int32_t(s);
            want = shown.substr(0, shown_before[start]);
            ++ends[whole.substr(start).find("<x>") == std::string::npos];
          }
          if (want_found >= 0) break;
        }
        REQUIRE(shown.starts_with(got));
        REQUIRE(found == (want_found >= 0));
      }
      if (!found) {
        matcher.flush(&got);
        want = shown;
      }
      INFO(whole);
      REQUIRE(got == want);
      REQUIRE(matcher.found() == want_found);
    }
  CHECK(ends[0] > 100);
  CHECK(ends[1] > 100);
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

TEST_CASE("stop: the text of a control token is a stop string", "[stop]") {
  std::ifstream file(GRETA_SOURCE_DIR "/models/tales-llama-7m-q4_k_m.gguf", std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  Engine engine;
  open_engine(bytes, {}, &engine);
  const Tokenizer& tokenizer = *engine.model->tokenizer;
  const int32_t control = tokenizer.find("<|end|>");
  REQUIRE(tokenizer.piece(control).empty());
  const std::string mark = tokenizer.piece(control, true);
  std::unique_ptr<Session> session;
  REQUIRE(Session::open(std::shared_ptr<Executor>(engine.executor.get(), [](Executor*) {}), &session).ok());
  SamplerSettings settings;
  settings.bias = {{control, 1e6f}};  // the model writes nothing else
  REQUIRE(session->set_sampling(settings).ok());
  const auto generate = [&](std::vector<std::string_view> stops, std::vector<int32_t> spoken,
                            std::string* text) {
    GenerateOptions options;
    options.max_tokens = 6;
    options.ignore_end = true;
    options.stops = stops;
    options.spoken = spoken;
    options.user = text;
    options.on_token = [](void* user, int32_t, const char* piece, size_t bytes) {
      static_cast<std::string*>(user)->append(piece, bytes);
      return 0;
    };
    GenerateResult result;
    const int32_t prompt[] = {1, 5};
    REQUIRE(session->truncate(0).ok());
    REQUIRE(session->generate(prompt, options, &result).ok());
    return result;
  };
  std::string text;
  CHECK(generate({}, {}, &text).reason == StopReason::Length);
  const GenerateResult one = generate({"never there", mark}, {}, &text);
  CHECK(one.reason == StopReason::String);
  CHECK(one.stop_string == 1);
  CHECK(one.generated_tokens == 1);
  const std::string twice = mark + mark;
  CHECK(generate({twice}, {}, &text).generated_tokens == 2);
  CHECK(text.empty());
  // A token that gives its text is matched as any other.
  CHECK(generate({twice}, {control}, &text).generated_tokens == 2);
  CHECK(text.empty());
  CHECK(generate({"never there"}, {control}, &text).reason == StopReason::Length);
  CHECK(text == twice + twice + twice);
}
