// Host memory that runs out in the thread that runs a service. Each allocation of adding requests and of
// running them fails once, also where pages of the cache go to the host and to a folder. A request that
// cannot go on ends with GRETA_ERROR_MEMORY, nothing leaks, and the service then answers the same requests as
// before.
#include <array>
#include <atomic>
#include <filesystem>
#include <thread>

#include "support/api_objects.h"
#include "support/failing_memory.h"
#include "support/gguf_writer.h"

using namespace greta::test;

namespace {

struct Answer {
  greta_status status = GRETA_OK;
  std::string text;
  bool operator==(const Answer&) const = default;
};

int append(void* user, const void* bytes, size_t count) {
  if (count) static_cast<std::string*>(user)->append(static_cast<const char*>(bytes), count);
  return 0;
}

// Reads a request to its end, with its state if it keeps one, and closes it.
Answer read_all(greta_request* request, bool keeps_state) {
  Answer answer;
  auto event = sized<greta_request_event>();
  do {
    answer.status = greta_request_next(request, UINT64_MAX, &event);
    if (answer.status) break;
    answer.text.append(event.text, event.bytes);
    append(&answer.text, event.embedding, event.embedding_count * sizeof(float));
    answer.text += '|';
  } while (event.kind != GRETA_EVENT_END);
  if (!answer.status) answer.status = greta_request_finish(request, nullptr);
  if (!answer.status && keeps_state) answer.status = greta_request_save(request, append, &answer.text);
  greta_request_close(request);
  return answer;
}

constexpr size_t kRequests = 4, kKeepsState = 3;
using Answers = std::array<Answer, kRequests>;
using Requests = std::array<greta_request*, kRequests>;

// What a service is opened with.
struct Program {
  greta_model* model;
  const char* page_folder = nullptr;  // then pages have little room on the device and on the host
};

// Of prompts of three pages each. The last one is that of the first, whose pages have gone by then.
greta_status add_long_requests(greta_service* service, Requests* out) {
  greta_status status = GRETA_OK;
  for (size_t i = 0; i < kRequests && !status; ++i) {
    int32_t prompt[200];
    for (int32_t t = 0; t < 200; ++t) prompt[t] = 3 + (t * (int32_t(i % 3) + 5) + t / 7) % 60;
    auto ask = sized<greta_request_options>();
    ask.tokens = prompt;
    ask.token_count = std::size(prompt);
    ask.max_tokens = 3;
    ask.ignore_end = 1;
    status = greta_service_add(service, &ask, &(*out)[i]);
  }
  return status;
}

// One that the device draws, one that a grammar and the host draw, a conversation, and a text of which a
// vector is made and the state is kept.
greta_status add_requests(greta_service* service, Requests* out) {
  static const int32_t first[] = {3, 10, 17, 24, 31, 38}, second[] = {5, 6, 7};
  static const greta_message message = {"user", "1t 2t", nullptr};
  auto plain = sized<greta_request_options>();
  plain.tokens = first;
  plain.token_count = std::size(first);
  plain.max_tokens = 6;
  plain.ignore_end = 1;
  auto sampling = sized<greta_sampling_options>();
  sampling.temperature = 0.8f;
  sampling.seed = 7;
  sampling.grammar = "root ::= part+\npart ::= [0-9]+ \"t\"";
  auto bound = plain;
  bound.tokens = second;
  bound.token_count = std::size(second);
  bound.sampling = &sampling;
  bound.logprobs = bound.prompt_logprobs = 1;
  bound.top_logprobs = 3;
  auto chat = sized<greta_request_options>();
  chat.messages = &message;
  chat.message_count = 1;
  chat.max_tokens = 4;
  auto embed = sized<greta_embed_options>();
  auto vector = plain;
  vector.embed = &embed;
  vector.keep_state = 1;
  const greta_request_options* const all[kRequests] = {&plain, &bound, &chat, &vector};
  greta_status status = GRETA_OK;
  for (size_t i = 0; i < kRequests && !status; ++i) status = greta_service_add(service, all[i], &(*out)[i]);
  return status;
}

greta_status open_service(const Program& program, greta_service** out) {
  auto sizes = sized<greta_executor_options>();
  sizes.context = 256;
  sizes.sequences = program.page_folder ? 1 : 4;
  sizes.cache_tokens = program.page_folder ? 256 : 512;
  auto options = sized<greta_service_options>();
  options.executor = &sizes;
  options.max_requests = 8;
  options.page_folder = program.page_folder;
  if (program.page_folder) options.host_cache_bytes = 1 << 15;
  return greta_service_open(program.model, &options, out);
}

struct Round {
  greta_status begun = GRETA_OK, ran = GRETA_OK;
  Answers answers;
  bool failed = false;
};

// Opens the service, if there is none, adds the requests and runs them on this thread, whose allocation
// `fail_at` fails. Another one reads.
Round ask(const Program& program, greta_service** service, uint64_t fail_at) {
  Round round;
  Requests requests{};
  std::atomic<int> begun{0};
  std::thread reader([&] {
    begun.wait(0);
    if (begun != 1) return;
    for (size_t i = 0; i < kRequests; ++i)
      round.answers[i] = read_all(requests[i], i == kKeepsState && !program.page_folder);
    greta_service_stop(*service);
  });
  {
    const FailingMemory failing(fail_at);
    if (!*service) round.begun = open_service(program, service);
    const auto add = program.page_folder ? add_long_requests : add_requests;
    if (!round.begun) round.begun = add(*service, &requests);
    begun = round.begun ? 2 : 1;
    begun.notify_one();
    if (!round.begun) round.ran = greta_service_run(*service);
    round.failed = failing.failed();
  }
  reader.join();
  if (round.begun)
    for (greta_request* request : requests) greta_request_close(request);
  return round;
}

// What failed has said so, and what did not fail is whole.
bool right(const Round& round, const Answers& expected) {
  if (round.begun) return round.begun == GRETA_ERROR_MEMORY;
  bool all = round.ran == GRETA_OK;
  for (size_t i = 0; i < kRequests; ++i) {
    const Answer& answer = round.answers[i];
    all &= answer.status == GRETA_OK ? answer == expected[i] : answer.status == GRETA_ERROR_MEMORY;
  }
  return all;
}

struct Count {
  uint64_t tried = 0, ended = 0, wrong = 0;
};

// Returns whether an allocation failed.
bool try_with(const Program& program, greta_service** service, uint64_t n, const Answers& expected,
              Count* count) {
  const Round round = ask(program, service, n);
  if (!round.failed) return false;
  ++count->tried;
  for (const Answer& answer : round.answers) count->ended += answer.status == GRETA_ERROR_MEMORY;
  const bool fine = right(round, expected) && ask(program, service, 0).answers == expected;
  INFO("allocation " << n << ": " << greta_error_text());
  if (!fine && ++count->wrong < 8) CHECK(fine);
  return true;
}

struct Loaded {
  Objects o{TinyShape{}, exact()};
  Program program;
  Answers expected;
  explicit Loaded(const char* page_folder = nullptr) {
    REQUIRE(o.load() == GRETA_OK);
    program = {o.model, page_folder};
    greta_service* service = nullptr;
    expected = ask(program, &service, 0).answers;
    greta_service_close(service);
    for (const Answer& answer : expected) REQUIRE(answer.status == GRETA_OK);
  }
  static greta_runtime_options exact() {
    greta_runtime_options options{};
    options.exact = 1;
    options.threads = 1;
    return options;
  }
};

}  // namespace

TEST_CASE("memory: each host allocation of requests may fail, and the service answers afterwards",
          "[api][memory][serve]") {
  Loaded loaded;
  greta_service* service = nullptr;
  Count count;
  (void)ask(loaded.program, &service, 0);
  for (uint64_t n = 1; try_with(loaded.program, &service, n, loaded.expected, &count);) ++n;
  greta_service_close(service);
  INFO(count.tried << " allocations, which ended " << count.ended << " requests");
  CHECK(count.wrong == 0);
  CHECK(count.tried > 50);
  CHECK(count.ended > 20);
}

TEST_CASE("memory: some host allocations of a service's life may fail, and nothing leaks",
          "[api][memory][serve]") {
  Loaded loaded;
  Count count;
  uint64_t leaked = 0, before = 0;
  const auto try_life = [&](uint64_t n) {
    before = live_allocations();
    greta_service* service = nullptr;
    const bool more = try_with(loaded.program, &service, n, loaded.expected, &count);
    greta_service_close(service);
    return more;
  };
  (void)try_life(1);  // Catch2 keeps memory for the first message
  for (uint64_t n = 1, more = 1; more; n += 17) {
    more = try_life(n);
    leaked += live_allocations() != before;
  }
  CHECK(count.wrong == 0);
  CHECK(leaked == 0);
  CHECK(count.tried > 30);
}

namespace {

size_t entries(const std::string& folder) {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder)) ++count;
  return count;
}

// Whether no file is left open or half written.
struct Places {
  TemporaryFolder folder;
  std::string pages = folder.path() + "/pages";
  size_t open_files = 0;
  void begin(bool empty) {
    if (empty) std::filesystem::remove_all(pages);
    open_files = entries("/proc/self/fd");
  }
  bool tidy() const {
    bool whole = entries("/proc/self/fd") == open_files;
    for (const auto& entry : std::filesystem::directory_iterator(pages))
      whole &= entry.path().extension() == ".kvpage";
    return whole;
  }
};

}  // namespace

namespace {

// Lets each `stride`-th allocation of a service's life fail, where the folder is empty and where it is full.
void check_pages(uint64_t stride) {
  Places places;
  const Loaded loaded(places.pages.c_str());
  CHECK(entries(places.pages) > 3);
  Count count;
  uint64_t leaked = 0, untidy = 0, brought_back = 0;
  const auto try_life = [&](uint64_t n, bool empty) {
    places.begin(empty);
    const uint64_t before = live_allocations();
    greta_service* service = nullptr;
    const bool more = try_with(loaded.program, &service, n, loaded.expected, &count);
    auto info = sized<greta_service_info>();
    if (!greta_service_describe(service, &info)) brought_back += info.brought_back;
    greta_service_close(service);
    leaked += live_allocations() != before;
    untidy += !places.tidy();
    return more;
  };
  (void)try_life(1, true);  // Catch2 keeps memory for the first message
  leaked = 0;
  for (const bool empty : {true, false})
    for (uint64_t n = 1; try_life(n, empty);) n += stride;
  INFO(count.tried << " allocations, which ended " << count.ended << " requests");
  CHECK(count.wrong == 0);
  CHECK(leaked == 0);
  CHECK(untidy == 0);
  CHECK(count.ended > 5);
  CHECK(brought_back > count.tried);
}

}  // namespace

TEST_CASE("memory: each host allocation may fail where pages go to the host and to a folder",
          "[.][whole]") {
  check_pages(1);
}

TEST_CASE("memory: some host allocations may fail where pages go to the host and to a folder",
          "[api][memory][serve]") {
  check_pages(37);
}

TEST_CASE("memory: host allocations may fail while a service that is closed stores its pages",
          "[api][memory][serve]") {
  Places places;
  const Loaded loaded(places.pages.c_str());
  uint64_t tried = 0, wrong = 0, leaked = 0, untidy = 0;
  for (bool more = true; more; ++tried) {
    places.begin(true);
    const uint64_t before = live_allocations();
    greta_service* service = nullptr;
    wrong += ask(loaded.program, &service, 0).answers != loaded.expected;
    {
      const FailingMemory failing(tried + 1);
      greta_service_close(service);
      more = failing.failed();
    }
    leaked += live_allocations() != before;
    untidy += !places.tidy();
    service = nullptr;  // one that finds what the other could store
    wrong += ask(loaded.program, &service, 0).answers != loaded.expected;
    greta_service_close(service);
  }
  CHECK(wrong == 0);
  CHECK(leaked == 0);
  CHECK(untidy == 0);
  CHECK(tried > 10);
}
