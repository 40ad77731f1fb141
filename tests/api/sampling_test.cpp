// The setters of sampling in greta.h: values out of range are refused and change nothing, and the settings
// that a file recommends are read from it.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <cstring>
#include <functional>

#include "greta.h"
#include "support/gguf_writer.h"
#include "support/tiny_model.h"

using namespace greta::test;
using Catch::Matchers::ContainsSubstring;

namespace {

// Puts entries before those of a finished file, in multiples of 32 bytes, so that its data stays aligned.
std::string with_entries(const std::string& file, GgufWriter more, uint64_t count) {
  const size_t header = 24, pad = 8 + 3 + 4 + 8;
  const size_t plain = more.header().size() - header;
  const std::string filler((32 - (plain + pad) % 32) % 32, ' ');
  more.value("pad", filler.c_str());
  std::string out = file;
  uint64_t values = 0;
  memcpy(&values, out.data() + 16, 8);
  values += count + 1;
  memcpy(out.data() + 16, &values, 8);
  return out.insert(header, more.header().substr(header));
}

struct Objects {
  std::string file;
  greta_runtime* runtime = nullptr;
  greta_model* model = nullptr;
  greta_session* session = nullptr;
  explicit Objects(std::string bytes = make_tiny({}).file) : file(std::move(bytes)) {
    greta_runtime_options options{};
    options.struct_size = sizeof options;
    options.device = "cpu";
    REQUIRE(greta_runtime_open(&options, &runtime) == GRETA_OK);
    greta_source source{};
    source.struct_size = sizeof source;
    source.memory = file.data();
    source.memory_bytes = file.size();
    greta_model_options model_options{};
    model_options.struct_size = sizeof model_options;
    model_options.source = &source;
    const greta_status status = greta_model_open(runtime, &model_options, &model);
    INFO(greta_error_text());
    REQUIRE(status == GRETA_OK);
    REQUIRE(greta_session_open(model, nullptr, &session) == GRETA_OK);
  }
  ~Objects() {
    greta_session_close(session);
    greta_model_close(model);
    greta_runtime_close(runtime);
  }
  std::vector<int32_t> draw() {
    std::vector<int32_t> tokens;
    REQUIRE(greta_session_truncate(session, 0) == GRETA_OK);
    greta_generate_options options{};
    options.struct_size = sizeof options;
    options.max_tokens = 24;
    options.ignore_end = 1;
    options.user = &tokens;
    options.on_token = [](void* user, int32_t token, const char*, size_t) {
      if (token >= 0) static_cast<std::vector<int32_t>*>(user)->push_back(token);
      return 0;
    };
    const int32_t prompt[] = {1, 5};
    REQUIRE(greta_session_generate(session, prompt, 2, &options, nullptr) == GRETA_OK);
    return tokens;
  }
};

struct Setter {
  const char* says;
  std::function<greta_status(greta_session*, float)> call;
  std::vector<float> wrong;
};

const std::vector<float> kNegative = {NAN, -1, INFINITY, -INFINITY};
const std::vector<float> kAboveOne = {NAN, -0.1f, 1.5f, INFINITY};

greta_status set_dry(greta_session* session, float multiplier, float base, const char* breaker) {
  const char* breakers[] = {breaker};
  greta_dry_options options{};
  options.struct_size = sizeof options;
  options.multiplier = multiplier;
  options.base = base;
  options.breakers = breakers;
  options.breaker_count = 1;
  return greta_session_dry(session, &options);
}

const std::vector<Setter> kSetters = {
    {"temperature", [](auto* s, float x) { return greta_session_temperature(s, x); }, kNegative},
    {"range of the temperature", [](auto* s, float x) { return greta_session_dynamic_temperature(s, x, 1); },
     kNegative},
    {"exponent of the temperature",
     [](auto* s, float x) { return greta_session_dynamic_temperature(s, 0.5f, x); },
     {NAN, -1, 0, 1e9f}},
    {"top_p", [](auto* s, float x) { return greta_session_top_p(s, x); }, {NAN, -1, 0, 1.5f, INFINITY}},
    {"min_p", [](auto* s, float x) { return greta_session_min_p(s, x); }, kAboveOne},
    {"typical_p", [](auto* s, float x) { return greta_session_typical_p(s, x); }, {NAN, -1, 0, 1.5f}},
    {"top_n_sigma", [](auto* s, float x) { return greta_session_top_n_sigma(s, x); }, kNegative},
    {"probability of XTC", [](auto* s, float x) { return greta_session_xtc(s, x, 0.1f); }, kAboveOne},
    {"threshold of XTC", [](auto* s, float x) { return greta_session_xtc(s, 0.5f, x); }, kAboveOne},
    {"penalty for repeats",
     [](auto* s, float x) { return greta_session_penalties(s, x, 0, 0, 64); },
     {NAN, -1, 0, 1e9f}},
    {"penalty for frequency",
     [](auto* s, float x) { return greta_session_penalties(s, 1, x, 0, 64); },
     {NAN, 1e9f, -1e9f}},
    {"penalty for presence",
     [](auto* s, float x) { return greta_session_penalties(s, 1, 0, x, 64); },
     {NAN, INFINITY}},
    {"tau of mirostat", [](auto* s, float x) { return greta_session_mirostat(s, x, 0.1f); }, kNegative},
    {"eta of mirostat", [](auto* s, float x) { return greta_session_mirostat(s, 5, x); }, kNegative},
    {"multiplier of DRY", [](auto* s, float x) { return set_dry(s, x, 1.75f, "\n"); }, kNegative},
    {"base of DRY", [](auto* s, float x) { return set_dry(s, 1, x, "\n"); }, {NAN, -1, 0.5f, INFINITY}},
    {"bias of token 3",
     [](auto* s, float x) {
       const int32_t token = 3;
       return greta_session_logit_bias(s, &token, &x, 1);
     },
     {NAN, INFINITY, 1e9f, -1e9f}},
};

}  // namespace

// CVE-2026-54235.
TEST_CASE("api: each setting of sampling is within its range, or nothing changes", "[api][sampler]") {
  Objects o;
  REQUIRE(greta_session_temperature(o.session, 1.2f) == GRETA_OK);
  REQUIRE(greta_session_top_k(o.session, 30) == GRETA_OK);
  REQUIRE(greta_session_min_p(o.session, 0.001f) == GRETA_OK);
  REQUIRE(greta_session_seed(o.session, 7) == GRETA_OK);
  const auto before = o.draw();
  for (const Setter& setter : kSetters)
    for (const float wrong : setter.wrong) {
      INFO(setter.says << " " << wrong);
      CHECK(setter.call(o.session, wrong) == GRETA_ERROR_ARGUMENT);
      CHECK_THAT(greta_error_text(), ContainsSubstring(setter.says));
      CHECK(setter.call(nullptr, 1) == GRETA_ERROR_ARGUMENT);
      REQUIRE(o.draw() == before);
    }
}

TEST_CASE("api: texts, tokens and orders of sampling that are wrong", "[api][sampler]") {
  Objects o;
  REQUIRE(greta_session_temperature(o.session, 1.2f) == GRETA_OK);
  const auto before = o.draw();
  const auto refused = [&](greta_status status, greta_status expected, const char* words) {
    CHECK(status == expected);
    CHECK_THAT(greta_error_text(), ContainsSubstring(words));
    REQUIRE(o.draw() == before);
  };
  const float bias = 1;
  for (const int32_t token : {-1, 67, INT32_MAX})
    refused(greta_session_logit_bias(o.session, &token, &bias, 1), GRETA_ERROR_ARGUMENT, "expected 0 to 66");
  refused(greta_session_logit_bias(o.session, nullptr, &bias, 1), GRETA_ERROR_ARGUMENT, "tokens");
  refused(greta_session_sampler_order(o.session, "top_k;best"), GRETA_ERROR_ARGUMENT, "best");
  refused(greta_session_sampler_order(o.session, ";"), GRETA_ERROR_ARGUMENT, "");
  refused(set_dry(o.session, 1, 2, ""), GRETA_ERROR_ARGUMENT, "breaker");
  refused(set_dry(o.session, 1, 2, nullptr), GRETA_ERROR_ARGUMENT, "breaker");
  refused(set_dry(o.session, 1, 2, std::string(100, 'x').c_str()), GRETA_ERROR_ARGUMENT, "100 bytes");
  refused(greta_session_dry(o.session, nullptr), GRETA_ERROR_ARGUMENT, "options");
  refused(greta_session_grammar(o.session, "root ::= \"a\"\nb ::= (", nullptr), GRETA_ERROR_ARGUMENT,
          "line 2");
  refused(greta_session_grammar(o.session, "root ::= \"a\"", "top"), GRETA_ERROR_ARGUMENT, "top");
  refused(greta_session_strict_schema(o.session, R"({"not":{}})"), GRETA_ERROR_UNSUPPORTED, "not");
  CHECK(greta_session_json_schema(o.session, R"({"not":{}})") == GRETA_OK);
  CHECK(greta_session_strict_schema(o.session, R"({"type":"null","x-note":1})") == GRETA_OK);
  CHECK(greta_session_json_schema(o.session, nullptr) == GRETA_OK);
  refused(greta_session_json_schema(o.session, "{"), GRETA_ERROR_ARGUMENT, "JSON schema");
}

TEST_CASE("api: a file's own settings of sampling", "[api][sampler]") {
  GgufWriter more;
  more.value("general.sampling.temp", 0.25f).value("general.sampling.top_k", 7u);
  more.value("general.sampling.top_p", 1.5f);  // it is out of its range and counts as absent
  more.value("general.sampling.penalty_last_n", 32u).value("general.sampling.min_p", NAN);
  more.value("general.sampling.sequence", "top_k;temperature");
  const Objects o(with_entries(make_tiny({}).file, more, 6));
  greta_sampling_defaults defaults{};
  defaults.struct_size = sizeof defaults;
  REQUIRE(greta_model_sampling(o.model, &defaults) == GRETA_OK);
  CHECK(defaults.fields == uint32_t(GRETA_SAMPLING_TEMPERATURE | GRETA_SAMPLING_TOP_K |
                                    GRETA_SAMPLING_REPEAT_LAST_N | GRETA_SAMPLING_ORDER));
  CHECK(defaults.temperature == 0.25f);
  CHECK(defaults.top_k == 7);
  CHECK(defaults.repeat_last_n == 32);
  REQUIRE(defaults.order);
  CHECK(std::string(defaults.order) == "top_k;temperature");
  const Objects plain;
  REQUIRE(greta_model_sampling(plain.model, &defaults) == GRETA_OK);
  CHECK(defaults.fields == 0);
}
