// The order in which requests are admitted, without a scheduler.
#include "engine/serve/waiting_line.h"

#include <catch2/catch_test_macros.hpp>

#include "engine/serve_rig.h"

using namespace greta;
using namespace greta::test;

namespace {

// Requests that nobody runs, in a line.
struct Line {
  Rig rig{{.context = 256, .sequences = 1, .cache_tokens = 256}};
  WaitingLine line{100};
  std::vector<std::shared_ptr<Request>> requests;

  Request& add(int32_t priority) {
    RequestOptions options = request_of({5}, 1);
    options.priority = priority;
    auto& request = requests.emplace_back();
    REQUIRE(Request::open(*rig.engine.model, 256, 10, rig.bell, std::move(options), &request).ok());
    line.add(request.get());
    return *request;
  }
};

}  // namespace

TEST_CASE("waiting line: a request moves up one level after just so many admissions", "[serve]") {
  for (int32_t priority = -int32_t(kMaxPriority); priority < int32_t(kMaxPriority); ++priority) {
    CAPTURE(priority);
    Line l;
    for (uint64_t i = 0; i < WaitingLine::kPatience; ++i) l.add(int32_t(kMaxPriority));
    const Request& patient = l.add(priority);
    for (uint64_t i = 1; i < WaitingLine::kPatience; ++i) l.line.admit_front();
    const Request& before = l.add(priority + 1);
    l.line.admit_front();
    const Request& behind = l.add(priority + 1);
    l.line.number();
    CHECK(before.line_place() < patient.line_place());
    CHECK(patient.line_place() < behind.line_place());
  }
}

TEST_CASE("waiting line: an admission gives those who wait new places", "[serve]") {
  Line l;
  const Request& first = l.add(0);
  const Request& second = l.add(0);
  l.line.number();
  CHECK(first.line_place() == 0);
  CHECK(second.line_place() == 1);
  l.line.admit_front();
  l.line.number();
  CHECK(second.line_place() == 0);
  CHECK(l.line.front() == &second);
  CHECK(l.line.size() == 1);
}
