// Random calls on sessions and requests of one executor, whose pool is small: whatever was forked, truncated,
// saved, restored, set back or taken from the prefix cache, a text goes on with the bits that reading it from
// its beginning gives.
#include <catch2/catch_test_macros.hpp>
#include <cstring>
#include <random>

#include "engine/groups_rig.h"
#include "support/saved_session.h"

using namespace greta;
using namespace greta::test;

namespace {

// Requests beside sessions of one executor.
struct Requests {
  Sessions& sessions;
  SchedulerOptions options;
  std::shared_ptr<Doorbell> bell = std::make_shared<Doorbell>();
  std::unique_ptr<Scheduler> scheduler;

  Requests(Sessions& of, const SchedulerOptions& how) : sessions(of), options(how) { begin_anew(); }
  ~Requests() { scheduler.reset(); }
  void begin_anew() {  // with an empty cache
    scheduler.reset();
    scheduler = std::make_unique<Scheduler>(*sessions.executor, options);
  }
  std::shared_ptr<Request> add(RequestOptions wanted, size_t events) {
    std::shared_ptr<Request> request;
    const Executor& executor = *sessions.executor;
    REQUIRE(Request::open(*sessions.engine.model, executor.plan().context, events, bell, std::move(wanted),
                          &request)
                .ok());
    scheduler->add(request);
    return request;
  }
  void run() {
    for (int i = 0; scheduler->step(); ++i) REQUIRE(i < 100'000);
  }
};

// The tokens of an answer so far, with their probabilities.
using Written = std::vector<std::pair<int32_t, float>>;

void take_events(Request& request, Written* to) {
  RequestEvent event;
  while (request.next(0, &event))
    if (event.token.token != kNoToken) to->push_back({event.token.token, event.token.logprob});
}

struct Happened {
  uint64_t full = 0, set_back = 0;  // calls that found no pages, and requests that were set back
};

// Random calls on a few sessions, and random requests beside them.
class RandomCalls {
 public:
  RandomCalls(const Windowed& model, uint32_t seed)
      : file_(windowed(model.golden, model.key, model.window)),
        reference_(file_),
        with_requests_(!model.key),
        sessions_(file_, kSessions + (with_requests_ ? kRequests : 0), with_requests_ ? 1536 : 1024),
        requests_(sessions_, how_requests_run(seed)),
        alone_(reference_.sessions, {.prefix_cache = false}),
        random_(seed) {
    REQUIRE(sessions_.executor->plan().groups.count == (model.key ? 2 : 1));
    REQUIRE(bool(sessions_.executor->plan().states) == !model.key);
    sessions_.engine.model->log = {[](void* user, uint32_t level, const char* text) {
                                     static_cast<RandomCalls*>(user)->again_ +=
                                         LogLevel(level) == LogLevel::Debug && strstr(text, "read again");
                                   },
                                   this};
    for (auto& session : open_) session = sessions_.open();
  }

  Happened run(int calls) {
    for (int i = 0; i < calls; ++i) {
      INFO("call " << i);
      Session& session = *open_[random_() % kSessions];
      switch (random_() % (with_requests_ ? 9 : 8)) {
        case 0:
          truncate(session);
          break;
        case 5:
          with_requests_ ? ask() : eval(session);
          break;
        case 1:
          fork();
          break;
        case 2:
          save_it(session);
          break;
        case 3:
          restore_it(session);
          break;
        case 4:
          generate(session);
          break;
        default:
          eval(session);
      }
    }
    CHECK(again_ > 0);
    count_requests();
    CHECK((cached_ > 0) == with_requests_);
    return {full_, set_back_};
  }
  // All pages are free again when all sessions are gone.
  void check_clean() {
    for (auto& session : open_) session.reset();
    requests_.begin_anew();
    Executor& executor = *sessions_.executor;
    while (executor.windows() && executor.windows()->free_pages() < executor.plan().groups.group[1].pages)
      REQUIRE(executor.free_window_page());
    CHECK(executor.pages().free_pages() == executor.plan().pages);
  }

 private:
  static constexpr uint32_t kSessions = 3, kRequests = 4;

  static SchedulerOptions how_requests_run(uint32_t seed) {
    SchedulerOptions options;
    options.host_cache_bytes = seed % 2 ? uint64_t(1) << 20 : 0;
    options.chunk_tokens = 48;
    return options;
  }
  std::vector<int32_t> some(uint32_t most) {
    std::vector<int32_t> tokens(1 + random_() % most);
    for (int32_t& token : tokens) token = int32_t(3 + random_() % (sessions_.vocab() - 3));
    return tokens;
  }
  std::vector<int32_t> text_of(const Session& session) const {
    return {session.tokens().begin(), session.tokens().end()};
  }
  // A call that found no pages has changed nothing. Then somebody makes room.
  void full(Session& session, const Status& status, const std::vector<int32_t>& before) {
    INFO(error_text());
    REQUIRE(status.code == Code::Full);
    REQUIRE(text_of(session) == before);
    ++full_;
    make_room();
  }
  // Pages that requests have left in the cache are not for sessions.
  void make_room() {
    REQUIRE(open_[random_() % kSessions]->truncate(0).ok());
    if (random_() % 2) return;
    count_requests();
    requests_.begin_anew();
  }
  void count_requests() {
    cached_ += requests_.scheduler->counts().cached_tokens;
    set_back_ += requests_.scheduler->counts().set_back;
  }
  // Some requests, which begin as earlier ones. Of some nobody reads the events for a while, so that they are
  // set back.
  void ask() {
    std::vector<std::shared_ptr<Request>> asked;
    std::vector<RequestOptions> wanted;
    for (uint32_t i = 0, count = 1 + random_() % kRequests; i < count; ++i) {
      std::vector<int32_t> text;
      if (!asked_.empty()) text = asked_[random_() % asked_.size()];
      text.resize(std::min<size_t>(text.size(), random_() % 400));
      const uint32_t place = uint32_t(text.size());
      const std::vector<int32_t> more = some(150);
      text.insert(text.end(), more.begin(), more.end());
      if (asked_.size() == 8) asked_.erase(asked_.begin());
      asked_.push_back(text);
      wanted.push_back(request_of(text, 1 + random_() % 12));
      wanted.back().logprobs = true;
      if (place && random_() % 2) wanted.back().places = {place};
      asked.push_back(requests_.add(wanted.back(), random_() % 3 ? 100 : 4));
    }
    std::vector<Written> answers(asked.size());
    const auto goes_on = [](const auto& request) { return request->goes_on(); };
    for (int round = 0; std::ranges::any_of(asked, goes_on); ++round) {
      REQUIRE(round < 1000);
      requests_.run();
      for (size_t i = 0; i < asked.size(); ++i) take_events(*asked[i], &answers[i]);
      if (round % 8 == 7) REQUIRE(open_[random_() % kSessions]->truncate(0).ok());  // which has its pages
    }
    for (size_t i = 0; i < asked.size(); ++i) {
      take_events(*asked[i], &answers[i]);
      RequestResult result;
      REQUIRE(asked[i]->ended(&result));
      REQUIRE(result.status.ok());
      const bool whole = result.reason == StopReason::Length;
      REQUIRE((whole || result.reason == StopReason::Context));
      if (!whole && answers[i].empty()) continue;
      wanted[i].max_tokens = uint32_t(answers[i].size());
      REQUIRE(reference_.session->truncate(0).ok());  // so that there are pages for it
      const std::shared_ptr<Request> alone = alone_.add(std::move(wanted[i]), 100);
      alone_.run();
      Written expected;
      take_events(*alone, &expected);
      RequestResult of_alone;
      REQUIRE(alone->ended(&of_alone));
      INFO(of_alone.error);
      REQUIRE(of_alone.status.ok());
      REQUIRE(answers[i] == expected);
    }
  }
  void eval(Session& session) {
    std::vector<int32_t> text = text_of(session);
    const std::vector<int32_t> more = some(random_() % 4 ? 150 : 1);
    Status status;
    const std::vector<float> logits = logits_of(session, more, &status);
    if (!status.ok()) return full(session, status, text);
    text.insert(text.end(), more.begin(), more.end());
    REQUIRE(text_of(session) == text);
    REQUIRE(logits == reference_.after(text));
  }
  void generate(Session& session) {
    std::vector<int32_t> text = text_of(session);
    const std::vector<int32_t> more = some(30);
    GenerateOptions options;
    options.max_tokens = 4;
    options.ignore_end = true;
    GenerateResult result;
    const Status status = session.generate(more, options, &result);
    if (!status.ok()) return full(session, status, text);
    CHECK(result.prompt_tokens == more.size());
    const std::vector<int32_t> now = text_of(session);
    text.insert(text.end(), more.begin(), more.end());
    REQUIRE(std::equal(text.begin(), text.end(), now.begin()));
    for (size_t at = text.size(); at < now.size(); ++at) {
      const std::vector<float> logits = reference_.after(std::span(now).first(at));
      REQUIRE(now[at] == std::ranges::max_element(logits) - logits.begin());
    }
  }
  void truncate(Session& session) {
    std::vector<int32_t> text = text_of(session);
    const size_t position = text.size() - std::min<size_t>(text.size(), random_() % 300);
    REQUIRE(session.truncate(uint32_t(position)).ok());
    text.resize(position);
    REQUIRE(text_of(session) == text);
  }
  void fork() {
    const uint32_t to = random_() % kSessions, from = random_() % kSessions;
    if (to == from) return;
    open_[to].reset();
    const Status status = open_[from]->fork(&open_[to]);
    INFO(error_text());
    REQUIRE(status.ok());
    REQUIRE(text_of(*open_[to]) == text_of(*open_[from]));
  }
  void save_it(Session& session) {
    std::string bytes;
    const std::vector<int32_t> text = text_of(session);
    const Status status = save(session, &bytes);
    if (!status.ok()) return full(session, status, text);
    CHECK(bytes.size() == session.state_bytes());
    if (saved_.size() == 8) saved_.erase(saved_.begin());
    saved_.push_back({text, std::move(bytes)});
  }
  void restore_it(Session& session) {
    if (saved_.empty()) return;
    const Saved& saved = saved_[random_() % saved_.size()];
    const std::vector<int32_t> before = text_of(session);
    const Status status = restore(session, saved.bytes);
    if (!status.ok()) return full(session, status, before);
    REQUIRE(text_of(session) == saved.text);
  }

  struct Saved {
    std::vector<int32_t> text;
    std::string bytes;
  };
  const std::string file_;
  Reference reference_;
  const bool with_requests_;  // Windows of more sequences would leave nothing to group.
  Sessions sessions_;
  Requests requests_, alone_;  // the second ones one at a time, without a cache
  std::mt19937 random_;
  std::unique_ptr<Session> open_[kSessions];
  std::vector<Saved> saved_;
  std::vector<std::vector<int32_t>> asked_;
  uint32_t full_ = 0, again_ = 0;
  uint64_t cached_ = 0, set_back_ = 0;
};

Happened run_random_calls(std::span<const Windowed> models, int calls, uint32_t seed = 7) {
  Happened all;
  for (const Windowed& model : models) {
    INFO(model.golden << ", seed " << seed);
    RandomCalls random(model, seed);
    const Happened one = random.run(calls);
    all.full += one.full;
    all.set_back += one.set_back;
    random.check_clean();
  }
  return all;
}

}  // namespace

TEST_CASE("cache groups: random calls give the bits of reading a text from its beginning",
          "[engine][groups]") {
  CHECK(run_random_calls(kWindowedModels, 200).full > 0);
}

TEST_CASE("states: random calls give the bits of reading a text from its beginning", "[engine][groups]") {
  const Happened all = run_random_calls(kHybridModels, 200);
  CHECK(all.full > 0);
  CHECK(all.set_back > 0);
}

TEST_CASE("states: many random calls give the bits of reading a text from its beginning",
          "[.long][engine][groups]") {
  Happened states, windows;
  for (uint32_t seed = 1; seed <= 4; ++seed) {
    const Happened of_states = run_random_calls(kHybridModels, 500, seed);
    states.full += of_states.full;
    states.set_back += of_states.set_back;
    windows.full += run_random_calls(kWindowedModels, 500, seed).full;
  }
  CHECK(states.full > 0);
  CHECK(states.set_back > 0);
  CHECK(windows.full > 0);
}
