// How long a reader of events waits.
#include "engine/serve/mailbox.h"

#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <future>
#include <thread>

#include "support/failing_threads.h"

using namespace greta;

// Where a thread's waits say when they end.
[[maybe_unused]] static thread_local std::atomic<uint64_t>* told_end = nullptr;

#if GRETA_THREADS_CAN_FAIL
// The linker takes this one before the C library's.
extern "C" int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                                      const timespec* end) {
  using Wait = int (*)(pthread_cond_t*, pthread_mutex_t*, clockid_t, const timespec*);
  static const Wait wait = reinterpret_cast<Wait>(dlsym(RTLD_NEXT, "pthread_cond_clockwait"));
  if (told_end) *told_end = uint64_t(end->tv_sec) * 1'000'000'000 + uint64_t(end->tv_nsec);
  return wait(condition, mutex, clock, end);
}
#endif

namespace {

constexpr uint64_t kHour = uint64_t(3600) * 1'000'000'000;

// Waits for an event, which comes after a while. Gives when the wait would have ended, 0: never.
uint64_t end_of_wait(uint64_t timeout_ns) {
  Mailbox mailbox(4, std::make_shared<Doorbell>());
  std::atomic<uint64_t> end = 0;
  std::thread reader([&] {
    RequestEvent event;
    told_end = &end;
    CHECK(mailbox.take(timeout_ns, &event));
  });
  for (int i = 0; i < 200 && !end; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  mailbox.put({});
  reader.join();
  return end;
}

}  // namespace

TEST_CASE("serve: a wait for an event has an end, however long it is", "[serve]") {
  if (!GRETA_THREADS_CAN_FAIL) SKIP("sanitizers wait themselves");
  for (const uint64_t hours : {1, 2, 24, 24 * 365 * 100}) {
    CAPTURE(hours);
    const uint64_t before = now_ns(), end = end_of_wait(hours * kHour);
    CHECK(end >= before + hours * kHour);
    CHECK(end <= now_ns() + hours * kHour);
  }
  for (const uint64_t beyond : {UINT64_MAX, UINT64_MAX - 1, UINT64_MAX / 2})  // the end of the clock
    CHECK(end_of_wait(beyond) == 0);
}

// Whether the bell was rung since the last wait at it.
static bool was_rung(Doorbell& bell) {
  auto waits = std::async(std::launch::async, [&] { bell.wait(); });
  if (waits.wait_for(std::chrono::seconds(2)) == std::future_status::ready) return true;
  bell.ring();
  return false;
}

TEST_CASE("serve: the writer is told when a full box has room, and when half of it is read", "[serve]") {
  constexpr size_t kCapacity = 8;
  const auto bell = std::make_shared<Doorbell>();
  Mailbox mailbox(kCapacity, bell);
  for (size_t i = 0; i < kCapacity; ++i) mailbox.put({});
  CHECK(mailbox.full());
  RequestEvent event;
  CHECK(mailbox.take(0, &event));
  CHECK(!mailbox.full());
  CHECK(was_rung(*bell));
  for (size_t left = kCapacity - 1; left > kCapacity / 2; --left) CHECK(mailbox.take(0, &event));
  CHECK(mailbox.half_read());
  CHECK(was_rung(*bell));
}

TEST_CASE("serve: of two reports of progress that nobody has read, the last one stays", "[serve]") {
  Mailbox mailbox(8, std::make_shared<Doorbell>());
  const auto put = [&](RequestEvent::Kind kind, uint32_t read_tokens) {
    RequestEvent event;
    event.kind = kind;
    event.progress.read_tokens = read_tokens;
    mailbox.put(std::move(event));
  };
  put(RequestEvent::Kind::Progress, 1);
  put(RequestEvent::Kind::Progress, 2);
  put(RequestEvent::Kind::Text, 0);
  put(RequestEvent::Kind::Progress, 3);
  RequestEvent event;
  for (const uint32_t read_tokens : {2u, 0u, 3u}) {
    REQUIRE(mailbox.take(0, &event));
    CHECK(event.progress.read_tokens == read_tokens);
  }
  CHECK(!mailbox.take(0, &event));
}

TEST_CASE("serve: a reader is told once of what was put into its empty box, and of the end", "[serve]") {
  int calls = 0;
  const Wake wake{[](void* user, void*) { ++*static_cast<int*>(user); }, &calls, nullptr};
  Mailbox mailbox(8, std::make_shared<Doorbell>(), wake);
  mailbox.put({});
  mailbox.put({});
  CHECK(calls == 0);  // those of other boxes come first
  mailbox.tell();
  mailbox.tell();
  CHECK(calls == 1);
  RequestEvent event;
  uint32_t unread = 9;
  REQUIRE(mailbox.take(0, &event, &unread));
  CHECK(unread == 1);
  mailbox.put({});  // into a box that is not empty
  mailbox.tell();
  CHECK(calls == 1);
  REQUIRE(mailbox.take(0, &event, &unread));
  REQUIRE(mailbox.take(0, &event, &unread));
  CHECK(unread == 0);
  mailbox.put({});
  mailbox.end({});  // tells of both
  CHECK(calls == 2);
  REQUIRE(mailbox.take(0, &event, &unread));
  CHECK(unread == 1);  // the end
  RequestResult result;
  CHECK(mailbox.ended(&result));
}

TEST_CASE("serve: events come out in their order, however many wait", "[serve]") {
  constexpr uint32_t kEvents = 5000;
  EventQueue queue;
  uint32_t put = 0, taken = 0;
  const auto take = [&] {
    RequestEvent event;
    queue.pop(&event);
    CHECK(event.progress.read_tokens == taken++);
  };
  while (put < kEvents) {
    for (uint32_t i = 0; i < put % 7 + 1; ++i) {
      RequestEvent event;
      event.progress.read_tokens = put++;
      queue.push(std::move(event));
    }
    for (uint32_t i = 0; i < put % 5 && !queue.empty(); ++i) take();
    REQUIRE(queue.size() == put - taken);
  }
  while (!queue.empty()) take();
  CHECK(taken == put);
}
