// Pages of the prefix cache in a folder: they outlive the scheduler, and nothing in the folder is trusted.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <cstdio>

#include "engine/serve_rig.h"
#include "platform/files/folder.h"
#include "support/gguf_writer.h"

using namespace greta;
using namespace greta::test;

namespace {

struct FolderRig : Rig {
  TemporaryFolder folder;
  SchedulerOptions options;

  FolderRig() : Rig({.context = 256, .sequences = 2, .cache_tokens = 64 * 8}) {
    options.folder = {folder.path() + "/pages", uint64_t(64) << 20, 1};
    restart();
  }
  void restart() {
    scheduler.reset();
    scheduler = std::make_unique<Scheduler>(*engine.executor, options);
  }
  Answer ask(uint32_t seed, uint64_t salt = 0) {
    RequestOptions request = request_of(some_tokens(200, seed), 4, seed);
    request.salt = salt;
    const auto handle = add(request);
    run();
    return answer_of(*handle);
  }
  std::vector<FolderFile> files() {
    return list_files(options.folder.folder, "/greta-????????????????.kvpage");
  }
};

void change_file(const std::string& path, const std::string& bytes) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  REQUIRE(file);
  REQUIRE(std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size());
  REQUIRE(std::fclose(file) == 0);
}

std::string bytes_of(const std::string& path) {
  File file;
  REQUIRE(file.open(path.c_str()).ok());
  std::string bytes(file.size(), 0);
  REQUIRE(file.read_at(0, bytes.data(), bytes.size()).ok());
  return bytes;
}

}  // namespace

TEST_CASE("serve: pages outlive the scheduler in a folder", "[serve]") {
  FolderRig rig;
  const uint64_t host = GENERATE(0, 1);
  rig.options.host_cache_bytes = host * 5 * rig.engine.executor->page_bytes();
  rig.restart();
  const Answer before = rig.ask(1);
  CHECK(before.result.cached_tokens == 0);
  for (uint32_t seed = 2; seed < 6; ++seed) rig.ask(seed);  // more than the device has room for
  rig.restart();
  CHECK(rig.files().size() == 5 * 3);
  for (int turn = 0; turn < 2; ++turn) {
    const Answer after = rig.ask(1);
    CHECK(after.result.cached_tokens == 192);
    CHECK(after.tokens == before.tokens);
  }
  CHECK(rig.scheduler->counts().brought_back == 3);  // the second time they were on the device
  CHECK(rig.ask(1, 7).result.cached_tokens == 0);    // another salt
  rig.check_clean();
}

TEST_CASE("serve: pages of another library, model or folder are not used", "[serve]") {
  FolderRig rig;
  rig.ask(1);
  rig.options.folder.version = 2;
  rig.restart();
  CHECK(rig.ask(1).result.cached_tokens == 0);

  TinyShape shape;
  shape.seed += 1;
  EngineOptions other;
  other.threads = 1;
  other.executor = {.context = 256, .sequences = 2, .key_type = 0, .value_type = 0, .cache_tokens = 64 * 8};
  const TinyModel model = make_tiny(shape);
  Engine engine;
  open_engine(model.file, other, &engine);
  PageFolder pages(*engine.executor, rig.options.folder);
  const std::vector<int32_t> text = some_tokens(64, 1);
  CHECK(!pages.has(0, text));
}

TEST_CASE("serve: a file of a page that was changed is removed, and the page computed", "[serve]") {
  FolderRig rig;
  const std::vector<int32_t> expected = rig.ask(1).tokens;
  rig.restart();
  const std::vector<FolderFile> files = rig.files();
  REQUIRE(files.size() == 3);
  std::vector<std::string> whole;
  for (const FolderFile& file : files) whole.push_back(bytes_of(file.path));
  const auto asked = [&] {
    rig.restart();  // its files are read anew, and written again at its end
    const Answer answer = rig.ask(1);
    CHECK(answer.tokens == expected);
    return answer.result.cached_tokens;
  };
  CHECK(asked() == 192);
  for (size_t f = 0; f < files.size(); ++f) {
    const size_t size = whole[f].size();
    for (const size_t at : {size_t(0), size_t(9), size_t(40), size_t(100), size_t(112), size / 2, size - 1}) {
      std::string wrong = whole[f];
      wrong[at] = char(wrong[at] ^ 0x10);
      rig.scheduler.reset();
      change_file(files[f].path, wrong);
      CHECK(asked() < 192);
    }
    for (const size_t length : {size_t(0), size_t(111), size_t(112), size - 1}) {
      rig.scheduler.reset();
      change_file(files[f].path, whole[f].substr(0, length));
      CHECK(asked() < 192);
    }
    rig.scheduler.reset();
    change_file(files[f].path, whole[f] + "x");
    CHECK(asked() < 192);
  }
  CHECK(asked() == 192);
}

TEST_CASE("serve: the folder of pages stays within its limit", "[serve]") {
  FolderRig rig;
  rig.ask(1);
  rig.restart();
  REQUIRE(rig.files().size() == 3);
  uint64_t three = 0;
  for (const FolderFile& file : rig.files()) three += file.bytes;
  rig.options.folder.bytes = three;
  rig.restart();
  for (uint32_t seed = 2; seed < 8; ++seed) rig.ask(seed);
  rig.restart();
  uint64_t now = 0;
  for (const FolderFile& file : rig.files()) now += file.bytes;
  CHECK(now <= three);
  CHECK(rig.files().size() >= 2);
  rig.options.folder.bytes = 1;
  rig.restart();
  CHECK(rig.files().empty());
}

namespace {

// How many files got their names in a folder.
class Arrivals {
 public:
  explicit Arrivals(const std::string& folder) : events_(inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {
    REQUIRE(inotify_add_watch(events_, folder.c_str(), IN_MOVED_TO) >= 0);
  }
  ~Arrivals() { close(events_); }
  size_t count() {
    alignas(inotify_event) char bytes[4096];
    for (ssize_t got; (got = read(events_, bytes, sizeof bytes)) > 0;)
      for (ssize_t at = 0; at < got; ++count_)
        at += ssize_t(sizeof(inotify_event) + reinterpret_cast<inotify_event*>(bytes + at)->len);
    return count_;
  }

 private:
  const int events_;
  size_t count_ = 0;
};

}  // namespace

TEST_CASE("serve: closing writes the pages that the folder has room for, and no others", "[serve]") {
  FolderRig rig;
  const bool host = GENERATE(false, true);
  rig.ask(1);
  rig.restart();
  uint64_t largest = 0;
  for (const FolderFile& file : rig.files()) largest = std::max(largest, file.bytes);
  const size_t room = GENERATE(1, 2, 4);
  CAPTURE(host, room);
  rig.options.folder.bytes = room * largest;
  rig.options.host_cache_bytes = host * 5 * rig.engine.executor->page_bytes();
  rig.restart();
  rig.ask(2), rig.ask(3);
  if (host) rig.ask(4);  // pages of the first ones are the host's now
  Arrivals arrivals(rig.options.folder.folder);
  rig.restart();
  CHECK(arrivals.count() == room);
  CHECK(rig.files().size() == room);
  CHECK(rig.ask(host ? 4 : 3).result.cached_tokens == 64 * std::min(room, size_t(3)));  // used last
}

TEST_CASE("serve: files in the folder that are not of pages stay", "[serve]") {
  FolderRig rig;
  rig.ask(1);
  rig.restart();
  std::vector<std::string> others;
  for (const char* name :
       {"mine.kvpage", "greta-notes.kvpage", "greta-0123456789abcdeF.kvpage", "notes.kvpage.7",
        "greta-0123456789abcdef0.kvpage", "x-greta-0123456789abcdef.kvpage"}) {
    others.push_back(rig.options.folder.folder + "/" + name);
    change_file(others.back(), std::string(1000, 'x'));
  }
  rig.options.folder.bytes = 1;
  rig.restart();
  for (const std::string& path : others) CHECK(access(path.c_str(), F_OK) == 0);
  CHECK(rig.files().empty());
}

namespace {

// A folder that has room for three pages, each of a text of its own.
struct Three : FolderRig {
  const std::vector<uint8_t> page = std::vector<uint8_t>(engine.executor->page_bytes(), 7);
  std::unique_ptr<PageFolder> pages;

  Three() {
    reopen();
    put(0);
    options.folder.bytes = 3 * files().at(0).bytes;
    reopen();
    put(1), put(2);
  }
  void reopen() { pages = std::make_unique<PageFolder>(*engine.executor, options.folder); }
  static std::vector<int32_t> text(uint32_t which) { return some_tokens(64, which); }
  void put(uint32_t which) { pages->store(0, text(which), page); }
  bool get(uint32_t which) {
    std::vector<uint8_t> read(page.size());
    return pages->load(0, text(which), read) && read == page;
  }
  std::string there() const {  // which pages the folder has
    std::string all;
    for (uint32_t which = 0; which < 10; ++which)
      if (pages->has(0, text(which))) all += char('0' + which);
    return all;
  }
};

}  // namespace

TEST_CASE("serve: of the pages in a folder those go that were used least recently", "[serve]") {
  Three rig;
  CHECK(rig.there() == "012");
  rig.pages->touch(0, Three::text(0));
  rig.put(3);
  CHECK(rig.there() == "023");
  CHECK(rig.get(2));
  rig.put(4);
  CHECK(rig.there() == "234");
  rig.put(5);
  CHECK(rig.there() == "245");
}

TEST_CASE("serve: a file of a page that is gone counts no longer", "[serve]") {
  Three rig;
  change_file(rig.files().back().path, "damaged");
  CHECK(!rig.get(2));  // which removes it
  rig.put(3);
  CHECK(rig.there() == "013");

  REQUIRE(unlink(rig.files().back().path.c_str()) == 0);  // by another program
  rig.put(3);
  CHECK(rig.there() == "013");
}

TEST_CASE("serve: a page that was half written is removed, and one that is being written counts", "[serve]") {
  Three rig;
  const auto half = [&](const char* name) {
    const std::string path = rig.options.folder.folder + "/greta-0123456789abcdef.kvpage" + name;
    change_file(path, "half");
    return path;
  };
  const std::string left = half(".1"), writing = half(".2");
  const int writer = ::open(writing.c_str(), O_WRONLY | O_CLOEXEC);
  REQUIRE(flock(writer, LOCK_EX | LOCK_NB) == 0);
  rig.reopen();
  CHECK(access(left.c_str(), F_OK) != 0);
  CHECK(access(writing.c_str(), F_OK) == 0);
  CHECK(rig.there() == "12");  // with the four bytes there would be too many
  close(writer);
  rig.reopen();
  CHECK(access(writing.c_str(), F_OK) != 0);
}

TEST_CASE("serve: a folder that cannot be written costs nothing but its pages", "[serve]") {
  FolderRig rig;
  const std::vector<int32_t> expected = rig.ask(1).tokens;
  change_file(rig.folder.path() + "/file", "no folder");
  rig.options.folder.folder = rig.folder.path() + "/file/pages";
  rig.restart();
  CHECK(rig.ask(1).tokens == expected);
  rig.restart();
  const Answer again = rig.ask(1);
  CHECK(again.tokens == expected);
  CHECK(again.result.cached_tokens == 0);
}
