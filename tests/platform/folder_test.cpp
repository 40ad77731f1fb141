// Files that are replaced as a whole, and what is left of them where a program was killed.
#include "platform/files/folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>

#include "platform/files/file.h"
#include "support/gguf_writer.h"

using namespace greta;

namespace {

Status write_text(const std::string& path, std::string_view text) {
  return replace_file(path, {{reinterpret_cast<const uint8_t*>(text.data()), text.size()}});
}

std::string text_of(const std::string& path) {
  File file;
  REQUIRE(file.open(path.c_str()).ok());
  std::string text(file.size(), 0);
  REQUIRE(file.read_at(0, text.data(), text.size()).ok());
  return text;
}

// Holds the lock of a file, as a program does that writes it.
struct Writer {
  int file;
  explicit Writer(const std::string& path) : file(::open(path.c_str(), O_WRONLY | O_CLOEXEC)) {
    REQUIRE(file >= 0);
    REQUIRE(flock(file, LOCK_EX | LOCK_NB) == 0);
  }
  ~Writer() { close(file); }
};

}  // namespace

TEST_CASE("a file is replaced, and nothing is left beside it", "[platform][file]") {
  const test::TemporaryFolder folder;
  const std::string path = folder.path() + "/deep/er/a.end";
  REQUIRE(write_text(path, "first").ok());
  REQUIRE(write_text(path, "second").ok());
  CHECK(text_of(path) == "second");
  const std::vector<FolderFile> files = list_files(folder.path() + "/deep/er", "");
  REQUIRE(files.size() == 1);
  CHECK(files[0].path == path);
  CHECK(files[0].bytes == 6);
}

TEST_CASE("what a killed program of the same number left does not stand in the way", "[platform][file]") {
  const test::TemporaryFolder folder;
  const std::string next = "a.end." + std::to_string(getpid());
  folder.write(next, "half of a fi");
  REQUIRE(write_text(folder.path() + "/a.end", "whole").ok());
  CHECK(text_of(folder.path() + "/a.end") == "whole");
  CHECK(list_files(folder.path(), "").size() == 1);

  const std::string writing = folder.write(next, "half of another");
  const Writer writer(writing);  // another thread, or a program elsewhere that has this number
  CHECK(write_text(folder.path() + "/a.end", "new").code == Code::File);
  CHECK(text_of(folder.path() + "/a.end") == "whole");
  CHECK(text_of(writing) == "half of another");
}

TEST_CASE("what killed programs left is removed, and what is being written stays", "[platform][file]") {
  const test::TemporaryFolder folder;
  folder.write("b.end.17", "left");
  folder.write("b.end.", "no number");
  folder.write("b.end.17x", "no number");
  folder.write("b.17", "another ending");
  const Writer writer(folder.write("c.end.4711", "half"));
  const std::string whole = folder.write("a.end", "whole");
  REQUIRE(symlink(whole.c_str(), (folder.path() + "/d.end.18").c_str()) == 0);
  remove_leftovers(folder.path(), ".end");
  CHECK(list_files(folder.path(), "").size() == 5);  // links are none
  std::vector<std::string> listed;
  for (const FolderFile& file : list_files(folder.path(), ".end"))
    listed.push_back(file.path.substr(folder.path().size() + 1));
  std::ranges::sort(listed);
  CHECK(listed == std::vector<std::string>{"a.end", "c.end.4711"});
  CHECK(text_of(whole) == "whole");
  remove_leftovers(folder.path() + "/none", ".end");
  CHECK(list_files(folder.path() + "/none", ".end").empty());
}

TEST_CASE("a question mark in an ending stands for a hexadecimal digit", "[platform][file]") {
  const test::TemporaryFolder folder;
  for (const char* name : {"x-0f.end", "x-0g.end", "x-f.end", "x-00f.end", "ax-0f.end", "x-0f.end.17"})
    folder.write(name, "text");
  std::vector<std::string> listed;
  for (const FolderFile& file : list_files(folder.path(), "/x-??.end"))
    listed.push_back(file.path.substr(folder.path().size() + 1));
  std::ranges::sort(listed);
  CHECK(listed == std::vector<std::string>{"x-0f.end", "x-0f.end.17"});
}

TEST_CASE("files of other users are not looked at", "[platform][file]") {
  if (geteuid() != 0) SKIP("only root can give a file away");
  const test::TemporaryFolder folder;
  for (const char* name : {"a.end", "a.end.17"})
    REQUIRE(chown(folder.write(name, "another's").c_str(), 4711, gid_t(-1)) == 0);
  remove_leftovers(folder.path(), ".end");
  CHECK(list_files(folder.path(), "").empty());
  CHECK(text_of(folder.path() + "/a.end.17") == "another's");
}
