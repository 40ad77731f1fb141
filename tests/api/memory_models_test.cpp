// Host memory, mappings and threads that are refused while a program opens a real model, writes, answers,
// saves, restores and closes. Each refusal is a status; nothing leaks; and the call made again gives the same
// text.
#include <cstring>

#include "places.h"
#include "support/api_objects.h"
#include "support/failing_memory.h"
#include "support/test_data.h"

using namespace greta::test;

namespace {

std::string* text_of(void* user) { return static_cast<std::string*>(user); }

int on_token(void* user, int32_t, const char* text, size_t bytes) {
  if (text_of(user)->size() + bytes <= text_of(user)->capacity()) text_of(user)->append(text, bytes);
  return 0;
}
int on_event(void* user, const greta_chat_event* event) {
  return event->text ? on_token(user, 0, event->text, event->bytes) : 0;
}
int on_write(void* user, const void* bytes, size_t count) {
  return on_token(user, 0, static_cast<const char*>(bytes), count);
}

constexpr uint32_t kContext = 128;

// A program's way through a model. A step allocates nothing outside of the library.
class Life {
 public:
  explicit Life(const std::string& path) : path_(path) {
    for (std::string* text : {&text_, &saved_}) text->reserve(1 << 20);
  }
  Life(const Life&) = delete;
  Life& operator=(const Life&) = delete;
  ~Life() { close(); }

  greta_status open(uint32_t threads) {
    auto of_runtime = sized<greta_runtime_options>();
    of_runtime.device = "cpu";
    of_runtime.threads = threads;
    auto source = sized<greta_source>();
    source.path = path_.c_str();
    auto of_model = sized<greta_model_options>();
    of_model.source = &source;
    greta_status status = greta_runtime_open(&of_runtime, &runtime_);
    greta_file* file = nullptr;
    if (!status) status = greta_file_open(&source, &file);
    auto plan = sized<greta_memory_plan>();
    if (!status) status = greta_memory_plan_make(runtime_, file, nullptr, &plan);
    greta_file_close(file);
    if (!status) status = greta_model_open(runtime_, &of_model, &model_);
    return status ? status : open_session(&session_);
  }
  void close() {
    greta_session_close(std::exchange(session_, nullptr));
    greta_session_close(std::exchange(second_, nullptr));
    greta_model_close(std::exchange(model_, nullptr));
    greta_runtime_close(std::exchange(runtime_, nullptr));
  }
  greta_status open_session(greta_session** out) {
    auto executor = sized<greta_executor_options>();
    executor.context = kContext;
    auto options = sized<greta_session_options>();
    options.private_executor = &executor;
    return greta_session_open(model_, &options, out);
  }
  // Closes the sessions and opens one anew, with what a step needs.
  void begin() {
    greta_session_close(std::exchange(session_, nullptr));
    greta_session_close(std::exchange(second_, nullptr));
    REQUIRE(open_session(&session_) == GRETA_OK);
    REQUIRE(open_session(&second_) == GRETA_OK);
    REQUIRE(greta_session_temperature(session_, 0.9f) == GRETA_OK);
    REQUIRE(greta_session_seed(session_, 11) == GRETA_OK);
    text_.clear();
  }
  greta_status generate(greta_session* session, const char* prompt) {
    int32_t tokens[64];
    size_t count = 0;
    const size_t before = text_.size();
    greta_status status = greta_tokenizer_encode(greta_model_tokenizer(model_), prompt, strlen(prompt),
                                                 GRETA_ENCODE_BOS, tokens, 64, &count);
    auto options = sized<greta_generate_options>();
    options.max_tokens = 8;
    options.on_token = on_token;
    options.user = &text_;
    if (!status) status = greta_session_generate(session, tokens, count, &options, nullptr);
    if (status) text_.resize(before);
    return status;
  }
  greta_status write() { return generate(session_, "Once upon a time"); }
  greta_status write_json() {
    const greta_status status =
        greta_session_json_schema(session_, R"({"type": "array", "items": {"enum": ["dog", "cat", 12]}})");
    return status ? status : generate(session_, "A list: ");
  }
  greta_status answer() {
    const size_t before = text_.size();
    greta_chat* chat = nullptr;
    greta_status status = greta_chat_open(session_, nullptr, &chat);
    const greta_message message = {"user", "Tell me of a dog.", nullptr};
    if (!status) status = greta_chat_add(chat, &message);
    auto options = sized<greta_chat_answer_options>();
    options.max_tokens = 8;
    options.on_event = on_event;
    options.user = &text_;
    if (!status) status = greta_chat_answer(chat, &options, nullptr);
    greta_chat_close(chat);
    if (status) text_.resize(before);
    return status;
  }
  greta_status save() {
    saved_.clear();
    return greta_session_save(session_, on_write, &saved_);
  }
  greta_status restore() {
    auto source = sized<greta_source>();
    source.memory = saved_.data();
    source.memory_bytes = saved_.size();
    return greta_session_restore(second_, &source);
  }
  const std::string& text() const { return text_; }

  // After any step: both sessions go on, and what they write is part of the text.
  greta_status go_on() {
    const greta_status status = generate(session_, "The");
    return status ? status : generate(second_, "And");
  }

 private:
  std::string path_, text_, saved_;
  greta_runtime* runtime_ = nullptr;
  greta_model* model_ = nullptr;
  greta_session *session_ = nullptr, *second_ = nullptr;
};

struct Step {
  const char* name;
  void (*before)(Life& life);
  greta_status (*call)(Life& life);
};

const Step kSteps[] = {
    {"8 tokens", [](Life&) {}, [](Life& life) { return life.write(); }},
    {"a grammar", [](Life&) {}, [](Life& life) { return life.write_json(); }},
    {"an answer", [](Life&) {}, [](Life& life) { return life.answer(); }},
    {"saving", [](Life& life) { REQUIRE(life.write() == GRETA_OK); }, [](Life& life) { return life.save(); }},
    {"restoring",
     [](Life& life) {
       REQUIRE(life.write() == GRETA_OK);
       REQUIRE(life.save() == GRETA_OK);
     },
     [](Life& life) { return life.restore(); }},
};

struct Count {
  uint64_t allocations = 0, tried = 0, wrong = 0, leaked = 0;
};

// Lets the allocations 1, 1 + stride, ... of one step fail, each in a new session.
void sweep(Life& life, const Step& step, uint64_t stride, Count* count) {
  life.begin();
  step.before(life);
  REQUIRE(step.call(life) == GRETA_OK);
  REQUIRE(life.go_on() == GRETA_OK);
  const std::string expected = life.text();
  for (uint64_t n = 1;; n += stride) {
    life.begin();
    step.before(life);
    greta_status status = GRETA_OK;
    bool failed = false;
    uint64_t made = 0;
    {
      const FailingMemory failing(n);
      status = step.call(life);
      failed = failing.failed();
      made = failing.count();
    }
    if (!failed) {
      count->allocations += made;
      break;
    }
    const bool said = status == GRETA_ERROR_MEMORY || status == GRETA_OK;
    const greta_status again = status == GRETA_OK ? GRETA_OK : step.call(life);
    const bool same = !again && !life.go_on() && life.text() == expected;
    ++count->tried;
    INFO(step.name << ", allocation " << n << ": status " << status << ", then " << again << ": "
                   << greta_error_text() << "\n"
                   << life.text() << "\n"
                   << expected);
    if (!(said && same) && ++count->wrong < 4) CHECK((said && same));
  }
}

// The same for opening and closing everything. What is left behind is counted.
void sweep_opening(const std::string& path, uint64_t stride, Count* count) {
  for (uint64_t n = 1;; n += stride) {
    const uint64_t before = live_allocations();
    greta_status status = GRETA_OK;
    bool failed = false;
    uint64_t made = 0;
    {
      Life life(path);
      const FailingMemory failing(n);
      status = life.open(2);
      life.close();
      failed = failing.failed();
      made = failing.count();
    }
    count->leaked += live_allocations() != before;
    if (!failed) {
      count->allocations += made;
      return;
    }
    ++count->tried;
    const bool said = status == GRETA_ERROR_MEMORY || status == GRETA_OK;
    INFO("opening, allocation " << n << ": status " << status << ": " << greta_error_text());
    if (!said && ++count->wrong < 4) CHECK(said);
  }
}

// Of the allocations of opening and of each step, the first fails, and each that is `stride` further on.
// In all, at least `least` have to fail.
void check_life(const std::string& path, uint64_t stride, uint64_t least) {
  Count count;
  {
    Life once(path);
    REQUIRE(once.open(2) == GRETA_OK);
  }
  sweep_opening(path, stride, &count);
  const uint64_t before = live_allocations();
  {
    Life life(path);
    REQUIRE(life.open(1) == GRETA_OK);
    for (const Step& step : kSteps) sweep(life, step, stride, &count);
  }
  CHECK(live_allocations() == before);
  WARN(count.tried << " of " << count.allocations << " allocations failed once");
  REQUIRE(count.tried >= least);
  CHECK(count.wrong == 0);
  CHECK(count.leaked == 0);
}

}  // namespace

// Minutes of work, so it runs where it is asked for: greta_tests "[whole]".
TEST_CASE("memory: each allocation of a whole program with a real model may fail", "[.][whole]") {
  check_life(test_data() / "models/stories260K-q8_0.gguf", 1, 10'000);
}

TEST_CASE("memory: some allocations of a whole program with the bundled model may fail",
          "[api][memory][models]") {
  check_life(GRETA_SOURCE_DIR "/models/tales-llama-7m-q4_k_m.gguf", 8, 2'000);
}
