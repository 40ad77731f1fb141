// Logits that are not numbers. Drawing from a row without a finite value is an error everywhere.
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <cstring>

#include "support/api_objects.h"

using namespace greta::test;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr uint32_t kVocab = 67;

// A model whose last norm has a NaN in it, so that every logit is NaN.
TinyModel broken_model() {
  TinyModel tiny = make_tiny({});
  const float nan = NAN;
  const std::string gain(reinterpret_cast<const char*>(tiny.output_norm.data()),
                         tiny.output_norm.size() * sizeof(float));
  const size_t at = tiny.file.find(gain);
  REQUIRE(at != std::string::npos);
  memcpy(tiny.file.data() + at, &nan, sizeof nan);
  return tiny;
}

greta_status generate(greta_session* session, const greta_generate_options* options = nullptr) {
  const int32_t prompt[] = {1, 5, 9};
  return greta_session_generate(session, prompt, 3, options, nullptr);
}

}  // namespace

TEST_CASE("logits: a model whose logits are no numbers generates a status, not a token", "[api][logits]") {
  Objects o(broken_model());
  REQUIRE(o.load() == GRETA_OK);
  auto options = sized<greta_generate_options>();
  int calls = 0;
  options.max_tokens = 4;
  options.user = &calls;
  options.on_token = [](void* user, int32_t, const char*, size_t) { return ++*static_cast<int*>(user), 0; };
  const auto check = [&] {
    CHECK(generate(o.session, &options) == GRETA_ERROR_FILE);
    CHECK_THAT(greta_error_text(), ContainsSubstring("finite"));
    CHECK(greta_session_position(o.session) == 0);
    CHECK(calls == 0);
  };
  SECTION("greedy, on the device") { check(); }
  SECTION("drawn on the device") {
    REQUIRE(greta_session_temperature(o.session, 0.7f) == GRETA_OK);
    check();
    REQUIRE(greta_session_top_k(o.session, 5) == GRETA_OK);
    check();
    REQUIRE(greta_session_penalties(o.session, 1.2f, 0, 0, 64) == GRETA_OK);
    check();
  }
  SECTION("drawn on the host") {
    REQUIRE(greta_session_typical_p(o.session, 0.5f) == GRETA_OK);
    check();
    REQUIRE(greta_session_mirostat(o.session, 3, 0.1f) == GRETA_OK);
    check();
  }
  SECTION("within a grammar") {
    REQUIRE(greta_session_grammar(o.session, "root ::= [0-9t]+", nullptr) == GRETA_OK);
    check();
  }
  SECTION("from a batch") {
    const int32_t tokens[] = {1, 5};
    greta_batch_item item = {o.session, tokens, 2, nullptr};
    REQUIRE(greta_batch_eval(&item, 1) == GRETA_OK);
    int32_t token = 0;
    CHECK(greta_session_sample(o.session, item.logits, &token) == GRETA_ERROR_FILE);
    CHECK_THAT(greta_error_text(), ContainsSubstring("finite"));
  }
}

TEST_CASE("logits: what sampling makes of infinities and NaN", "[api][logits]") {
  Objects o;
  REQUIRE(o.load() == GRETA_OK);
  const int32_t tokens[] = {1, 5};
  REQUIRE(greta_session_eval(o.session, tokens, 2, GRETA_ROWS_NONE, nullptr) == GRETA_OK);
  std::vector<float> row(kVocab);
  int32_t token = -7;
  const auto sample = [&] { return greta_session_sample(o.session, row.data(), &token); };
  const float inf = INFINITY;
  for (const float temperature : {0.0f, 1.0f})
    for (const bool chain : {false, true}) {
      REQUIRE(greta_session_temperature(o.session, temperature) == GRETA_OK);
      REQUIRE(greta_session_typical_p(o.session, chain ? 0.9f : 1.0f) == GRETA_OK);
      REQUIRE(greta_session_min_p(o.session, chain ? 0.1f : 0.0f) == GRETA_OK);
      for (const float nothing : {NAN, inf, -inf}) {
        row.assign(kVocab, nothing);
        CHECK(sample() == GRETA_ERROR_FILE);
        CHECK(token == -7);
      }
      row[3] = NAN, row[4] = inf;
      CHECK(sample() == GRETA_ERROR_FILE);
      for (const float rest : {NAN, -inf}) {  // a single finite value is chosen
        row.assign(kVocab, rest);
        row[41] = -3;
        REQUIRE(sample() == GRETA_OK);
        CHECK(token == 41);
        row[12] = inf;  // the largest of all
        REQUIRE(sample() == GRETA_OK);
        CHECK(token == 12);
        token = -7;
      }
    }
}

TEST_CASE("logits: a filter of the caller that leaves nothing is an argument error", "[api][logits]") {
  Objects o;
  REQUIRE(o.load() == GRETA_OK);
  float rest = NAN;
  const auto filter = [](void* user, float* logits, size_t vocab, const int32_t*, size_t) {
    std::fill(logits, logits + vocab, *static_cast<float*>(user));
    return 0;
  };
  REQUIRE(greta_session_logit_filter(o.session, filter, &rest) == GRETA_OK);
  for (const float value : {NAN, -INFINITY}) {
    rest = value;
    CHECK(generate(o.session) == GRETA_ERROR_ARGUMENT);
    CHECK_THAT(greta_error_text(), ContainsSubstring("filter"));
    CHECK(greta_session_position(o.session) == 0);
  }
  // A filter may force a token by an infinite logit.
  const auto force = [](void*, float* logits, size_t vocab, const int32_t*, size_t) {
    std::fill(logits, logits + vocab, -INFINITY);
    logits[20] = INFINITY;
    return 0;
  };
  REQUIRE(greta_session_logit_filter(o.session, force, nullptr) == GRETA_OK);
  auto options = sized<greta_generate_options>();
  options.max_tokens = 1;
  options.ignore_end = 1;
  int32_t drawn = -1;
  options.user = &drawn;
  options.on_token = [](void* user, int32_t token, const char*, size_t) {
    if (token >= 0) *static_cast<int32_t*>(user) = token;
    return 0;
  };
  REQUIRE(generate(o.session, &options) == GRETA_OK);
  CHECK(drawn == 20);
}
