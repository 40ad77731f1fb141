// States of the prefix cache in the host's memory and in a folder: a text goes on from them as if they had
// never left the device.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <cstdio>

#include "engine/groups_rig.h"
#include "platform/files/folder.h"
#include "support/gguf_writer.h"

using namespace greta;
using namespace greta::test;

namespace {

// A device with room for two states beside those of the sequences, and pages enough.
struct StoredStates : Rig {
  TemporaryFolder folder;
  SchedulerOptions options;

  StoredStates(const std::string& file, bool ahead)
      : Rig({.context = 512, .sequences = 2, .cache_tokens = 64 * 64, .checkpoint_bytes = 1}, {}, ahead,
            file) {
    REQUIRE(engine.executor->plan().checkpoints == 2);
  }
  void restart() {
    scheduler.reset();
    CHECK(engine.executor->states()->free_pages() == engine.executor->plan().states);
    scheduler = std::make_unique<Scheduler>(*engine.executor, options);
  }
  void use_folder(uint64_t bytes = uint64_t(64) << 20) {
    options.folder = {folder.path() + "/pages", bytes, 1};
    restart();
  }
  Answer ask(uint32_t seed) {
    const auto handle = add(request_of(some_tokens(200, seed), 4));
    run();
    return answer_of(*handle);
  }
  // Asks for one text, then for others, whose states need the room.
  void ask_many() {
    for (uint32_t seed = 1; seed <= 8; ++seed) CHECK(ask(seed).result.cached_tokens == 0);
  }
  std::vector<FolderFile> files() {
    return list_files(options.folder.folder, "/greta-????????????????.kvpage");
  }
};

std::string hybrid(size_t which) { return windowed(kHybridModels[which].golden, nullptr, 0); }

void damage(const std::string& path) {
  std::FILE* file = std::fopen(path.c_str(), "r+b");
  REQUIRE(file);
  REQUIRE(std::fseek(file, -1, SEEK_END) == 0);
  const int last = std::fgetc(file);
  REQUIRE(std::fseek(file, -1, SEEK_END) == 0);
  REQUIRE(std::fputc(last ^ 1, file) != EOF);
  REQUIRE(std::fclose(file) == 0);
}

}  // namespace

TEST_CASE("states: those that the device has no room for move to the host's memory",
          "[serve][groups][one-device]") {
  const std::string file = hybrid(GENERATE(0, 1, 2));
  StoredStates rig(file, GENERATE(false, true));
  std::vector<std::vector<int32_t>> expected;
  for (uint32_t seed = 1; seed <= 8; ++seed)
    expected.push_back(alone(rig, request_of(some_tokens(200, seed), 4)));
  rig.ask_many();
  CHECK(rig.ask(1).result.cached_tokens == 0);  // its state is gone
  rig.options.host_cache_bytes = uint64_t(1) << 20;
  rig.restart();
  rig.ask_many();
  for (uint32_t seed = 1; seed <= 8; ++seed) {
    const Answer answer = rig.ask(seed);
    CHECK(answer.result.cached_tokens == 192);
    CHECK(answer.tokens == expected[seed - 1]);
  }
  rig.check_clean();
  rig.restart();
}

TEST_CASE("states: they outlive the scheduler in a folder, and a damaged one is computed again",
          "[serve][groups][one-device]") {
  const std::string file = hybrid(GENERATE(0, 1, 2));
  StoredStates rig(file, GENERATE(false, true));
  rig.options.host_cache_bytes = GENERATE(uint64_t(0), uint64_t(1) << 20);
  const std::vector<int32_t> expected = alone(rig, request_of(some_tokens(200, 1), 4));
  rig.use_folder();
  CHECK(rig.ask(1).result.cached_tokens == 0);
  rig.restart();
  REQUIRE(rig.files().size() == 4);  // three pages and a state
  const auto again = [&](uint32_t cached) {
    const Answer answer = rig.ask(1);
    CHECK(answer.result.cached_tokens == cached);
    CHECK(answer.tokens == expected);
  };
  again(192);
  CHECK(rig.scheduler->counts().brought_back == 3);
  again(192);
  for (size_t i = 0; i < 4; ++i) {
    INFO("file " << i);
    rig.restart();
    REQUIRE(rig.files().size() == 4);
    damage(rig.files()[i].path);
    again(0);
    again(192);
  }
  rig.restart();
  const std::vector<int32_t> text = some_tokens(200, 1);
  CHECK(rig.scheduler->forget(0, text) == 192);
  CHECK(rig.files().empty());
  again(0);
  rig.check_clean();
  rig.restart();
}

TEST_CASE("states: where neither memory nor the folder has room, texts are read anew",
          "[serve][groups][one-device]") {
  const std::string file = hybrid(GENERATE(0, 1, 2));
  StoredStates rig(file, false);
  rig.use_folder(1);
  const std::vector<int32_t> expected = alone(rig, request_of(some_tokens(200, 1), 4));
  rig.ask_many();
  rig.restart();
  CHECK(rig.files().empty());
  const Answer answer = rig.ask(1);
  CHECK(answer.result.cached_tokens == 0);
  CHECK(answer.tokens == expected);
}

TEST_CASE("states: answers do not depend on what moves between device, host and folder",
          "[serve][groups][one-device]") {
  const std::string file = hybrid(GENERATE(0, 1, 2));
  const ExecutorOptions sizes{
      .context = 1024, .sequences = 3, .cache_tokens = 1024, .step_tokens = 64, .checkpoint_bytes = 1};
  Rig reference(sizes, {}, false, file);
  TemporaryFolder folder;
  SchedulerOptions options;
  options.chunk_tokens = 64;
  options.folder = {folder.path() + "/pages", uint64_t(4) << 20, 1};
  Rig rig(sizes, {}, GENERATE(false, true), file);
  options.host_cache_bytes = GENERATE(uint64_t(0), uint64_t(6)) *
                             (rig.engine.executor->kept_state_bytes() + rig.engine.executor->page_bytes());
  rig.scheduler.reset();
  rig.scheduler = std::make_unique<Scheduler>(*rig.engine.executor, options);
  compare_answers(reference, rig);
  CHECK(rig.scheduler->counts().cached_tokens > 0);
  CHECK(rig.scheduler->counts().brought_back > 0);
  rig.check_clean();
}

TEST_CASE("states: each copy to the host that fails once harms no answer", "[serve][groups][faults]") {
  const std::string file = hybrid(GENERATE(0, 1, 2));
  StoredStates rig(file, false);
  rig.options.host_cache_bytes = uint64_t(1) << 20;
  std::vector<std::vector<int32_t>> expected;
  for (uint32_t seed = 1; seed <= 5; ++seed)
    expected.push_back(alone(rig, request_of(some_tokens(200, seed), 4)));
  uint64_t at = 1, whole = 0, failed = 0;
  for (bool reached = true; reached; at += 3) {
    rig.restart();
    rig.submissions.count = 0;
    rig.submissions.fail_at = at;
    for (uint32_t i = 0; i < 10; ++i) {
      const Answer answer = rig.ask(1 + i % 5);
      const bool ok = answer.result.status.ok();
      CHECK((ok ? answer.tokens == expected[i % 5] : answer.result.status.code == Code::Memory));
      whole += ok, failed += !ok;
    }
    reached = rig.submissions.count >= at;
    rig.submissions.fail_at = 0;
    rig.check_clean();
  }
  CHECK(at > 30);
  CHECK(whole > 5 * failed);
  rig.restart();
}
