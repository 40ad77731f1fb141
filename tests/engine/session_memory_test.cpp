// Host memory that is refused at every place of a call on a session whose layers keep states or see a window:
// the session has what it had, and goes on with the bits of reading its text from the beginning.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <map>

#include "engine/groups_rig.h"
#include "support/failing_memory.h"
#include "support/saved_session.h"

using namespace greta;
using namespace greta::test;

namespace {

std::vector<int32_t> join(std::vector<int32_t> text, std::span<const int32_t> more) {
  text.insert(text.end(), more.begin(), more.end());
  return text;
}

// A session with a text, beside which there are a saved one and a place for a fork.
struct Case {
  const std::string file;
  Reference reference{file};
  Sessions sessions{file, 4, 1536};
  std::unique_ptr<Session> session = sessions.open(), fork;
  const std::vector<int32_t> text = some_tokens(150, 1), more = some_tokens(80, 2), next = some_tokens(3, 3);
  std::string saved, bytes;
  const std::vector<int32_t> saved_text = some_tokens(90, 4);

  explicit Case(const Windowed& model) : file(windowed(model.golden, model.key, model.window)) {
    const auto other = sessions.open();
    read(*other, saved_text);
    REQUIRE(save(*other, &saved).ok());
    // In two parts, so that there is a checkpoint between them.
    read(*session, std::span(text).first(100));
    read(*session, std::span(text).subspan(100));
  }
  static void read(Session& session, std::span<const int32_t> tokens) {
    Status status;
    (void)logits_of(session, tokens, &status);
    REQUIRE(status.ok());
  }
  // It has this text, and goes on as a session that has read nothing else.
  void check(Session& of, const std::vector<int32_t>& expected) {
    REQUIRE(std::ranges::equal(of.tokens(), expected));
    std::unique_ptr<Session> copy;
    REQUIRE(of.fork(&copy).ok());
    Status status;
    const std::vector<float> logits = logits_of(*copy, next, &status);
    INFO(error_text());
    REQUIRE(status.ok());
    auto& known = known_[expected];
    if (known.empty()) known = reference.after(join(expected, next));
    REQUIRE(logits == known);
  }

 private:
  std::map<std::vector<int32_t>, std::vector<float>> known_;
};

struct SessionCall {
  const char* name;
  Status (*run)(Case& c);
  void (*check)(Case& c);  // that it was done
};

const SessionCall kCalls[] = {
    {"eval",
     [](Case& c) {
       Status status;
       (void)logits_of(*c.session, c.more, &status);
       return status;
     },
     [](Case& c) { c.check(*c.session, join(c.text, c.more)); }},
    {"generate",
     [](Case& c) {
       GenerateOptions options;
       options.max_tokens = 4;
       options.ignore_end = true;
       GenerateResult result;
       return c.session->generate(c.more, options, &result);
     },
     [](Case& c) {
       const std::span<const int32_t> now = c.session->tokens();
       REQUIRE(std::ranges::equal(now.first(c.text.size() + c.more.size()), join(c.text, c.more)));
       c.check(*c.session, {now.begin(), now.end()});
     }},
    {"truncate, and read on",
     [](Case& c) {
       GRETA_TRY(c.session->truncate(uint32_t(c.text.size()) - 20));
       Status status;
       (void)logits_of(*c.session, std::span(c.text).last(20), &status);
       return status;
     },
     [](Case& c) { c.check(*c.session, c.text); }},
    {"fork", [](Case& c) { return c.session->fork(&c.fork); },
     [](Case& c) {
       c.check(*c.session, c.text);
       c.check(*c.fork, c.text);
     }},
    {"save",
     [](Case& c) {
       c.bytes.clear();
       return save(*c.session, &c.bytes);
     },
     [](Case& c) {
       c.check(*c.session, c.text);
       REQUIRE(restore(*c.session, c.bytes).ok());
       c.check(*c.session, c.text);
     }},
    {"restore", [](Case& c) { return restore(*c.session, c.saved); },
     [](Case& c) { c.check(*c.session, c.saved_text); }},
};

}  // namespace

TEST_CASE("states: a session whose memory is refused at any place of a call has what it had",
          "[engine][groups][memory]") {
  const Windowed model = GENERATE(kHybridModels[0], kHybridModels[1], kHybridModels[2], kWindowedModels[0]);
  const size_t number = GENERATE(range(size_t(0), std::size(kCalls)));
  const SessionCall& call = kCalls[number];
  INFO(model.golden << ", " << call.name);
  Case c(model);
  uint64_t failures = 0;
  for (uint64_t at = 1;; ++at) {
    INFO("allocation " << at);
    Status status;
    {
      const FailingMemory failing(at);
      status = guarded([&] { return call.run(c); });
      if (!failing.failed()) REQUIRE(status.ok());
    }
    if (status.ok()) break;
    REQUIRE(status.code == Code::Memory);
    ++failures;
    // A text that was made shorter may not have been read on.
    const std::span<const int32_t> held = c.session->tokens();
    if (number == 2 && held.size() < c.text.size()) {
      c.check(*c.session, {held.begin(), held.end()});
      Case::read(*c.session, std::span(c.text).subspan(held.size()));
    }
    c.check(*c.session, c.text);
  }
  CHECK(failures > 0);
  call.check(c);
}
