// Host memory that runs out in a call of greta.h. Each allocation of the call fails once. The call says so,
// nothing leaks, and the same call on the same objects then does what it would have done.
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <cmath>
#include <cstring>
#include <span>

#include "support/api_objects.h"
#include "support/failing_memory.h"

using namespace greta::test;

namespace {

// The results of a call as bytes. Adding to them allocates nothing.
struct Output {
  std::string bytes;
  Output() { bytes.reserve(1 << 20); }
  void clear() { bytes.clear(); }
  void add(const void* from, size_t count) {
    if (bytes.size() + count <= bytes.capacity()) bytes.append(static_cast<const char*>(from), count);
  }
};

int on_token(void* user, int32_t token, const char* text, size_t bytes) {
  auto& out = *static_cast<Output*>(user);
  out.add(&token, sizeof token);
  out.add(text, bytes);
  return 0;
}

int on_write(void* user, const void* bytes, size_t count) {
  static_cast<Output*>(user)->add(bytes, count);
  return 0;
}

constexpr uint32_t kVocab = 67;

// Sessions of one executor, and what a scenario has prepared.
struct Stage {
  greta_executor* executor = nullptr;
  greta_session *first = nullptr, *second = nullptr;
  std::string saved;
  Output out;

  explicit Stage(greta_model* model) {
    auto options = sized<greta_executor_options>();
    options.context = 256;
    options.sequences = 4;
    options.cache_tokens = 1024;
    REQUIRE(greta_executor_open(model, &options, &executor) == GRETA_OK);
    auto open = sized<greta_session_options>();
    open.executor = executor;
    REQUIRE(greta_session_open(model, &open, &first) == GRETA_OK);
    REQUIRE(greta_session_open(model, &open, &second) == GRETA_OK);
  }
  ~Stage() {
    greta_session_close(first);
    greta_session_close(second);
    greta_executor_close(executor);
  }

  // Tokens of a fixed text, from `place` on. It allocates nothing.
  static std::span<const int32_t> tokens(size_t count, size_t place = 0) {
    static const std::vector<int32_t> text = [] {
      std::vector<int32_t> list(200);
      for (size_t i = 0; i < list.size(); ++i) list[i] = int32_t((3 + 7 * i) % kVocab);
      return list;
    }();
    return std::span(text).subspan(place, count);
  }
  void feed(greta_session* session, size_t count) {
    const auto list = tokens(count);
    REQUIRE(greta_session_eval(session, list.data(), count, GRETA_ROWS_NONE, nullptr) == GRETA_OK);
  }
  greta_status eval(greta_session* session, std::span<const int32_t> list, greta_rows rows) {
    const float* logits = nullptr;
    const greta_status status = greta_session_eval(session, list.data(), list.size(), rows, &logits);
    if (status == GRETA_OK)
      out.add(logits, (rows == GRETA_ROWS_ALL ? list.size() : 1) * kVocab * sizeof(float));
    return status;
  }
  greta_status generate(greta_session* session, std::span<const int32_t> list) {
    auto options = sized<greta_generate_options>();
    options.max_tokens = 8;
    options.ignore_end = 1;
    options.on_token = on_token;
    options.user = &out;
    const char* const stops[] = {"no such text"};
    options.stop_strings = stops;
    options.stop_count = 1;
    auto result = sized<greta_generate_result>();
    const greta_status status = greta_session_generate(session, list.data(), list.size(), &options, &result);
    if (status == GRETA_OK) out.add(&result.generated_tokens, sizeof result.generated_tokens);
    return status;
  }
};

struct Scenario {
  const char* name;
  void (*before)(Stage& stage);        // prepares the call, with all the memory it needs
  greta_status (*call)(Stage& stage);  // the call whose allocations fail
};

const char kGrammar[] = "root ::= part+\npart ::= [0-9]+ \"t\"";

const Scenario kScenarios[] = {
    {"a first eval", [](Stage&) {}, [](Stage& s) { return s.eval(s.first, s.tokens(5), GRETA_ROWS_ALL); }},
    {"an eval of another bucket", [](Stage& s) { s.feed(s.first, 5); },
     [](Stage& s) { return s.eval(s.first, s.tokens(20), GRETA_ROWS_LAST); }},
    {"generate, drawn on the device",
     [](Stage& s) {
       s.feed(s.second, 3);
       REQUIRE(greta_session_temperature(s.first, 0.8f) == GRETA_OK);
     },
     [](Stage& s) { return s.generate(s.first, s.tokens(70)); }},
    {"generate, drawn on the host",
     [](Stage& s) {
       REQUIRE(greta_session_temperature(s.first, 0.8f) == GRETA_OK);
       REQUIRE(greta_session_typical_p(s.first, 0.9f) == GRETA_OK);
       REQUIRE(greta_session_penalties(s.first, 1.1f, 0.1f, 0.1f, 64) == GRETA_OK);
       auto dry = sized<greta_dry_options>();
       dry.multiplier = 0.5f;
       REQUIRE(greta_session_dry(s.first, &dry) == GRETA_OK);
     },
     [](Stage& s) { return s.generate(s.first, s.tokens(6)); }},
    {"generate with mirostat",
     [](Stage& s) {
       REQUIRE(greta_session_temperature(s.first, 1) == GRETA_OK);
       REQUIRE(greta_session_mirostat(s.first, 3, 0.2f) == GRETA_OK);
       REQUIRE(s.generate(s.first, s.tokens(3)) == GRETA_OK);
     },
     [](Stage& s) { return s.generate(s.first, s.tokens(6)); }},
    {"generate within a grammar",
     [](Stage& s) { REQUIRE(greta_session_grammar(s.first, kGrammar, nullptr) == GRETA_OK); },
     [](Stage& s) { return s.generate(s.first, s.tokens(6)); }},
    {"a batch", [](Stage& s) { s.feed(s.first, 66); },
     [](Stage& s) {
       const auto a = s.tokens(3), b = s.tokens(70, 9);
       greta_batch_item items[] = {{s.first, a.data(), a.size(), nullptr},
                                   {s.second, b.data(), b.size(), nullptr}};
       const greta_status status = greta_batch_eval(items, 2);
       for (const greta_batch_item& item : items)
         if (status == GRETA_OK) s.out.add(item.logits, kVocab * sizeof(float));
       return status;
     }},
    {"a batch that generates",
     [](Stage& s) {
       s.feed(s.first, 66);
       REQUIRE(greta_session_temperature(s.first, 0.8f) == GRETA_OK);
       REQUIRE(greta_session_typical_p(s.second, 0.9f) == GRETA_OK);
     },
     [](Stage& s) {
       const auto a = s.tokens(3), b = s.tokens(70, 9);
       auto options = sized<greta_generate_options>();
       options.max_tokens = 4;
       options.on_token = on_token;
       options.user = &s.out;
       greta_generate_item items[2] = {};
       items[0].session = s.first;
       items[0].tokens = a.data();
       items[0].count = a.size();
       items[1].session = s.second;
       items[1].tokens = b.data();
       items[1].count = b.size();
       for (greta_generate_item& item : items) item.options = &options;
       const greta_status status = greta_batch_generate(items, 2);
       return status ? status : items[0].status ? items[0].status : items[1].status;
     }},
    {"save", [](Stage& s) { s.feed(s.first, 70); },
     [](Stage& s) { return greta_session_save(s.first, on_write, &s.out); }},
    {"restore",
     [](Stage& s) {
       s.feed(s.second, 5);
       s.feed(s.first, 70);
       REQUIRE(greta_session_save(s.first, on_write, &s.out) == GRETA_OK);
       s.saved = s.out.bytes;
     },
     [](Stage& s) {
       auto source = sized<greta_source>();
       source.memory = s.saved.data();
       source.memory_bytes = s.saved.size();
       return greta_session_restore(s.second, &source);
     }},
    {"a fork that writes to a page of both", [](Stage& s) { s.feed(s.first, 70); },
     [](Stage& s) {
       greta_session* child = nullptr;
       greta_status status = greta_session_fork(s.first, &child);
       if (status == GRETA_OK) status = s.eval(child, s.tokens(2, 11), GRETA_ROWS_LAST);
       greta_session_close(child);
       return status;
     }},
    {"an eval after a fork, of which both go on",
     [](Stage& s) {
       s.feed(s.first, 70);
       greta_session_close(s.second);
       s.second = nullptr;
       REQUIRE(greta_session_fork(s.first, &s.second) == GRETA_OK);
     },
     [](Stage& s) { return s.eval(s.first, s.tokens(2, 11), GRETA_ROWS_LAST); }},
    {"sampling settings", [](Stage& s) { s.feed(s.first, 6); },
     [](Stage& s) {
       const int32_t token = 9;
       const float bias = -INFINITY;
       greta_status status = greta_session_logit_bias(s.first, &token, &bias, 1);
       if (!status) status = greta_session_sampler_order(s.first, "top_k;temperature;penalties;dry");
       if (!status) status = greta_session_json_schema(s.first, "{\"type\": \"integer\"}");
       if (!status) status = greta_session_grammar(s.first, kGrammar, nullptr);
       static const float row[kVocab] = {1, 2, 3};
       int32_t drawn = -1;
       if (!status) status = greta_session_sample(s.first, row, &drawn);
       if (!status) s.out.add(&drawn, sizeof drawn);
       return status;
     }},
    {"a profile", [](Stage&) {},
     [](Stage& s) {
       const auto list = s.tokens(4);
       const auto stage = [](void* user, const greta_profile_stage* from) {
         static_cast<Output*>(user)->add(from->kernel, strlen(from->kernel));
       };
       return greta_session_profile(s.first, list.data(), list.size(), stage, &s.out);
     }},
};

// Makes the call. If it fails, the sessions must be where they were.
greta_status call(const Scenario& scenario, Stage& stage) {
  stage.out.clear();
  const uint32_t first = greta_session_position(stage.first), second = greta_session_position(stage.second);
  const greta_status status = scenario.call(stage);
  const bool moved =
      greta_session_position(stage.first) != first || greta_session_position(stage.second) != second;
  return status == GRETA_ERROR_MEMORY && moved ? GRETA_STATUS_MAX : status;
}

// Generates with both sessions. The texts are part of the call's results.
greta_status go_on(Stage& stage) {
  const auto next = stage.tokens(2, 31);
  const greta_status status = stage.eval(stage.first, next, GRETA_ROWS_LAST);
  return status ? status : stage.eval(stage.second, next, GRETA_ROWS_LAST);
}

struct Trial {
  uint64_t count = 0;
  greta_status status = GRETA_OK, again = GRETA_OK;
  bool failed = false, same = false;
};

Trial try_with(greta_model* model, const Scenario& scenario, uint64_t fail_at, const std::string& expected) {
  Trial trial;
  Stage stage(model);
  scenario.before(stage);
  {
    const FailingMemory failing(fail_at);
    trial.status = call(scenario, stage);
    trial.count = failing.count();
    trial.failed = failing.failed();
  }
  if (trial.status == GRETA_ERROR_MEMORY) trial.again = call(scenario, stage);
  if (trial.again == GRETA_OK) trial.again = go_on(stage);
  trial.same = stage.out.bytes == expected;
  return trial;
}

std::string undisturbed(greta_model* model, const Scenario& scenario) {
  Stage stage(model);
  scenario.before(stage);
  REQUIRE(call(scenario, stage) == GRETA_OK);
  REQUIRE(go_on(stage) == GRETA_OK);
  return stage.out.bytes;
}

}  // namespace

TEST_CASE("memory: each host allocation of a call may fail, and the call may be made again",
          "[api][memory]") {
  const Scenario& scenario =
      GENERATE(Catch::Generators::from_range(std::begin(kScenarios), std::end(kScenarios)));
  INFO(scenario.name);
  greta_runtime_options options{};
  options.threads = 2;
  Objects o(TinyShape{}, options);
  REQUIRE(o.load() == GRETA_OK);
  const std::string expected = undisturbed(o.model, scenario);  // this also makes what a model makes once
  uint64_t n = 1, wrong = 0, leaked = 0;
  for (;; ++n) {
    const uint64_t before = live_allocations();
    const Trial trial = try_with(o.model, scenario, n, expected);
    leaked += live_allocations() != before;
    if (!trial.failed) break;
    INFO("allocation " << n << ", status " << trial.status << ", then " << trial.again << ": "
                       << greta_error_text());
    const bool right = (trial.status == GRETA_ERROR_MEMORY || trial.status == GRETA_OK) &&
                       trial.again == GRETA_OK && trial.same;
    if (!right && ++wrong < 8) CHECK(right);
  }
  INFO(n - 1 << " allocations");
  CHECK(wrong == 0);
  CHECK(leaked == 0);
  CHECK(n > 1);
}

TEST_CASE("memory: each host allocation of opening may fail, and nothing leaks", "[api][memory]") {
  const TinyModel tiny = make_tiny({});
  auto source = sized<greta_source>();
  source.memory = tiny.file.data();
  source.memory_bytes = tiny.file.size();
  const auto open_all = [&]() -> greta_status {
    greta_runtime* runtime = nullptr;
    greta_file* file = nullptr;
    greta_model* model = nullptr;
    greta_session* session = nullptr;
    auto of_runtime = sized<greta_runtime_options>();
    of_runtime.device = "cpu";
    of_runtime.threads = 2;
    auto of_model = sized<greta_model_options>();
    of_model.source = &source;
    greta_status status = greta_runtime_open(&of_runtime, &runtime);
    if (!status) status = greta_file_open(&source, &file);
    auto plan = sized<greta_memory_plan>();
    if (!status) status = greta_memory_plan_make(runtime, file, nullptr, &plan);
    if (!status) status = greta_model_open(runtime, &of_model, &model);
    if (!status) status = greta_session_open(model, nullptr, &session);
    size_t bytes = 0;
    const greta_message message = {"user", "1t 2t", nullptr};
    if (!status)
      status = greta_tokenizer_chat(greta_model_tokenizer(model), &message, 1, 1, nullptr, 0, &bytes);
    if (!status)
      status =
          greta_tokenizer_encode(greta_model_tokenizer(model), "", 0, GRETA_ENCODE_BOS, nullptr, 0, &bytes);
    greta_session_close(session);
    greta_model_close(model);
    greta_file_close(file);
    greta_runtime_close(runtime);
    return status;
  };
  REQUIRE(open_all() == GRETA_OK);
  uint64_t wrong = 0, leaked = 0;
  for (uint64_t n = 1;; ++n) {
    const uint64_t before = live_allocations();
    greta_status status;
    bool failed;
    {
      const FailingMemory failing(n);
      status = open_all();
      failed = failing.failed();
    }
    if (!failed) break;
    leaked += live_allocations() != before;
    INFO("allocation " << n << ": " << greta_error_text());
    const bool right = status == GRETA_ERROR_MEMORY || status == GRETA_OK;
    if (!right && ++wrong < 8) CHECK(status == GRETA_ERROR_MEMORY);
  }
  CHECK(wrong == 0);
  CHECK(leaked == 0);
}
