// Vectors of texts and saved requests through greta.h: what is refused, what a file says of pooling, and a
// request that goes on from a state.
#include <algorithm>
#include <atomic>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <numeric>
#include <thread>

#include "support/api_requests.h"
#include "support/model_file.h"

using namespace greta::test;
using Catch::Matchers::ContainsSubstring;

namespace {

std::vector<int32_t> some_text(size_t count) {
  std::vector<int32_t> tokens(count);
  for (size_t i = 0; i < count; ++i) tokens[i] = int32_t(3 + i * i % 60);
  return tokens;
}

int append(void* user, const void* bytes, size_t count) {
  static_cast<std::string*>(user)->append(static_cast<const char*>(bytes), count);
  return 0;
}

struct Served {
  Objects o{TinyShape{}, exact_options()};
  greta_service* service = nullptr;
  Served() {
    REQUIRE(o.load() == GRETA_OK);
    auto sizes = sized<greta_executor_options>();
    sizes.context = 256, sizes.sequences = 4, sizes.cache_tokens = 1024;
    auto options = sized<greta_service_options>();
    options.own_thread = 1;
    options.executor = &sizes;
    REQUIRE(greta_service_open(o.model, &options, &service) == GRETA_OK);
  }
  ~Served() { greta_service_close(service); }
  greta_status add(const greta_request_options& options, greta_request** out) const {
    return greta_service_add(service, &options, out);
  }
};

struct Read {
  std::vector<int32_t> tokens;
  std::vector<float> embedding;
};

Read read_to_end(greta_request* request) {
  Read read;
  auto event = sized<greta_request_event>();
  for (;;) {
    REQUIRE(greta_request_next(request, UINT64_MAX, &event) == GRETA_OK);
    if (event.kind == GRETA_EVENT_END) return read;
    if (event.token >= 0) read.tokens.push_back(event.token);
    if (event.kind == GRETA_EVENT_EMBEDDING)
      read.embedding.assign(event.embedding, event.embedding + event.embedding_count);
    else
      CHECK((event.embedding == nullptr && event.embedding_count == 0));
  }
}

// The vector of a text, with a file that names a pooling; ~0: with one that names none.
greta_status embed_with(uint32_t named, greta_pooling pooling, std::vector<float>* out) {
  ModelFile file = read_model("llama-plain");
  if (named != ~0u) file.set_u32("llama.pooling_type", named);
  TinyModel tiny;
  tiny.file = write_model(file);
  Objects o(std::move(tiny));
  REQUIRE(o.load() == GRETA_OK);
  auto options = sized<greta_embed_options>();
  options.pooling = pooling;
  auto info = sized<greta_model_info>();
  REQUIRE(greta_model_describe(o.model, &info) == GRETA_OK);
  const int32_t text[] = {5, 6, 7, 8, 9, 10};
  const float* embedding = nullptr;
  const greta_status status = greta_session_embed(o.session, text, 6, &options, &embedding);
  if (!status) out->assign(embedding, embedding + info.width);
  return status;
}

// A session with room for 256 tokens, and a cache of float32.
greta_session* open_session(greta_model* model, uint32_t step_tokens) {
  auto sizes = sized<greta_executor_options>();
  sizes.context = 256, sizes.step_tokens = step_tokens;
  sizes.key_type = sizes.value_type = GRETA_CACHE_F32;
  auto open = sized<greta_session_options>();
  open.private_executor = &sizes;
  greta_session* session = nullptr;
  REQUIRE(greta_session_open(model, &open, &session) == GRETA_OK);
  return session;
}

double length_of(std::span<const float> vector) {
  double squares = 0;
  for (const float x : vector) squares += double(x) * x;
  return std::sqrt(squares);
}

// A session takes the state, and saves the same bytes.
void check_session_takes(greta_model* model, const greta_source& source, const std::string& state) {
  auto sizes = sized<greta_executor_options>();
  sizes.context = 256;
  auto open = sized<greta_session_options>();
  open.private_executor = &sizes;
  greta_session* session = nullptr;
  REQUIRE(greta_session_open(model, &open, &session) == GRETA_OK);
  REQUIRE(greta_session_restore(session, &source) == GRETA_OK);
  CHECK(greta_session_position(session) == 70 + 19);
  std::string again;
  REQUIRE(greta_session_save(session, append, &again) == GRETA_OK);
  CHECK(again == state);
  greta_session_close(session);
}

// Adds a request that begins with a state of 89 tokens. Gives its answer, where it is taken.
Read read_from_state(const Served& s, const greta_source& source, const std::vector<int32_t>& tokens,
                     greta_status status, const char* words) {
  auto options = ask(tokens, 1);
  options.state = &source;
  greta_request* request = nullptr;
  CHECK(s.add(options, &request) == status);
  if (words) CHECK_THAT(greta_error_text(), ContainsSubstring(words));
  if (status) return {};
  const Read read = read_to_end(request);
  auto result = sized<greta_request_result>();
  REQUIRE(greta_request_finish(request, &result) == GRETA_OK);
  CHECK(result.cached_tokens == 88);  // all but the last, for its logits
  greta_request_close(request);
  return read;
}

}  // namespace

TEST_CASE("embed: what is wrong is refused", "[api][embed]") {
  Served s;
  const std::vector<int32_t> text = some_text(5);
  const float* vector = nullptr;
  auto how = sized<greta_embed_options>();
  const auto refused = [&](greta_status status) {
    CHECK(greta_session_embed(s.o.session, text.data(), text.size(), &how, &vector) == status);
    auto options = ask(text, 1);
    options.embed = &how;
    greta_request* request = nullptr;
    CHECK(s.add(options, &request) == status);
    how = sized<greta_embed_options>();
  };
  CHECK(greta_session_embed(nullptr, text.data(), 1, nullptr, &vector) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_session_embed(s.o.session, nullptr, 1, nullptr, &vector) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_session_embed(s.o.session, text.data(), 0, nullptr, &vector) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_session_embed(s.o.session, text.data(), 1, nullptr, nullptr) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_session_embed(s.o.session, text.data(), 100'000, nullptr, &vector) == GRETA_ERROR_FULL);
  how.pooling = greta_pooling(5);
  refused(GRETA_ERROR_ARGUMENT);
  how.raw = 2;
  refused(GRETA_ERROR_ARGUMENT);
  how.reserved = 1;
  refused(GRETA_ERROR_UNSUPPORTED);
  how.struct_size = 3;
  refused(GRETA_ERROR_ARGUMENT);
  CHECK(greta_session_position(s.o.session) == 0);
  CHECK(vector == nullptr);
}

TEST_CASE("embed: the file says how to pool, unless the caller does", "[api][embed]") {
  std::vector<float> mean, last, named, unnamed;
  REQUIRE(embed_with(~0u, GRETA_POOLING_MEAN, &mean) == GRETA_OK);
  REQUIRE(embed_with(~0u, GRETA_POOLING_LAST, &last) == GRETA_OK);
  CHECK(mean != last);
  REQUIRE(embed_with(~0u, GRETA_POOLING_DEFAULT, &unnamed) == GRETA_OK);
  CHECK(unnamed == mean);
  REQUIRE(embed_with(3, GRETA_POOLING_DEFAULT, &named) == GRETA_OK);
  CHECK(named == last);
  REQUIRE(embed_with(3, GRETA_POOLING_MEAN, &named) == GRETA_OK);
  CHECK(named == mean);
  CHECK(embed_with(4, GRETA_POOLING_DEFAULT, &named) == GRETA_ERROR_UNSUPPORTED);
  CHECK_THAT(greta_error_text(), ContainsSubstring("llama.pooling_type is 4"));
}

TEST_CASE("embed: a request's vector is that of a session, of messages too", "[api][embed][serve]") {
  Served s;
  const std::vector<int32_t> text = some_text(70);
  auto how = sized<greta_embed_options>();
  how.raw = 1;
  auto options = ask(text, 5);
  options.embed = &how;
  greta_request* request = nullptr;
  REQUIRE(s.add(options, &request) == GRETA_OK);
  const Read read = read_to_end(request);
  CHECK(read.tokens.empty());
  greta_request_close(request);
  const float* alone = nullptr;
  REQUIRE(greta_session_embed(s.o.session, text.data(), text.size(), &how, &alone) == GRETA_OK);
  CHECK(read.embedding == std::vector<float>(alone, alone + 48));

  const greta_message message = {"user", "1t", nullptr};
  options.tokens = nullptr, options.token_count = 0;
  options.messages = &message, options.message_count = 1;
  REQUIRE(s.add(options, &request) == GRETA_OK);
  const Read other = read_to_end(request);
  CHECK(other.embedding.size() == 48);
  CHECK(other.embedding != read.embedding);
  greta_request_close(request);
}

// The vectors of a golden's tokens, in steps of different sizes. `made` makes value i of `wanted` of them.
template <class Made>
static void check_vectors(const ModelFile& golden, const std::vector<float>& wanted, double limit,
                          Made made) {
  const auto tokens = golden.numbers<int32_t>("golden.tokens");
  TinyModel tiny;
  tiny.file = write_model(golden);
  Objects o(std::move(tiny), exact_options());
  REQUIRE(o.load() == GRETA_OK);
  auto how = sized<greta_embed_options>();
  how.pooling = GRETA_POOLING_NONE, how.raw = 1;
  for (const uint32_t step : {1u, 8u, 64u}) {
    greta_session* session = open_session(o.model, step);
    const float* states = nullptr;
    REQUIRE(greta_session_embed(session, tokens.data(), tokens.size(), &how, &states) == GRETA_OK);
    double error = 0, all = 0;
    for (size_t i = 0; i < wanted.size(); ++i) {
      error += std::pow(made(states, i) - wanted[i], 2);
      all += std::pow(double(wanted[i]), 2);
    }
    CHECK(error < limit * all);
    greta_session_close(session);
  }
}

TEST_CASE("embed: without pooling it gives the hidden states of the reference", "[api][embed]") {
  const char* name = GENERATE("llama-plain", "gemma2-head24", "gpt-oss-f32", "deepseek2-lite");
  INFO(name);
  const auto wanted = read_model(std::string("../hidden/") + name).numbers<float>("golden.hidden");
  check_vectors(read_model(name), wanted, 1e-9,
                [](const float* states, size_t i) { return double(states[i]); });
}

// The logits of the reference are products of the output's weights with the hidden states.
TEST_CASE("embed: hidden states of models with states make the logits of the reference", "[api][embed]") {
  const char* name =
      GENERATE("qwen35-converted", "qwen35moe-converted", "qwen3next-converted", "lfm2-converted",
               "lfm2moe-converted", "mamba-converted", "mamba2-converted-lone", "nemotron_h-converted",
               "nemotron_h_moe-converted", "jamba-converted");
  INFO(name);
  ModelFile golden = read_model(name);
  const auto is_output = [](const ModelFile::Tensor& tensor) { return tensor.name == "output.weight"; };
  const bool tied = std::ranges::none_of(golden.tensors, is_output);
  const ModelFile::Tensor& output = golden.tensor(tied ? "token_embd.weight" : "output.weight");
  const size_t width = output.ne[0], vocab = output.ne[1];
  const float* weights = reinterpret_cast<const float*>(output.data.data());
  check_vectors(golden, golden.numbers<float>("golden.logits"), 1e-8, [=](const float* states, size_t i) {
    const float* weight = weights + i % vocab * width;
    return std::inner_product(weight, weight + width, states + i / vocab * width, 0.0);
  });
}

TEST_CASE("embed: without pooling a request gives what a session gives, each vector of length 1",
          "[api][embed][serve]") {
  Served s;
  const std::vector<int32_t> text = some_text(70);
  auto how = sized<greta_embed_options>();
  how.pooling = GRETA_POOLING_NONE;
  auto options = ask(text, 5);
  options.embed = &how;
  greta_request* request = nullptr;
  REQUIRE(s.add(options, &request) == GRETA_OK);
  const Read read = read_to_end(request);
  greta_request_close(request);
  const float* alone = nullptr;
  REQUIRE(greta_session_embed(s.o.session, text.data(), text.size(), &how, &alone) == GRETA_OK);
  REQUIRE(read.embedding == std::vector<float>(alone, alone + 70 * 48));
  for (size_t at = 0; at < 70 * 48; at += 48)
    CHECK(std::abs(length_of(std::span(read.embedding).subspan(at, 48)) - 1) < 1e-6);

  how.pooling = GRETA_POOLING_LAST;
  const std::vector<float> last(read.embedding.end() - 48, read.embedding.end());
  REQUIRE(greta_session_truncate(s.o.session, 0) == GRETA_OK);
  REQUIRE(greta_session_embed(s.o.session, text.data(), text.size(), &how, &alone) == GRETA_OK);
  CHECK(std::vector<float>(alone, alone + 48) == last);
}

// Another thread stops the reading of a prompt between two steps.
TEST_CASE("cancel: eval and embed keep the tokens that were read", "[api][embed]") {
  Objects o(TinyShape{}, exact_options());
  REQUIRE(o.load() == GRETA_OK);
  greta_session* session = open_session(o.model, 1);
  const std::vector<int32_t> text = some_text(250);
  const float *none = nullptr, *found = none;
  const auto read = [&](bool embeds) {
    const size_t count = text.size();
    return embeds ? greta_session_embed(session, text.data(), count, nullptr, &found)
                  : greta_session_eval(session, text.data(), count, GRETA_ROWS_ALL, &found);
  };
  for (const bool embeds : {false, true}) {
    std::atomic<bool> stops = true;
    std::thread other([&] {
      while (stops) greta_session_cancel(session);
    });
    greta_status status = GRETA_OK;
    for (int round = 0; round < 100 && status == GRETA_OK; ++round) {
      REQUIRE(greta_session_truncate(session, 0) == GRETA_OK);
      found = none;
      status = read(embeds);
    }
    stops = false;
    other.join();
    REQUIRE(status == GRETA_ERROR_CANCELLED);
    CHECK_THAT(greta_error_text(), ContainsSubstring("of 250 tokens"));
    CHECK(found == none);
    const uint32_t held = greta_session_position(session);
    REQUIRE((held > 0 && held < 250));
    CHECK(std::equal(text.begin(), text.begin() + held, greta_session_tokens(session)));
    // What follows is as if no more had been asked for.
    REQUIRE(greta_session_eval(session, text.data(), 1, GRETA_ROWS_LAST, &found) == GRETA_OK);
    const std::vector<float> after(found, found + 64);
    REQUIRE(greta_session_truncate(session, 0) == GRETA_OK);
    REQUIRE(greta_session_eval(session, text.data(), held, GRETA_ROWS_NONE, nullptr) == GRETA_OK);
    REQUIRE(greta_session_eval(session, text.data(), 1, GRETA_ROWS_LAST, &found) == GRETA_OK);
    CHECK(std::vector<float>(found, found + 64) == after);
  }
  greta_session_close(session);
}

TEST_CASE("request state: it is written after the end, and what goes wrong is a status",
          "[api][serve][state]") {
  Served s;
  const std::vector<int32_t> text = some_text(70);
  auto options = ask(text, 20);
  greta_request* request = nullptr;
  std::string state;
  CHECK(greta_request_save(nullptr, append, &state) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_request_state_bytes(nullptr) == 0);
  REQUIRE(s.add(options, &request) == GRETA_OK);
  const std::vector<int32_t> answer = read_to_end(request).tokens;
  CHECK(greta_request_save(request, append, &state) == GRETA_ERROR_ARGUMENT);
  CHECK_THAT(greta_error_text(), ContainsSubstring("keep_state"));
  greta_request_close(request);

  options.keep_state = 1;
  REQUIRE(s.add(options, &request) == GRETA_OK);
  CHECK(greta_request_save(request, append, &state) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_request_state_bytes(request) == 0);
  CHECK(read_to_end(request).tokens == answer);
  CHECK(greta_request_save(request, nullptr, nullptr) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_request_save(request, [](void*, const void*, size_t) { return 1; }, nullptr) ==
        GRETA_ERROR_CANCELLED);
  CHECK(greta_request_save(request, [](void*, const void*, size_t) -> int { throw 1; }, nullptr) ==
        GRETA_ERROR_ARGUMENT);
  CHECK(state.empty());
  REQUIRE(greta_request_save(request, append, &state) == GRETA_OK);
  CHECK(state.size() == greta_request_state_bytes(request));
  greta_request_close(request);

  auto source = sized<greta_source>();
  source.memory = state.data(), source.memory_bytes = state.size();
  check_session_takes(s.o.model, source, state);

  // And so does another request, whose prompt begins with its tokens.
  std::vector<int32_t> more = text;
  more.insert(more.end(), answer.begin(), answer.begin() + 19);
  const auto from_state = [&](const std::vector<int32_t>& tokens, greta_status status, const char* words) {
    return read_from_state(s, source, tokens, status, words);
  };
  CHECK(from_state(more, GRETA_OK, nullptr).tokens == std::vector<int32_t>{answer[19]});
  from_state(text, GRETA_ERROR_ARGUMENT, "only the first 70 are");
  more[3] ^= 1;
  from_state(more, GRETA_ERROR_ARGUMENT, "only the first 3 are");
  more[3] ^= 1;
  state[state.size() / 2] ^= 1;
  from_state(more, GRETA_ERROR_FILE, "checksum");
  source.memory_bytes /= 2;
  from_state(more, GRETA_ERROR_FILE, "state");
}
