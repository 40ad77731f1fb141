// Batches that wait for each other are given on in an order in which none waits for a later one.
#include "runtime/held_queue.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <string>

using namespace greta;

namespace {

struct TestTimeline : StreamProgress {};

struct TestPoint {
  std::shared_ptr<TestTimeline> timeline;
  uint64_t value = 0;
};

struct TestBatch {
  TestPoint done;
  std::vector<TestPoint> waits;
  char name = 0;
};

struct TestEvent {
  TestPoint last;
};

// Gives batches on by their names.
class TestQueue : public HeldQueue<TestBatch> {
 public:
  std::string given;
  bool usable = true;

  void submit(std::vector<TestBatch> batches) {
    const std::lock_guard<std::mutex> lock(mutex_);
    hold(batches);
    CHECK(batches.empty());
    pump();
  }
  void close(TestTimeline& timeline) {
    const std::lock_guard<std::mutex> lock(mutex_);
    forget(timeline);
    pump();
  }
  size_t count_held() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return held();
  }
  Status wait(const TestPoint& point) {
    return wait_submitted(point, [&] { return usable ? Status{} : fail(Code::Device, "lost"); });
  }
  uint64_t submitted(const TestTimeline& timeline) { return submitted_by(timeline); }

 private:
  void pump() {
    while (const std::optional<TestBatch> batch = take_ready()) given += batch->name;
    changed_->notify_all();
  }
};

std::shared_ptr<TestTimeline> new_timeline() {
  auto timeline = std::make_shared<TestTimeline>();
  timeline->owner_thread = std::this_thread::get_id();
  return timeline;
}

}  // namespace

TEST_CASE("held queue: a batch goes when what it waits for has gone", "[runtime]") {
  TestQueue queue;
  const auto a = new_timeline(), b = new_timeline(), c = new_timeline();
  queue.submit({{{a, 1}, {{b, 1}}, 'a'}});
  queue.submit({{{c, 1}, {{a, 1}}, 'c'}});
  CHECK(queue.given.empty());
  CHECK(queue.count_held() == 2);
  CHECK(queue.submitted(*a) == 0);
  queue.submit({{{b, 1}, {}, 'b'}});
  CHECK(queue.given == "bac");
  CHECK(queue.count_held() == 0);
  CHECK(queue.submitted(*a) == 1);
}

TEST_CASE("held queue: batches of a stream keep their order", "[runtime]") {
  TestQueue queue;
  const auto a = new_timeline(), b = new_timeline();
  queue.submit({{{a, 1}, {{b, 1}}, '1'}, {{a, 2}, {}, '2'}});  // the second waits for nothing but the first
  CHECK(queue.given.empty());
  queue.submit({{{b, 1}, {}, 'b'}, {{b, 2}, {{a, 2}}, 'c'}});
  CHECK(queue.given == "b12c");
}

TEST_CASE("held queue: a stream that ends takes its batches along, and nobody waits for it", "[runtime]") {
  TestQueue queue;
  const auto a = new_timeline(), b = new_timeline(), c = new_timeline();
  queue.submit({{{a, 1}, {{c, 1}}, 'a'}});
  queue.submit({{{b, 1}, {{a, 1}}, 'b'}});
  queue.close(*a);
  CHECK(queue.given == "b");
  CHECK(queue.count_held() == 0);
  CHECK(queue.wait({a, 1}).ok());
  CHECK(queue.submitted(*a) == 0);  // it never came
}

TEST_CASE("held queue: a wait ends when the batch goes, and does not begin where it never could",
          "[runtime]") {
  TestQueue queue;
  const auto a = new_timeline(), b = new_timeline();
  queue.submit({{{a, 1}, {{b, 1}}, 'a'}});
  CHECK(queue.wait({a, 1}).code == Code::Argument);  // b is of this thread, which has not submitted it
  CHECK_THAT(error_text(), Catch::Matchers::ContainsSubstring("did not submit"));
  b->owner_thread = {};  // another thread's
  std::thread other([&] { queue.submit({{{b, 1}, {}, 'b'}}); });
  CHECK(queue.wait({a, 1}).ok());
  other.join();
  CHECK(queue.given == "ba");

  const auto c = new_timeline(), d = new_timeline();
  d->owner_thread = {};
  queue.submit({{{c, 1}, {{d, 1}}, 'c'}});
  queue.usable = false;
  CHECK(queue.wait({c, 1}).code == Code::Device);
}

TEST_CASE("held queue: an event is the point of its last signal", "[runtime]") {
  TestQueue queue;
  const auto a = new_timeline();
  TestEvent event;
  CHECK(!queue.event_point(event).timeline);
  queue.set_event(event, {a, 3});
  CHECK(queue.event_point(event).timeline == a);
  CHECK(queue.event_point(event).value == 3);
}
