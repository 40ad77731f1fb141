// Opening something that is not a readable file fails with a reason in words.
#include "platform/files/file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <cerrno>
#include <cstring>
#include <string>

#include "support/gguf_writer.h"
#include "support/read_faults.h"

using namespace greta;

static bool says(const char* part) { return std::string(error_text()).find(part) != std::string::npos; }

TEST_CASE("a file is read at offsets and mapped", "[platform][file]") {
  const test::TemporaryFolder folder;
  File file;
  REQUIRE(file.open(folder.write("a", "hello world").c_str()).ok());
  CHECK(file.size() == 11);
  char text[6] = {};
  REQUIRE(file.read_at(6, text, 5).ok());
  CHECK(std::string(text) == "world");
  CHECK(file.read_at(11, text, 0).ok());

  const uint8_t *pages = nullptr, *again = nullptr;
  REQUIRE(file.map(&pages).ok());
  CHECK(memcmp(pages, "hello world", 11) == 0);
  File moved(std::move(file));
  REQUIRE(moved.map(&again).ok());
  CHECK(again == pages);
  CHECK_FALSE(file.is_open());
  CHECK(moved.read_at(0, text, 5).ok());

  CHECK(moved.read_at(7, text, 5).code == Code::File);
  CHECK(says("5 bytes at offset 7"));
  CHECK(moved.read_at(UINT64_MAX, text, 5).code == Code::File);
}

TEST_CASE("what is no regular file is not opened", "[platform][file]") {
  const test::TemporaryFolder folder;
  File file;
  CHECK(file.open((folder.path() + "/none").c_str()).code == Code::File);
  CHECK(says("No such file"));
  CHECK(file.open(folder.path().c_str()).code == Code::File);
  CHECK(says("directory"));
  const std::string pipe = folder.path() + "/pipe";
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  CHECK(file.open(pipe.c_str()).code == Code::File);
  CHECK(says("pipe"));
  CHECK_FALSE(file.is_open());

  REQUIRE(file.open(folder.write("empty", "").c_str()).ok());
  const uint8_t* pages;
  CHECK(file.map(&pages).code == Code::File);
  CHECK(file.open(folder.path().c_str()).code == Code::Argument);
}

TEST_CASE("a file is read in as many pieces as the system gives, or not, with the reason",
          "[platform][file]") {
  const test::TemporaryFolder folder;
  const std::string path = folder.write("a", "hello world");
  File file;
  REQUIRE(file.open(path.c_str()).ok());
  char text[12] = {};
  test::read_faults.most = 2;
  test::read_faults.interrupts = 3;
  CHECK(file.read_at(0, text, 11).ok());
  CHECK(std::string(text) == "hello world");
  CHECK(test::read_faults.interrupts == 0);

  test::read_faults.error = EIO;
  test::read_faults.error_at = 7;
  CHECK(file.read_at(0, text, 7).ok());
  CHECK(file.read_at(0, text, 11).code == Code::File);
  CHECK(says("error"));
  CHECK(says("at offset 6"));
  test::read_faults.clear();

  REQUIRE(truncate(path.c_str(), 4) == 0);
  CHECK(file.read_at(0, text, 4).ok());
  CHECK(file.read_at(0, text, 11).code == Code::File);
  CHECK(says("7 bytes at offset 4: the file ends before, it had 11 bytes"));
}

TEST_CASE("a mapped file that was cut is told from one that was not", "[platform][file]") {
  const test::TemporaryFolder folder;
  const std::string content(10000, 'x'), path = folder.write("a", content);
  File file;
  REQUIRE(file.open(path.c_str()).ok());
  REQUIRE(truncate(path.c_str(), 0) == 0);
  CHECK(file.check_mapped().ok());  // it is not mapped
  folder.write("a", content);
  const uint8_t* pages = nullptr;
  REQUIRE(file.map(&pages).ok());
  for (const int bytes : {9999, 8193, 8192, 4096, 1, 0}) {
    REQUIRE(truncate(path.c_str(), bytes) == 0);
    CHECK(file.check_mapped().code == Code::File);
    CHECK(says((std::to_string(bytes) + " bytes, it had 10000").c_str()));
  }
  REQUIRE(truncate(path.c_str(), 20000) == 0);
  CHECK(file.check_mapped().ok());
  REQUIRE(unlink(path.c_str()) == 0);
  CHECK(file.check_mapped().ok());
}
