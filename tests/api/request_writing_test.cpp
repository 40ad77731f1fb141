// Requests that guess tokens, go on behind a full context and have a limit of reasoning write what sessions
// and chats write with the same options.
#include <catch2/catch_test_macros.hpp>
#include <cstring>
#include <string>
#include <vector>

#include "places.h"
#include "support/api_services.h"

using namespace greta::test;

namespace {

constexpr char kModel[] = GRETA_SOURCE_DIR "/models/tales-llama-7m-q4_k_m.gguf";

// The bundled model, with a service and a session.
struct Tales {
  greta_runtime* runtime = nullptr;
  greta_model* model = nullptr;
  greta_service* service = nullptr;
  greta_session* session = nullptr;

  Tales() {
    auto on = sized<greta_runtime_options>();
    on.device = "cpu";
    on.exact = 1;
    REQUIRE(greta_runtime_open(&on, &runtime) == GRETA_OK);
    auto source = sized<greta_source>();
    source.path = kModel;
    auto load = sized<greta_model_options>();
    load.source = &source;
    REQUIRE(greta_model_open(runtime, &load, &model) == GRETA_OK);
    auto sizes = sized<greta_executor_options>();
    sizes.context = 192, sizes.sequences = 4, sizes.cache_tokens = 4 * 192;
    auto serve = Served::own_thread();
    serve.executor = &sizes;
    REQUIRE(greta_service_open(model, &serve, &service) == GRETA_OK);
    auto options = sized<greta_session_options>();
    options.private_executor = &sizes;
    REQUIRE(greta_session_open(model, &options, &session) == GRETA_OK);
  }
  ~Tales() {
    greta_session_close(session);
    greta_service_close(service);
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

// Opens reasoning in the prompt, and leaves it out of earlier answers.
constexpr char kThinking[] =
    "{% for m in messages %}{{ '<|' ~ m.role ~ '|>\\n' ~ m.content ~ '<|end|>\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>\\n<think>\\n' }}{% else %}</think>{% endif %}";

const greta_message kQuestion = {"user", "Tell me a story about a beaver.", nullptr};

Read chat_answer(const Tales& tales, uint32_t limit, uint32_t* thought) {
  auto options = sized<greta_chat_options>();
  options.chat_template = kThinking;
  greta_chat* chat = nullptr;
  REQUIRE(greta_chat_open(tales.session, &options, &chat) == GRETA_OK);
  REQUIRE(greta_chat_add(chat, &kQuestion) == GRETA_OK);
  Read read;
  auto answer = sized<greta_chat_answer_options>();
  answer.max_tokens = 30;
  answer.ignore_end = 1;
  answer.limit_reasoning = 1;
  answer.reasoning_tokens = limit;
  answer.user = &read;
  answer.on_event = [](void* user, const greta_chat_event* event) {
    Read& to = *static_cast<Read*>(user);
    if (event->part == GRETA_CHAT_TEXT) to.text.append(event->text, event->bytes);
    if (event->part == GRETA_CHAT_REASONING) to.reasoning.append(event->text, event->bytes);
    return 0;
  };
  auto result = sized<greta_chat_result>();
  const greta_status status = greta_chat_answer(chat, &answer, &result);
  INFO(greta_error_text());
  REQUIRE(status == GRETA_OK);
  *thought = result.reasoning_tokens;
  greta_chat_close(chat);
  return read;
}

}  // namespace

TEST_CASE("service: a request guesses tokens, and forgets where its context is full, as a session does",
          "[api][serve][draft]") {
  const Tales tales;
  const std::vector<int32_t> prompt =
      tales.tokens("Once upon a time there was a king, and the king had a cat. Once upon a time there was a");
  std::vector<int32_t> expected;
  auto generate = sized<greta_generate_options>();
  generate.max_tokens = 300;
  generate.ignore_end = 1;
  generate.shift = 1;
  generate.keep_tokens = 5;
  generate.user = &expected;
  generate.on_token = [](void* user, int32_t token, const char*, size_t) {
    if (token >= 0) static_cast<std::vector<int32_t>*>(user)->push_back(token);
    return 0;
  };
  auto alone = sized<greta_generate_result>();
  REQUIRE(greta_session_generate(tales.session, prompt.data(), prompt.size(), &generate, &alone) == GRETA_OK);
  REQUIRE(alone.forgotten_tokens > 100);
  auto options = ask(prompt, 300);
  options.shift = 1;
  options.keep_tokens = 5;
  const Read plain = read_all(add(tales.service, options));
  options.draft_tokens = 7;
  const Read guessed = read_all(add(tales.service, options));
  for (const Read* read : {&plain, &guessed}) {
    CHECK(read->status == GRETA_OK);
    CHECK(read->tokens == expected);
    CHECK(read->result.reason == GRETA_STOP_LENGTH);
    CHECK(read->result.forgotten_tokens == alone.forgotten_tokens);
  }
  CHECK(plain.result.drafted_tokens == 0);
  CHECK(guessed.result.accepted_tokens > 20);
  CHECK(guessed.result.accepted_tokens <= guessed.result.drafted_tokens);
  options.shift = 0;
  CHECK(read_all(add(tales.service, options)).result.reason == GRETA_STOP_CONTEXT);
}

TEST_CASE("service: reasoning is closed where a request wants it, as that of a chat", "[api][serve]") {
  const Tales tales;
  auto chat = sized<greta_chat_options>();
  chat.chat_template = kThinking;
  auto options = sized<greta_request_options>();
  options.messages = &kQuestion, options.message_count = 1;
  options.chat = &chat;
  options.max_tokens = 30;
  options.ignore_end = 1;
  CHECK(read_all(add(tales.service, options)).result.open_reasoning == 1);
  options.limit_reasoning = 1;
  for (const uint32_t limit : {0u, 1u, 5u}) {
    INFO(limit);
    REQUIRE(greta_session_truncate(tales.session, 0) == GRETA_OK);
    uint32_t thought = 0;
    const Read expected = chat_answer(tales, limit, &thought);
    options.reasoning_tokens = limit;
    const Read read = read_all(add(tales.service, options));
    CHECK(read.status == GRETA_OK);
    CHECK(read.text == expected.text);
    CHECK(read.reasoning == expected.reasoning);
    CHECK_FALSE(read.text.empty());
    CHECK(read.result.generated_tokens == 30);
    CHECK(thought == limit);
    CHECK(read.result.reasoning_tokens == limit);
    CHECK(read.result.open_reasoning == 0);
  }
}

TEST_CASE("service: a schema has room behind reasoning that does not end", "[api][serve][grammar]") {
  const Tales tales;
  auto chat = sized<greta_chat_options>();
  chat.chat_template = kThinking;
  auto sampling = sized<greta_sampling_options>();
  sampling.json_schema = R"({"enum": [3]})";
  auto options = sized<greta_request_options>();
  options.messages = &kQuestion, options.message_count = 1;
  options.chat = &chat;
  options.sampling = &sampling;
  options.max_tokens = 40;
  const Read read = read_all(add(tales.service, options));
  CHECK(read.status == GRETA_OK);
  CHECK(read.text == "3");
  CHECK(read.result.reasoning_tokens == 30);  // three quarters of the answer
  CHECK(read.result.open_reasoning == 0);
}

TEST_CASE("service: the text of a control token is a stop string of a request", "[api][serve]") {
  const Tales tales;
  int32_t control = 0;
  size_t count = 0;
  REQUIRE(greta_tokenizer_encode(greta_model_tokenizer(tales.model), "<|end|>", 7, GRETA_ENCODE_SPECIAL,
                                 &control, 1, &count) == GRETA_OK);
  REQUIRE(count == 1);
  const float certain = 1e6f;  // the model writes nothing else
  auto sampling = sized<greta_sampling_options>();
  sampling.bias_tokens = &control, sampling.biases = &certain, sampling.bias_count = 1;
  const std::vector<int32_t> prompt = {1, 5};
  auto options = ask(prompt, 6);
  options.sampling = &sampling;
  const Read whole = read_all(add(tales.service, options));
  CHECK(whole.result.reason == GRETA_STOP_LENGTH);
  CHECK(whole.result.generated_tokens == 6);
  const char* const stops[] = {"never there", "<|end|>"};
  options.stop_strings = stops, options.stop_count = 2;
  const Read stopped = read_all(add(tales.service, options));
  CHECK(stopped.status == GRETA_OK);
  CHECK(stopped.result.reason == GRETA_STOP_STRING);
  CHECK(stopped.result.stop_string == 1);
  CHECK(stopped.result.generated_tokens == 1);
  CHECK(stopped.text.empty());
}

TEST_CASE("service: options of writing that have no meaning are refused", "[api][serve][misuse]") {
  const Tales tales;
  greta_request* request = nullptr;
  const std::vector<int32_t> prompt = {1};
  const auto refused = [&](const greta_request_options& options, const char* words,
                           greta_status status = GRETA_ERROR_ARGUMENT) {
    CHECK(greta_service_add(tales.service, &options, &request) == status);
    CHECK(std::string(greta_error_text()).find(words) != std::string::npos);
  };
  auto options = ask(prompt, 1);
  options.draft_tokens = 8;
  refused(options, "8 tokens to guess in a step, expected 1 to 7");
  options = ask(prompt, 1);
  options.shift = 2;
  refused(options, "shift");
  options = ask(prompt, 1);
  options.limit_reasoning = 2;
  refused(options, "limit_reasoning");
  options.limit_reasoning = 1;
  refused(options, "limit_reasoning is for messages");
  options = ask(prompt, 1);
  options.reserved3 = 1;
  refused(options, "reserved", GRETA_ERROR_UNSUPPORTED);
}
