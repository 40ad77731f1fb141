// Mistakes of a caller: wrong sizes of structs, counts and flags, NULL beside a count, callbacks that throw.
// Each is refused by a status, nothing is read beyond the caller's memory, and the objects still work.
#include <sys/mman.h>
#include <unistd.h>

#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "support/api_objects.h"

using namespace greta::test;
using Catch::Matchers::ContainsSubstring;

namespace {

// Memory that ends at a page which must not be touched.
class Edge {
 public:
  Edge() : page_(size_t(sysconf(_SC_PAGESIZE))) {
    base_ = static_cast<char*>(
        mmap(nullptr, 2 * page_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    REQUIRE(base_ != MAP_FAILED);
    REQUIRE(mprotect(base_ + page_, page_, PROT_NONE) == 0);
  }
  ~Edge() { munmap(base_, 2 * page_); }
  template <class T>
  T* last(size_t count = 1) const {
    return reinterpret_cast<T*>(base_ + page_ - count * sizeof(T));
  }

 private:
  size_t page_;
  char* base_;
};

// Makes a call with a struct of a wrong size that lies at the edge. The last two sizes end within a field.
template <class Struct, class Call>
void refuses_sizes(const char* what, Call call) {
  const Edge edge;
  Struct* const given = edge.last<Struct>();
  const uint32_t whole = sizeof(Struct), half = alignof(Struct) / 2;
  for (const uint32_t size : {0u, 1u, 3u, 4097u, 0x7fffffffu, 0xffffffffu, whole - 1, whole - half}) {
    *given = {};
    given->struct_size = size;
    INFO(what << " of " << size << " bytes");
    CHECK(call(given) == GRETA_ERROR_ARGUMENT);
    CHECK_THAT(greta_error_text(), ContainsSubstring("struct_size"));
    CHECK(given->struct_size == size);
  }
}

const int32_t kPrompt[] = {1, 5, 9};

}  // namespace

TEST_CASE("misuse: a wild struct_size is an argument error, and is not read to its end", "[api][misuse]") {
  Objects o;
  REQUIRE(o.load() == GRETA_OK);
  greta_runtime* runtime = nullptr;
  greta_file* file = nullptr;
  greta_model* model = nullptr;
  greta_executor* executor = nullptr;
  greta_session* session = nullptr;
  greta_chat* chat = nullptr;
  uint32_t failed = 0;
  refuses_sizes<greta_runtime_options>("runtime", [&](auto* s) { return greta_runtime_open(s, &runtime); });
  refuses_sizes<greta_source>("source", [&](auto* s) { return greta_file_open(s, &file); });
  refuses_sizes<greta_source>("saved session", [&](auto* s) { return greta_session_restore(o.session, s); });
  refuses_sizes<greta_model_options>("model",
                                     [&](auto* s) { return greta_model_open(o.runtime, s, &model); });
  refuses_sizes<greta_executor_options>("executor",
                                        [&](auto* s) { return greta_executor_open(o.model, s, &executor); });
  refuses_sizes<greta_session_options>("session",
                                       [&](auto* s) { return greta_session_open(o.model, s, &session); });
  refuses_sizes<greta_dry_options>("dry", [&](auto* s) { return greta_session_dry(o.session, s); });
  refuses_sizes<greta_generate_options>(
      "generate", [&](auto* s) { return greta_session_generate(o.session, kPrompt, 3, s, nullptr); });
  refuses_sizes<greta_chat_options>("chat", [&](auto* s) { return greta_chat_open(o.session, s, &chat); });
  refuses_sizes<greta_selftest_options>(
      "self-test", [&](auto* s) { return greta_runtime_selftest(o.runtime, s, &failed); });
  const auto ignore_device = [](void*, const greta_device_info*) { return 0; };
  refuses_sizes<greta_runtime_options>(
      "list of devices", [&](auto* s) { return greta_device_list(s, ignore_device, nullptr); });
  refuses_sizes<greta_device_info>("device", [&](auto* s) { return greta_device_describe(0, s); });
  refuses_sizes<greta_device_info>("device of a runtime",
                                   [&](auto* s) { return greta_runtime_describe(o.runtime, s); });
  refuses_sizes<greta_tensor_info>("tensor", [&](auto* s) { return greta_file_tensor(o.file, 0, s); });
  refuses_sizes<greta_memory_plan>(
      "plan", [&](auto* s) { return greta_memory_plan_make(o.runtime, o.file, nullptr, s); });
  refuses_sizes<greta_model_info>("model's info", [&](auto* s) { return greta_model_describe(o.model, s); });
  refuses_sizes<greta_sampling_defaults>("sampling",
                                         [&](auto* s) { return greta_model_sampling(o.model, s); });
  refuses_sizes<greta_weights_check>("check",
                                     [&](auto* s) { return greta_file_check_weights(o.file, 0, s); });
  auto options = sized<greta_generate_options>();
  options.max_tokens = 1;
  refuses_sizes<greta_generate_result>(
      "result", [&](auto* s) { return greta_session_generate(o.session, kPrompt, 3, &options, s); });
  CHECK(greta_session_position(o.session) == 0);  // the mistake was found before anything was generated
  REQUIRE(greta_chat_open(o.session, nullptr, &chat) == GRETA_OK);
  refuses_sizes<greta_chat_answer_options>("answer",
                                           [&](auto* s) { return greta_chat_answer(chat, s, nullptr); });
  refuses_sizes<greta_chat_result>("answer's result",
                                   [&](auto* s) { return greta_chat_answer(chat, nullptr, s); });
  greta_chat_close(chat);
}

TEST_CASE("misuse: a wild struct_size is an argument error for services, too", "[api][misuse][serve]") {
  Objects o;
  REQUIRE(o.load() == GRETA_OK);
  greta_service* service = nullptr;
  greta_request* request = nullptr;
  refuses_sizes<greta_service_options>("service",
                                       [&](auto* s) { return greta_service_open(o.model, s, &service); });
  REQUIRE(greta_service_open(o.model, nullptr, &service) == GRETA_OK);
  refuses_sizes<greta_service_info>("service's info",
                                    [&](auto* s) { return greta_service_describe(service, s); });
  auto ask = sized<greta_request_options>();
  ask.tokens = kPrompt;
  ask.token_count = std::size(kPrompt);
  refuses_sizes<greta_request_options>("request",
                                       [&](auto* s) { return greta_service_add(service, s, &request); });
  refuses_sizes<greta_sampling_options>("request's sampling", [&](auto* s) {
    ask.sampling = s;
    return greta_service_add(service, &ask, &request);
  });
  ask.sampling = nullptr;
  refuses_sizes<greta_embed_options>("request's embedding", [&](auto* s) {
    ask.embed = s;
    return greta_service_add(service, &ask, &request);
  });
  ask.embed = nullptr;
  refuses_sizes<greta_source>("request's state", [&](auto* s) {
    ask.state = s;
    return greta_service_add(service, &ask, &request);
  });
  ask.state = nullptr;
  REQUIRE(greta_service_add(service, &ask, &request) == GRETA_OK);
  refuses_sizes<greta_request_event>("event", [&](auto* s) { return greta_request_next(request, 0, s); });
  refuses_sizes<greta_request_result>("request's result",
                                      [&](auto* s) { return greta_request_finish(request, s); });
  greta_request_close(request);
  greta_service_close(service);
}

TEST_CASE("misuse: more tokens than fit are refused before they are read", "[api][misuse]") {
  Objects o;
  REQUIRE(o.load() == GRETA_OK);
  const Edge edge;
  const auto* const tokens = edge.last<int32_t>(3);
  const float* logits = nullptr;
  for (const size_t count : {size_t(513), size_t(1) << 40, ~size_t(0)}) {
    INFO(count);
    CHECK(greta_session_eval(o.session, tokens, count, GRETA_ROWS_LAST, &logits) == GRETA_ERROR_FULL);
    CHECK(greta_session_generate(o.session, tokens, count, nullptr, nullptr) == GRETA_ERROR_FULL);
    CHECK(greta_session_embed(o.session, tokens, count, nullptr, &logits) == GRETA_ERROR_FULL);
    greta_batch_item item = {o.session, tokens, count, nullptr};
    CHECK(greta_batch_eval(&item, 1) == GRETA_ERROR_FULL);
    CHECK(greta_session_profile(
              o.session, tokens, count, [](void*, const greta_profile_stage*) {}, nullptr) != GRETA_OK);
  }
  auto* const item = edge.last<greta_batch_item>();
  *item = {o.session, kPrompt, 3, nullptr};
  for (const size_t count : {size_t(257), ~size_t(0)})
    CHECK(greta_batch_eval(item, count) == GRETA_ERROR_ARGUMENT);
  auto* const writing = edge.last<greta_generate_item>();
  *writing = {};
  for (const size_t count : {size_t(257), ~size_t(0)})
    CHECK(greta_batch_generate(writing, count) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_session_position(o.session) == 0);
}

TEST_CASE("misuse: a profile of more tokens than a step takes is refused before they are read",
          "[api][misuse]") {
  Objects o;
  REQUIRE(o.load() == GRETA_OK);
  auto executor = sized<greta_executor_options>();
  executor.step_tokens = 8;
  auto open = sized<greta_session_options>();
  open.private_executor = &executor;
  greta_session* session = nullptr;
  REQUIRE(greta_session_open(o.model, &open, &session) == GRETA_OK);
  const Edge edge;
  CHECK(greta_session_profile(
            session, edge.last<int32_t>(3), 300, [](void*, const greta_profile_stage*) {}, nullptr) ==
        GRETA_ERROR_ARGUMENT);
  CHECK(greta_session_position(session) == 0);
  greta_session_close(session);
}

TEST_CASE("misuse: a batch with one wrong item changes none of its sessions", "[api][misuse]") {
  Objects o;
  REQUIRE(o.load() == GRETA_OK);
  greta_session* other = nullptr;
  REQUIRE(greta_session_fork(o.session, &other) == GRETA_OK);
  const int32_t wrong[] = {1, 67};
  greta_batch_item items[] = {{o.session, kPrompt, 3, nullptr}, {other, wrong, 2, nullptr}};
  CHECK(greta_batch_eval(items, 2) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_session_position(o.session) == 0);
  CHECK(greta_session_position(other) == 0);
  greta_session_close(other);
}

TEST_CASE("misuse: flags and enums without a meaning are refused", "[api][misuse]") {
  Objects o;
  REQUIRE(o.load() == GRETA_OK);
  const greta_tokenizer* tokenizer = greta_model_tokenizer(o.model);
  size_t count = 0;
  for (const uint32_t flags : {4u, 8u, 7u, 0x80000000u, ~0u}) {
    CHECK(greta_tokenizer_encode(tokenizer, "1t", 2, flags, nullptr, 0, &count) == GRETA_ERROR_ARGUMENT);
    CHECK_THAT(greta_error_text(), ContainsSubstring("flags"));
  }
  CHECK(greta_tokenizer_encode(tokenizer, "", 0, 3, nullptr, 0, &count) == GRETA_OK);
  const float* logits = nullptr;
  CHECK(greta_session_eval(o.session, kPrompt, 3, greta_rows(3), &logits) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_session_eval(o.session, kPrompt, 3, greta_rows(-1), &logits) == GRETA_ERROR_ARGUMENT);
  greta_executor* executor = nullptr;
  for (const int type : {4, -1, 0x7fffffff}) {
    auto options = sized<greta_executor_options>();
    options.key_type = greta_cache_type(type);
    CHECK(greta_executor_open(o.model, &options, &executor) == GRETA_ERROR_ARGUMENT);
    options = sized<greta_executor_options>();
    options.value_type = greta_cache_type(type);
    CHECK(greta_executor_open(o.model, &options, &executor) == GRETA_ERROR_ARGUMENT);
  }
}

TEST_CASE("misuse: fields of options without a meaning are refused when objects are opened",
          "[api][misuse]") {
  Objects o;
  REQUIRE(o.load() == GRETA_OK);
  greta_runtime* runtime = nullptr;
  auto of_runtime = sized<greta_runtime_options>();
  of_runtime.exact = 2;
  CHECK(greta_runtime_open(&of_runtime, &runtime) == GRETA_ERROR_ARGUMENT);
  CHECK_THAT(greta_error_text(), ContainsSubstring("exact"));
  of_runtime = sized<greta_runtime_options>();
  of_runtime.persistent = 2;
  CHECK(greta_runtime_open(&of_runtime, &runtime) == GRETA_ERROR_ARGUMENT);
  CHECK_THAT(greta_error_text(), ContainsSubstring("persistent"));
  of_runtime = sized<greta_runtime_options>();
  of_runtime.graphs = GRETA_GRAPHS_ON + 1;
  CHECK(greta_runtime_open(&of_runtime, &runtime) == GRETA_ERROR_ARGUMENT);
  CHECK_THAT(greta_error_text(), ContainsSubstring("graphs is 3"));
  of_runtime = sized<greta_runtime_options>();
  of_runtime.import_files = 2;
  CHECK(greta_runtime_open(&of_runtime, &runtime) == GRETA_ERROR_ARGUMENT);
  CHECK_THAT(greta_error_text(), ContainsSubstring("import_files"));
  greta_source source = o.source;
  source.reserved = 1;
  greta_file* file = nullptr;
  CHECK(greta_file_open(&source, &file) == GRETA_ERROR_UNSUPPORTED);
  auto of_model = sized<greta_model_options>();
  of_model.source = &o.source;
  of_model.reserved = 1;
  greta_model* model = nullptr;
  CHECK(greta_model_open(o.runtime, &of_model, &model) == GRETA_ERROR_UNSUPPORTED);
  auto of_session = sized<greta_session_options>();
  of_session.reserved = 1;
  greta_session* session = nullptr;
  CHECK(greta_session_open(o.model, &of_session, &session) == GRETA_ERROR_UNSUPPORTED);
  greta_chat* chat = nullptr;
  auto of_chat = sized<greta_chat_options>();
  of_chat.raw = 2;
  CHECK(greta_chat_open(o.session, &of_chat, &chat) == GRETA_ERROR_ARGUMENT);
}

TEST_CASE("misuse: fields of options without a meaning are refused by calls", "[api][misuse]") {
  Objects o;
  REQUIRE(o.load() == GRETA_OK);
  auto generate = sized<greta_generate_options>();
  generate.ignore_end = 2;
  CHECK(greta_session_generate(o.session, kPrompt, 3, &generate, nullptr) == GRETA_ERROR_ARGUMENT);
  generate = sized<greta_generate_options>();
  generate.reserved = 1;
  CHECK(greta_session_generate(o.session, kPrompt, 3, &generate, nullptr) == GRETA_ERROR_UNSUPPORTED);
  greta_chat* chat = nullptr;
  REQUIRE(greta_chat_open(o.session, nullptr, &chat) == GRETA_OK);
  auto answer = sized<greta_chat_answer_options>();
  answer.ignore_end = 2;
  CHECK(greta_chat_answer(chat, &answer, nullptr) == GRETA_ERROR_ARGUMENT);
  CHECK_THAT(greta_error_text(), ContainsSubstring("ignore_end"));
  answer = sized<greta_chat_answer_options>();
  answer.limit_reasoning = 2;
  CHECK(greta_chat_answer(chat, &answer, nullptr) == GRETA_ERROR_ARGUMENT);
  CHECK_THAT(greta_error_text(), ContainsSubstring("limit_reasoning"));
  greta_chat_close(chat);
  auto selftest = sized<greta_selftest_options>();
  selftest.quick = 2;
  uint32_t failed = 0;
  CHECK(greta_runtime_selftest(o.runtime, &selftest, &failed) == GRETA_ERROR_ARGUMENT);
  selftest = sized<greta_selftest_options>();
  selftest.reserved2 = 1;
  CHECK(greta_runtime_selftest(o.runtime, &selftest, &failed) == GRETA_ERROR_UNSUPPORTED);
}

TEST_CASE("misuse: NULL beside a count is an argument error", "[api][misuse]") {
  Objects o;
  REQUIRE(o.load() == GRETA_OK);
  const greta_tokenizer* tokenizer = greta_model_tokenizer(o.model);
  size_t count = 0;
  const int32_t one = 1;
  const float bias = 1;
  greta_batch_item item = {o.session, nullptr, 3, nullptr};
  CHECK(greta_tokenizer_encode(tokenizer, nullptr, 3, 0, nullptr, 0, &count) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_tokenizer_encode(tokenizer, "1t", 2, 0, nullptr, 8, &count) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_tokenizer_decode(tokenizer, nullptr, 2, nullptr, 0, &count) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_tokenizer_decode(tokenizer, &one, 1, nullptr, 8, &count) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_tokenizer_chat(tokenizer, nullptr, 1, 0, nullptr, 0, &count) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_tokenizer_render(tokenizer, nullptr, 2, 0, nullptr, 0, &count) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_template_render(nullptr, 2, nullptr, 0, 0, nullptr, 0, &count) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_file_metadata(o.file, 0, nullptr, nullptr, nullptr, 8) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_session_logit_bias(o.session, nullptr, &bias, 1) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_session_logit_bias(o.session, &one, nullptr, 1) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_session_eval(o.session, nullptr, 3, GRETA_ROWS_NONE, nullptr) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_session_eval(o.session, nullptr, 0, GRETA_ROWS_NONE, nullptr) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_session_eval(o.session, &one, 1, GRETA_ROWS_LAST, nullptr) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_session_generate(o.session, nullptr, 3, nullptr, nullptr) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_session_profile(o.session, nullptr, 3, nullptr, nullptr) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_batch_eval(&item, 1) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_batch_eval(nullptr, 1) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_batch_eval(&item, 0) == GRETA_ERROR_ARGUMENT);
  auto generate = sized<greta_generate_options>();
  generate.stop_count = 1;
  CHECK(greta_session_generate(o.session, &one, 1, &generate, nullptr) == GRETA_ERROR_ARGUMENT);
  const char* const null_text = nullptr;
  generate.stop_strings = &null_text;
  CHECK(greta_session_generate(o.session, &one, 1, &generate, nullptr) == GRETA_ERROR_ARGUMENT);
  auto dry = sized<greta_dry_options>();
  dry.breaker_count = 1;
  CHECK(greta_session_dry(o.session, &dry) == GRETA_ERROR_ARGUMENT);
  greta_chat* chat = nullptr;
  REQUIRE(greta_chat_open(o.session, nullptr, &chat) == GRETA_OK);
  auto answer = sized<greta_chat_answer_options>();
  answer.stop_count = 1;
  CHECK(greta_chat_answer(chat, &answer, nullptr) == GRETA_ERROR_ARGUMENT);
  answer.stop_count = 1u << 30;  // the array is not read that far
  answer.stop_strings = Edge().last<const char*>();
  CHECK(greta_chat_answer(chat, &answer, nullptr) == GRETA_ERROR_ARGUMENT);
  greta_chat_close(chat);
  CHECK(greta_session_position(o.session) == 0);
}
