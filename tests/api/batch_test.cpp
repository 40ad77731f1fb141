// greta_batch_generate: every session writes what it would write alone, and what happens to one changes
// nothing for the others.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/api_objects.h"
#include "support/test_data.h"

using namespace greta::test;
using Catch::Matchers::ContainsSubstring;

namespace {

// A session with its request, and all that a caller sees of the answer.
struct Writer {
  greta_session* session = nullptr;
  std::vector<int32_t> prompt;
  greta_generate_options options = sized<greta_generate_options>();
  greta_generate_result result = sized<greta_generate_result>();
  std::string text;
  std::vector<int32_t> tokens;
  int cancel_at = -1;                  // the token at which it cancels `cancelled`
  greta_session* cancelled = nullptr;  // itself or another
  bool throws = false;                 // at that token, instead

  explicit Writer(std::vector<int32_t> from, uint32_t max_tokens) : prompt(std::move(from)) {
    options.max_tokens = max_tokens;
    options.ignore_end = 1;
    options.on_token = [](void* user, int32_t token, const char* text, size_t bytes) {
      return static_cast<Writer*>(user)->take(token, text, bytes);
    };
  }
  int take(int32_t token, const char* more, size_t bytes) {
    text.append(more, bytes);
    if (token >= 0) tokens.push_back(token);
    if (token >= 0 && int(tokens.size()) == cancel_at) {
      if (throws) throw std::runtime_error("a reason of the caller");
      greta_session_cancel(cancelled);
    }
    return 0;
  }
  greta_generate_item item() {
    options.user = this;
    greta_generate_item item = {};
    item.session = session;
    item.tokens = prompt.data();
    item.count = prompt.size();
    item.options = &options;
    item.result = &result;
    return item;
  }
  greta_status alone() {
    options.user = this;
    return greta_session_generate(session, prompt.data(), prompt.size(), &options, &result);
  }
};

// Sessions of one executor of a model.
struct Sessions {
  greta_runtime* runtime = nullptr;
  greta_model* model = nullptr;
  greta_executor* executor = nullptr;
  std::vector<greta_session*> all;

  Sessions(const greta_source& source, uint32_t count, const char* device, bool exact,
           uint32_t cache_tokens = 0, uint32_t step_tokens = 0) {
    auto on = sized<greta_runtime_options>();
    on.device = device;
    on.exact = exact;
    REQUIRE(greta_runtime_open(&on, &runtime) == GRETA_OK);
    auto load = sized<greta_model_options>();
    load.source = &source;
    REQUIRE(greta_model_open(runtime, &load, &model) == GRETA_OK);
    auto sizes = sized<greta_executor_options>();
    sizes.context = 256;
    sizes.sequences = count;
    sizes.cache_tokens = cache_tokens ? cache_tokens : 256 * count;
    sizes.step_tokens = step_tokens;
    REQUIRE(greta_executor_open(model, &sizes, &executor) == GRETA_OK);
    auto shared = sized<greta_session_options>();
    shared.executor = executor;
    all.resize(count);
    for (greta_session*& session : all) REQUIRE(greta_session_open(model, &shared, &session) == GRETA_OK);
  }
  ~Sessions() {
    for (greta_session* session : all) greta_session_close(session);
    greta_executor_close(executor);
    greta_model_close(model);
    greta_runtime_close(runtime);
  }
  Sessions(const Sessions&) = delete;
  Sessions& operator=(const Sessions&) = delete;
};

std::vector<int32_t> words(size_t count, int32_t first, uint32_t vocab) {
  std::vector<int32_t> tokens = {1};
  for (size_t i = 1; i < count; ++i)
    tokens.push_back(3 + int32_t((size_t(first) * 31 + i * 7) % (vocab - 3)));
  return tokens;
}

std::vector<greta_status> run(std::vector<Writer>& writers) {
  std::vector<greta_generate_item> items;
  for (Writer& writer : writers) items.push_back(writer.item());
  REQUIRE(greta_batch_generate(items.data(), items.size()) == GRETA_OK);
  std::vector<greta_status> statuses;
  for (const greta_generate_item& item : items) {
    statuses.push_back(item.status);
    CHECK((strlen(item.error) == 0) == (item.status == GRETA_OK));
  }
  return statuses;
}

void check_same(const Writer& got, const Writer& want) {
  CHECK(got.tokens == want.tokens);
  CHECK(got.text == want.text);
  CHECK(got.result.reason == want.result.reason);
  CHECK(got.result.stop_string == want.result.stop_string);
  CHECK(got.result.generated_tokens == want.result.generated_tokens);
  CHECK(got.result.prompt_tokens == want.result.prompt_tokens);
}

const char* kStop[] = {"e"};
const char* kTwoStops[] = {"zzzz", "wa"};

// Eight requests of all kinds.
std::vector<Writer> requests(const Sessions& sessions, uint32_t vocab) {
  std::vector<Writer> list;
  const uint32_t lengths[] = {1, 70, 3, 100, 12, 1, 30, 5}, limits[] = {20, 5, 1, 40, 0, 30, 12, 25};
  for (uint32_t i = 0; i < 8; ++i) {
    list.emplace_back(words(lengths[i], int32_t(i), vocab), limits[i]);
    list[i].session = sessions.all[i];
  }
  list[2].options.ignore_end = 0;
  list[5].options.stop_strings = kStop;
  list[5].options.stop_count = 1;
  list[7].options.stop_strings = kTwoStops;
  list[7].options.stop_count = 2;
  list[3].cancel_at = 9;  // cancels itself in the middle
  list[3].cancelled = list[3].session;
  return list;
}

// Settings that the device draws by, and two that need the host.
void set_sampling(const Sessions& sessions, bool host) {
  for (uint32_t i = 0; i < sessions.all.size(); ++i) {
    greta_session* session = sessions.all[i];
    REQUIRE(greta_session_sampling_clear(session) == GRETA_OK);
    REQUIRE(greta_session_seed(session, 100 + i) == GRETA_OK);
    if (i % 4 == 1) REQUIRE(greta_session_temperature(session, 0.8f) == GRETA_OK);
    if (i % 4 == 2) {
      REQUIRE(greta_session_temperature(session, 1.2f) == GRETA_OK);
      REQUIRE(greta_session_top_k(session, 20) == GRETA_OK);
      REQUIRE(greta_session_penalties(session, 1.3f, 0, 0, 32) == GRETA_OK);
    }
    if (i % 4 == 3) {
      REQUIRE(greta_session_temperature(session, 1) == GRETA_OK);
      REQUIRE(greta_session_top_p(session, 0.9f) == GRETA_OK);
      REQUIRE(greta_session_min_p(session, 0.02f) == GRETA_OK);
      if (host) REQUIRE(greta_session_typical_p(session, 0.9f) == GRETA_OK);
    }
  }
}

void expect_equal_to_single(const greta_source& source, uint32_t vocab, const char* device,
                            uint32_t step_tokens, bool host) {
  Sessions sessions(source, 8, device, true, 0, step_tokens);
  set_sampling(sessions, host);
  std::vector<Writer> alone = requests(sessions, vocab), together = requests(sessions, vocab);
  std::vector<uint32_t> positions;
  for (Writer& writer : alone) {
    REQUIRE(writer.alone() == GRETA_OK);
    positions.push_back(greta_session_position(writer.session));
    REQUIRE(greta_session_truncate(writer.session, 0) == GRETA_OK);
  }
  CHECK(alone[3].result.reason == GRETA_STOP_CANCELLED);
  for (const greta_status status : run(together)) CHECK(status == GRETA_OK);
  for (size_t i = 0; i < alone.size(); ++i) {
    INFO("session " << i);
    check_same(together[i], alone[i]);
    CHECK(greta_session_position(together[i].session) == positions[i]);
  }
}

}  // namespace

TEST_CASE("batch: eight sessions write what each would write alone", "[api][batch]") {
  const std::string path = (test_data() / "models/stories260K-q8_0.gguf").string();
  auto source = sized<greta_source>();
  source.path = path.c_str();
  expect_equal_to_single(source, 512, "cpu", 0, false);
  expect_equal_to_single(source, 512, "cpu", 4, true);  // steps that take half of the texts
}

TEST_CASE("batch: on the device under test, too", "[api][batch]") {
  const Objects o;
  expect_equal_to_single(o.source, o.tiny.shape.vocab, test_device(), 0, false);
  expect_equal_to_single(o.source, o.tiny.shape.vocab, test_device(), 16, true);
}

TEST_CASE("batch: an item that fails or is cancelled changes nothing for the others", "[api][batch]") {
  const Objects o;
  const uint32_t vocab = o.tiny.shape.vocab;
  Sessions sessions(o.source, 4, test_device(), true);
  const auto fresh = [&] {
    std::vector<Writer> list;
    for (uint32_t i = 0; i < 4; ++i) {
      list.emplace_back(words(3 + i, int32_t(i), vocab), 12);
      list[i].session = sessions.all[i];
    }
    return list;
  };
  const auto reset = [&] {
    for (greta_session* session : sessions.all) REQUIRE(greta_session_truncate(session, 0) == GRETA_OK);
  };
  std::vector<Writer> alone = fresh();
  for (Writer& writer : alone) REQUIRE(writer.alone() == GRETA_OK);
  reset();
  std::vector<Writer> list = fresh();
  std::vector<greta_status> want(4, GRETA_OK);
  uint32_t position = 0;  // of session 1 afterwards
  SECTION("a callback throws") {
    list[1].cancel_at = 5;
    list[1].throws = true;
    want[1] = GRETA_ERROR_ARGUMENT;
  }
  SECTION("a token that is not in the vocabulary") {
    list[1].prompt[1] = int32_t(vocab);
    want[1] = GRETA_ERROR_ARGUMENT;
  }
  SECTION("a prompt that is longer than the context") {
    list[1].prompt = words(257, 1, vocab);
    want[1] = GRETA_ERROR_FULL;
  }
  SECTION("a stop string that is no text") {
    static const char* const kBad[] = {""};
    list[1].options.stop_strings = kBad;
    list[1].options.stop_count = 1;
    want[1] = GRETA_ERROR_ARGUMENT;
  }
  SECTION("another item cancels it") {
    list[0].cancel_at = 4;
    list[0].cancelled = list[1].session;
    position = 4 + 3;
  }
  CHECK(run(list) == want);
  for (const size_t i : {0, 2, 3}) check_same(list[i], alone[i]);
  CHECK(greta_session_position(sessions.all[1]) == position);
  if (position) {
    CHECK(list[1].result.reason == GRETA_STOP_CANCELLED);
    CHECK(list[1].tokens.size() == 4);
  }
  reset();
  list = fresh();
  CHECK(run(list) == std::vector<greta_status>(4, GRETA_OK));
  for (size_t i = 0; i < 4; ++i) check_same(list[i], alone[i]);
}

TEST_CASE("batch: a pool without room ends the texts that need it", "[api][batch]") {
  const Objects o;
  Sessions sessions(o.source, 3, test_device(), true, 4 * 64);
  std::vector<Writer> list;
  for (uint32_t i = 0; i < 3; ++i) {
    list.emplace_back(words(i == 2 ? 130 : 60, int32_t(i), o.tiny.shape.vocab), 100);
    list[i].session = sessions.all[i];
  }
  // The first two prompts take a page each and the third, of three pages, finds two.
  CHECK(run(list) == std::vector<greta_status>{GRETA_OK, GRETA_OK, GRETA_ERROR_FULL});
  CHECK(greta_session_position(sessions.all[2]) == 0);
  for (size_t i = 0; i < 2; ++i) {
    CHECK(list[i].result.reason == (i == 2 ? GRETA_STOP_LENGTH : GRETA_STOP_CONTEXT));
    CHECK(list[i].result.generated_tokens == 2 * 64 - 60 + 1);
    CHECK(greta_session_position(sessions.all[i]) == 2 * 64);
  }
}

TEST_CASE("batch: what makes no batch is refused", "[api][batch]") {
  Objects o;
  REQUIRE(o.load() == GRETA_OK);
  Sessions sessions(o.source, 2, test_device(), true);
  const int32_t tokens[] = {1, 2};
  greta_generate_item items[2] = {};
  for (uint32_t i = 0; i < 2; ++i) {
    items[i].session = sessions.all[i];
    items[i].tokens = tokens;
    items[i].count = 2;
  }
  auto wrong = sized<greta_generate_options>();
  const auto refused = [&](size_t count, const char* words) {
    CHECK(greta_batch_generate(items, count) == GRETA_ERROR_ARGUMENT);
    CHECK_THAT(greta_error_text(), ContainsSubstring(words));
    for (greta_session* session : sessions.all) CHECK(greta_session_position(session) == 0);
  };
  SECTION("no items") { refused(0, "an empty batch"); }
  SECTION("more than an executor has") { refused(257, "at most 256 sessions"); }
  SECTION("a session twice") {
    items[1].session = items[0].session;
    refused(2, "items 0 and 1 are one session");
  }
  SECTION("a session of another executor") {
    items[1].session = o.session;
    refused(2, "item 1 belongs to another executor");
  }
  SECTION("no session") {
    items[1].session = nullptr;
    refused(2, "session is NULL");
  }
  SECTION("no tokens") {
    items[1].tokens = nullptr;
    refused(2, "tokens is NULL");
  }
  SECTION("an option that is no flag") {
    wrong.ignore_end = 2;
    items[1].options = &wrong;
    refused(2, "item 1: ignore_end");
  }
  CHECK(greta_batch_generate(nullptr, 1) == GRETA_ERROR_ARGUMENT);
}

TEST_CASE("batch: 256 sessions step together", "[api][batch]") {
  const Objects o;
  Sessions sessions(o.source, 256, test_device(), true, 256 * 64);
  std::vector<Writer> list;
  for (uint32_t i = 0; i < 256; ++i) {
    list.emplace_back(words(1 + i % 5, int32_t(i % 7), o.tiny.shape.vocab), 3);
    list[i].session = sessions.all[i];
  }
  CHECK(run(list) == std::vector<greta_status>(256, GRETA_OK));
  for (uint32_t i = 0; i + 35 < 256; ++i) CHECK(list[i].tokens == list[i + 35].tokens);
  greta_session* more = nullptr;
  auto shared = sized<greta_session_options>();
  shared.executor = sessions.executor;
  CHECK(greta_session_open(sessions.model, &shared, &more) == GRETA_ERROR_FULL);
}
