// Who may have requests in a service: quotas, deadlines for readers that stay away, and stopping.
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <chrono>
#include <mutex>
#include <thread>

#include "support/api_services.h"

using namespace greta::test;
using Catch::Matchers::ContainsSubstring;

namespace {

const std::vector<int32_t> kPrompt = {1, 4, 2, 8};

greta_service_options places(uint32_t all, uint32_t of_salt = 0) {
  auto options = Served::own_thread();
  options.max_requests = all;
  options.salt_requests = of_salt;
  options.event_capacity = 4;
  return options;
}

// A request that nobody reads, so that it waits with its first events.
greta_request* leave_unread(greta_service* service, uint64_t salt = 0) {
  auto options = ask(kPrompt, 100);
  options.salt = salt;
  return add(service, options);
}

greta_status try_to_add(greta_service* service, uint64_t salt, greta_request** out) {
  auto options = ask(kPrompt, 3);
  options.salt = salt;
  return greta_service_add(service, &options, out);
}

// Tries until there is a place.
greta_request* add_in_time(greta_service* service, uint64_t salt = 0) {
  greta_request* request = nullptr;
  greta_status status = GRETA_ERROR_BUSY;
  for (int tries = 0; status == GRETA_ERROR_BUSY && tries < 10'000; ++tries) {
    status = try_to_add(service, salt, &request);
    if (status) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  INFO(greta_error_text());
  REQUIRE(status == GRETA_OK);
  return request;
}

}  // namespace

TEST_CASE("service: a client that reads nothing does not keep all places", "[api][serve]") {
  auto options = places(4);
  options.unread_ms = 1;
  Served s(options);
  std::vector<greta_request*> unread;
  for (int i = 0; i < 4; ++i) unread.push_back(leave_unread(s.service));
  for (int i = 0; i < 3; ++i) {
    const Read read = read_all(add_in_time(s.service));
    CHECK(read.status == GRETA_OK);
    CHECK(read.tokens.size() == 3);
  }
  // One gave up its place for the first of the three. The others wait for their reader.
  size_t ended = 0;
  for (greta_request* request : unread) {
    const Read read = read_all(request);
    CHECK(read.status == GRETA_OK);
    ended += read.result.reason == GRETA_STOP_UNREAD;
    CHECK((read.result.reason == GRETA_STOP_UNREAD ? read.tokens.size() < 100 : read.tokens.size() == 100));
  }
  CHECK(ended == 1);
}

TEST_CASE("service: readers that stay away within their time keep their places", "[api][serve]") {
  auto options = places(2);
  options.unread_ms = GENERATE(0u, UINT32_MAX);
  Served s(options);
  greta_request *first = leave_unread(s.service), *second = leave_unread(s.service), *third = nullptr;
  for (int i = 0; i < 20; ++i) {
    CHECK(try_to_add(s.service, 0, &third) == GRETA_ERROR_BUSY);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  CHECK_THAT(greta_error_text(), ContainsSubstring("2 requests wait or run"));
  CHECK(read_all(first).tokens.size() == 100);
  CHECK(read_all(second).tokens.size() == 100);
}

// CVE-2026-9540.
TEST_CASE("service: one salt does not get all places", "[api][serve]") {
  const uint32_t quota = GENERATE(0u, 3u);  // the default is a half
  Served s(places(8, quota));
  const size_t most = quota ? quota : 4;
  std::vector<greta_request*> greedy;
  for (size_t i = 0; i < most; ++i) greedy.push_back(leave_unread(s.service, 7));
  greta_request* more = nullptr;
  CHECK(try_to_add(s.service, 7, &more) == GRETA_ERROR_BUSY);
  CHECK_THAT(greta_error_text(), ContainsSubstring("of this salt"));
  CHECK(read_all(add_in_time(s.service, 8)).tokens.size() == 3);
  for (size_t i = most; i < 8; ++i) greedy.push_back(leave_unread(s.service));  // the salt 0 has no quota
  CHECK(try_to_add(s.service, 8, &more) == GRETA_ERROR_BUSY);
  for (greta_request* request : greedy) greta_request_close(request);
}

TEST_CASE("service: a quota that is larger than the service is refused", "[api][serve]") {
  Objects o;
  REQUIRE(o.load() == GRETA_OK);
  auto options = places(8, 9);
  greta_service* service = nullptr;
  CHECK(greta_service_open(o.model, &options, &service) == GRETA_ERROR_ARGUMENT);
  CHECK_THAT(greta_error_text(), ContainsSubstring("salt_requests is 9"));
}

TEST_CASE("service: a request that has ended or is closed counts no longer", "[api][serve]") {
  Served s(places(3, 3));
  for (int round = 0; round < 100; ++round) {
    greta_request* requests[3];
    for (greta_request*& request : requests) request = add(s.service, ask(kPrompt, 3));
    CHECK(read_all(requests[0]).tokens.size() == 3);
    for (int i = 1; i < 3; ++i) greta_request_close(requests[i]);
  }
}

TEST_CASE("service: closed requests do not pile up where nothing runs", "[api][serve]") {
  auto options = places(2);
  options.own_thread = 0;
  Served s(options);
  for (int round = 0; round < 100; ++round)
    for (int i = 0; i < 2; ++i) greta_request_close(add(s.service, ask(kPrompt, 3)));
  auto info = sized<greta_service_info>();
  REQUIRE(greta_service_describe(s.service, &info) == GRETA_OK);
  CHECK(info.waiting <= 2);
}

TEST_CASE("service: a full queue refuses before it renders the template", "[api][serve]") {
  Served s(places(1));
  greta_request* unread = leave_unread(s.service);
  const greta_message strange = {"nobody", "x", "no JSON"};
  auto options = sized<greta_request_options>();
  options.messages = &strange, options.message_count = 1;
  greta_request* request = nullptr;
  CHECK(greta_service_add(s.service, &options, &request) == GRETA_ERROR_BUSY);
  greta_request_close(unread);
  CHECK(greta_service_add(s.service, &options, &request) == GRETA_ERROR_ARGUMENT);
  read_all(add(s.service, ask(kPrompt, 3)));  // what was refused keeps no place
}

TEST_CASE("service: a service with a thread of its own goes on after it was stopped", "[api][serve]") {
  Served s;
  CHECK(read_all(add(s.service, ask(kPrompt, 3))).tokens.size() == 3);
  greta_service_stop(s.service);
  for (int round = 0; round < 3; ++round) {  // the first one waits for the service's own thread to end
    greta_status ran = GRETA_ERROR_DEVICE;
    std::thread host([&] { ran = greta_service_run(s.service); });
    CHECK(read_all(add(s.service, ask(kPrompt, 20))).tokens.size() == 20);
    greta_service_stop(s.service);
    host.join();
    CHECK(ran == GRETA_OK);
  }
}
