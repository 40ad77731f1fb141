// Pages that the prefix cache gives up go to the host's memory, and come back to the bit.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <algorithm>

#include "engine/serve_rig.h"

using namespace greta;
using namespace greta::test;

namespace {

constexpr uint32_t kDevicePages = 8;  // pages on the device

// A scheduler whose host has room for `pages` pages.
struct HostRig : Rig {
  explicit HostRig(uint64_t pages, bool ahead = false)
      : Rig({.context = 256, .sequences = 2, .cache_tokens = 64 * kDevicePages}, {}, ahead) {
    scheduler = std::make_unique<Scheduler>(
        *engine.executor,
        SchedulerOptions{.host_cache_bytes = pages * engine.executor->page_bytes() + 1});
  }
  Answer ask(const RequestOptions& options) {
    const auto request = add(options);
    run();
    return answer_of(*request);
  }
  uint32_t kept() const { return scheduler->index().kept_pages(); }
};

// Three full pages, and a little more.
RequestOptions text(uint32_t seed) { return request_of(some_tokens(200, seed), 4, seed); }

}  // namespace

TEST_CASE("serve: pages that were given up come back from the host", "[serve]") {
  HostRig rig(32, GENERATE(false, true));
  std::vector<std::vector<int32_t>> expected;
  for (uint32_t i = 0; i < 6; ++i) expected.push_back(alone(rig, text(i)));
  for (uint32_t i = 0; i < 6; ++i) CHECK(rig.ask(text(i)).tokens == expected[i]);
  CHECK(rig.kept() + rig.scheduler->index().idle_pages() == 6 * 3);  // none was lost
  CHECK(rig.kept() >= 6 * 3 - kDevicePages);
  for (uint32_t i = 0; i < 6; ++i) {
    const uint64_t rows = rig.scheduler->counts().rows;
    const Answer again = rig.ask(text(i));
    CHECK(again.tokens == expected[i]);
    CHECK(again.result.cached_tokens == 192);
    CHECK(rig.scheduler->counts().rows - rows == 8 + 3);
  }
  CHECK(rig.scheduler->counts().brought_back >= 15);
  rig.check_clean();
}

TEST_CASE("serve: the host forgets what was not used for longest", "[serve]") {
  HostRig rig(4);
  for (uint32_t i = 0; i < 8; ++i) rig.ask(text(i));
  CHECK(rig.kept() == 4);
  CHECK(rig.ask(text(0)).result.cached_tokens == 0);
  CHECK(rig.kept() == 4);
  CHECK(rig.ask(text(7)).result.cached_tokens > 0);
  rig.check_clean();
}

TEST_CASE("serve: without room on the host pages are lost, and nothing else", "[serve]") {
  HostRig rig(0);
  const std::vector<int32_t> expected = alone(rig, text(0));
  for (uint32_t i = 0; i < 6; ++i) rig.ask(text(i));
  CHECK(rig.kept() == 0);
  const Answer again = rig.ask(text(0));
  CHECK(again.result.cached_tokens == 0);
  CHECK(again.tokens == expected);
  rig.check_clean();
}

TEST_CASE("serve: requests that share pages of the host bring them back once", "[serve]") {
  HostRig rig(32);
  RequestOptions one = text(0), other = text(0);
  other.tokens[199] ^= 1;
  const std::vector<int32_t> expected = alone(rig, other);
  for (uint32_t i = 0; i < 6; ++i) rig.ask(text(i));
  const auto first = rig.add(one), second = rig.add(other);
  rig.run();
  CHECK(answer_of(*first).result.cached_tokens == 192);
  const Answer shared = answer_of(*second);
  CHECK(shared.result.cached_tokens == 192);
  CHECK(shared.tokens == expected);
  CHECK(rig.scheduler->counts().brought_back == 3);
  rig.check_clean();
}

TEST_CASE("serve: a copy to or from the host that fails costs a computation, not an answer", "[serve]") {
  HostRig rig(32);
  std::vector<std::vector<int32_t>> expected;
  for (uint32_t i = 0; i < 4; ++i) expected.push_back(alone(rig, text(i)));
  const auto all = [&] {
    for (uint32_t i = 0; i < 4; ++i) {
      const Answer answer = rig.ask(text(i));
      if (answer.result.status.ok()) CHECK(answer.tokens == expected[i]);
      if (!answer.result.status.ok()) CHECK(answer.result.status.code == Code::Memory);
    }
  };
  all();
  const uint64_t before = rig.submissions.count;
  all();
  const uint64_t submissions = rig.submissions.count - before;
  REQUIRE(submissions > 20);
  for (uint64_t i = 1; i <= submissions; ++i) {
    rig.submissions.fail_at = rig.submissions.count + i;
    all();
  }
  rig.submissions.fail_at = 0;
  for (uint32_t i = 0; i < 4; ++i) CHECK(rig.ask(text(i)).tokens == expected[i]);
  rig.check_clean();
}
