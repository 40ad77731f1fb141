// A saved session in a file that cannot be read well, and a place to save to that fills up.
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cerrno>
#include <filesystem>

#include "support/api_objects.h"
#include "support/gguf_writer.h"
#include "support/read_faults.h"

using namespace greta::test;
using Catch::Matchers::ContainsSubstring;

namespace {

struct Disk {
  std::string bytes;
  size_t room;  // bytes that fit
};

int write_to(void* user, const void* bytes, size_t count) {
  auto& disk = *static_cast<Disk*>(user);
  if (disk.bytes.size() + count > disk.room) return 28;
  disk.bytes.append(static_cast<const char*>(bytes), count);
  return 0;
}

std::string saved(greta_session* session) {
  Disk disk{"", ~size_t(0)};
  REQUIRE(greta_session_save(session, write_to, &disk) == GRETA_OK);
  return disk.bytes;
}

void feed(greta_session* session, size_t count) {
  const std::vector<int32_t> tokens(count, 5);
  REQUIRE(greta_session_eval(session, tokens.data(), count, GRETA_ROWS_NONE, nullptr) == GRETA_OK);
}

}  // namespace

TEST_CASE("api: a saved session in a file that cannot be read changes nothing", "[api][file]") {
  Objects o, p;
  REQUIRE(o.load() == GRETA_OK);
  REQUIRE(p.load() == GRETA_OK);
  feed(o.session, 100);
  feed(p.session, 3);
  const std::string state = saved(o.session), own = saved(p.session);
  const TemporaryFolder folder;
  const std::string path = folder.write("state", state);
  auto source = sized<greta_source>();
  source.path = path.c_str();

  for (const uint64_t at : {uint64_t(0), uint64_t(200), state.size() / 2, state.size() - 1}) {
    read_faults.error_at = at;
    read_faults.error = EIO;
    CHECK(greta_session_restore(p.session, &source) == GRETA_ERROR_FILE);
    CHECK_THAT(greta_error_text(), ContainsSubstring("state"));
    read_faults.clear();
    CHECK(saved(p.session) == own);
  }
  for (const size_t bytes : {state.size() - 1, state.size() / 2, size_t(10), size_t(0)}) {
    std::filesystem::resize_file(path, bytes);
    CHECK(greta_session_restore(p.session, &source) == GRETA_ERROR_FILE);
    CHECK(saved(p.session) == own);
  }
  folder.write("state", state);
  read_faults.most = 1000;
  read_faults.interrupts = 50;
  CHECK(greta_session_restore(p.session, &source) == GRETA_OK);
  read_faults.clear();
  CHECK(saved(p.session) == state);
}

TEST_CASE("api: saving to a disk that fills up is a status, at every write", "[api][file]") {
  Objects o;
  REQUIRE(o.load() == GRETA_OK);
  feed(o.session, 100);
  const std::string state = saved(o.session);
  for (size_t room = 0; room < state.size(); room += state.size() / 40) {
    Disk disk{"", room};
    CHECK(greta_session_save(o.session, write_to, &disk) == GRETA_ERROR_CANCELLED);
    CHECK(disk.bytes == state.substr(0, disk.bytes.size()));
    CHECK(greta_session_position(o.session) == 100);
  }
  CHECK(saved(o.session) == state);
}
