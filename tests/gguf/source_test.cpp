// The ways to a model's bytes, and the parts of a split model.
#include "gguf/source.h"

#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <cstring>
#include <string>

#include "support/gguf_writer.h"

using namespace greta;

static bool says(const char* part) { return std::string(error_text()).find(part) != std::string::npos; }

TEST_CASE("memory and callbacks give the same bytes", "[engine][source]") {
  std::string bytes = "0123456789";
  Source memory, callback;
  REQUIRE(memory.open_memory(bytes.data(), bytes.size()).ok());
  const auto read = [](void* user, uint64_t offset, void* to, uint64_t count) {
    if (offset == 5) return 7;
    memcpy(to, static_cast<std::string*>(user)->data() + offset, count);
    return 0;
  };
  REQUIRE(callback.open_callback(read, &bytes, bytes.size()).ok());
  for (Source* source : {&memory, &callback}) {
    char text[4] = {};
    CHECK(source->parts() == 1);
    CHECK(source->size(0) == 10);
    REQUIRE(source->read_at(0, 3, text, 3).ok());
    CHECK(std::string(text) == "345");
    CHECK(source->read_at(0, 10, nullptr, 0).ok());
    CHECK(source->read_at(0, 8, text, 3).code == Code::File);
    CHECK(source->read_at(0, UINT64_MAX - 1, text, 3).code == Code::File);
  }
  const uint8_t* mapped = nullptr;
  REQUIRE(memory.map(0, &mapped).ok());
  CHECK(mapped == reinterpret_cast<const uint8_t*>(bytes.data()));
  CHECK(memory.memory(0) == mapped);
  CHECK(memory.maps());
  CHECK(callback.map(0, &mapped).code == Code::Unsupported);
  char byte;
  CHECK(callback.read_at(0, 5, &byte, 1).code == Code::File);
  CHECK(says("returned 7"));
  CHECK(Source().open_memory(nullptr, 1).code == Code::Argument);
  CHECK(Source().open_callback(nullptr, nullptr, 1).code == Code::Argument);
}

TEST_CASE("any part of a split model opens all of it", "[engine][source]") {
  const test::TemporaryFolder folder;
  for (const char* name : {"m-00001-of-00003.gguf", "m-00002-of-00003.gguf", "m-00003-of-00003.gguf"})
    folder.write(name, name);
  Source source;
  REQUIRE(source.open_file((folder.path() + "/m-00002-of-00003.gguf").c_str()).ok());
  REQUIRE(source.parts() == 3);
  char text[22] = {};
  REQUIRE(source.read_at(2, 0, text, 21).ok());
  CHECK(std::string(text) == "m-00003-of-00003.gguf");

  folder.write("n-00001-of-00002.gguf", "x");
  Source lacking;
  CHECK(lacking.open_file((folder.path() + "/n-00001-of-00002.gguf").c_str()).code == Code::File);
  CHECK(says("part 2 of 2"));
  CHECK(says("n-00002-of-00002.gguf"));
  CHECK(lacking.parts() == 0);

  for (const char* name : {"m-00004-of-00003.gguf", "m-00000-of-00003.gguf", "m-00001-of-99999.gguf"}) {
    INFO(name);
    CHECK(Source().open_file((folder.path() + "/" + name).c_str()).code == Code::File);
    CHECK(says("expected a part"));
  }
  CHECK_FALSE(Source().open_file((folder.path() + "/m-00001-of-01024.gguf").c_str()).ok());
  CHECK(says("part 1 of 1024 of a split model"));  // as many as there may be
  // A name that is nearly that of a part is an ordinary name.
  for (const char* name : {"m-0001-of-00003.gguf", "m-00001-of-0000a.gguf", "-00001_of-00003.gguf",
                           "-0000.-of-00003.gguf", "m-00001-of-00003.ggux"}) {
    Source plain;
    REQUIRE(plain.open_file(folder.write(name, "x").c_str()).ok());
    CHECK(plain.parts() == 1);
  }
  CHECK(Source().open_file("short").code == Code::File);
  CHECK(Source().open_file("").code == Code::Argument);
  CHECK(Source().open_file(nullptr).code == Code::Argument);
}

TEST_CASE("a file is mapped where that was asked for, part by part", "[engine][source]") {
  const test::TemporaryFolder folder;
  const std::string content(5000, 'x');
  const std::string first = folder.write("m-00001-of-00002.gguf", content),
                    second = folder.write("m-00002-of-00002.gguf", content);
  Source copied, mapped;
  const uint8_t* pages = nullptr;
  REQUIRE(copied.open_file(first.c_str()).ok());
  CHECK_FALSE(copied.maps());
  CHECK(copied.map(0, &pages).code == Code::Unsupported);
  REQUIRE(mapped.open_file(first.c_str(), true).ok());
  CHECK(mapped.maps());
  CHECK(mapped.memory(0) == nullptr);
  REQUIRE(mapped.map(1, &pages).ok());
  CHECK(pages[4999] == 'x');
  REQUIRE(truncate(first.c_str(), 0) == 0);
  CHECK(mapped.check_mapped().ok());  // of that part no page is used
  REQUIRE(truncate(second.c_str(), 4096) == 0);
  CHECK(mapped.check_mapped().code == Code::File);
  CHECK(says(second.c_str()));
  CHECK(copied.check_mapped().ok());
}
