// Bad files, with a row for each way to be bad. Each must be refused with a sentence that says where, and
// without much memory. Files like those of the rows marked with an advisory have brought other readers down;
// tests/rules/advisories.tsv lists them.
#include <catch2/catch_test_macros.hpp>
#include <functional>

#include "gguf/gguf.h"
#include "support/failing_memory.h"
#include "support/gguf_writer.h"

using namespace greta;
using test::Bytes;
using test::GgufWriter;

namespace {

Status open_memory(const std::string& file) {
  Source source;
  GRETA_TRY(source.open_memory(file.data(), file.size()));
  return Gguf().open(std::move(source));
}

// Opens the file through a callback that claims to have `claimed` bytes and fails beyond those it has.
Status open_callback(const std::string& file, uint64_t claimed) {
  Source source;
  const auto read = [](void* user, uint64_t offset, void* to, uint64_t bytes) {
    const std::string& all = *static_cast<const std::string*>(user);
    if (offset + bytes > all.size()) return 1;
    memcpy(to, all.data() + offset, bytes);
    return 0;
  };
  GRETA_TRY(source.open_callback(read, const_cast<std::string*>(&file), claimed));
  return Gguf().open(std::move(source));
}

struct Row {
  const char* what;
  std::string file;
  Code code;
  std::vector<const char*> expected;  // parts of the sentence
};

void check(const Row& row) {
  INFO(row.what);
  clear_error_text();
  Status status;
  {
    const test::FailingMemory memory(0);
    status = open_memory(row.file);
    CHECK(memory.peak_bytes() < test::kMostOfRefusal);
  }
  const std::string text = error_text();
  INFO(text);
  CHECK(status.code == row.code);
  CHECK(text.substr(0, 8) == "memory: ");
  for (const char* part : row.expected) CHECK(text.find(part) != text.npos);
  CHECK_FALSE(open_callback(row.file, row.file.size()).ok());
}

// A header of these counts and nothing behind it but `room` zeros.
std::string counts(uint64_t tensors, uint64_t values, size_t room = 0, uint32_t version = 3) {
  Bytes bytes;
  bytes.data = "GGUF";
  return bytes.u32(version).u64(tensors).u64(values).data + std::string(room, 0);
}

std::string with_value(uint32_t type, const std::string& payload) {
  return GgufWriter().raw_value("k", type, payload).file() + std::string(64, 0);
}

std::string with_tensor(uint32_t dims, const std::vector<uint64_t>& ne, uint32_t type, uint64_t offset,
                        size_t data = 4096) {
  return GgufWriter().raw_tensor("t.weight", dims, ne, type, offset).data(std::string(data, 0)).file();
}

constexpr uint64_t kBig = uint64_t(1) << 63;

}  // namespace

TEST_CASE("files that are not GGUF as we read it", "[engine][gguf]") {
  const Row rows[] = {
      {"empty", "", Code::File, {"empty"}},
      {"CVE-2024-39720: a magic and nothing else", "GGUF", Code::File, {"truncated"}},
      {"three bytes", "GGU", Code::File, {"truncated", "magic"}},
      {"another format", "PK\3\4" + std::string(100, 0), Code::File, {"not a GGUF file", "PK\\x03\\x04"}},
      {"nonsense", std::string(4096, '\x5a'), Code::File, {"not a GGUF file"}},
      {"byte-swapped magic", "FUGG" + std::string(100, 0), Code::Unsupported, {"byte-swapped"}},
      {"byte-swapped magic and nothing else", "FUGG", Code::Unsupported, {"byte-swapped"}},
      {"big-endian", counts(0, 0, 64, 0x03000000), Code::Unsupported, {"big-endian", "version 3"}},
      {"CVE-2025-66960: version 1", counts(0, 0, 64, 1), Code::Unsupported, {"version 1 is obsolete"}},
      {"version 0", counts(0, 0, 64, 0), Code::Unsupported, {"version 0"}},
      {"version 4", counts(0, 0, 64, 4), Code::Unsupported, {"version 4, expected 2 or 3"}},
  };
  for (const Row& row : rows) check(row);
}

TEST_CASE("counts that the file cannot hold", "[engine][gguf]") {
  const Row rows[] = {
      {"CVE-2024-23605: pairs x size wraps",
       counts(0, UINT64_MAX / 2, 64),
       Code::File,
       {"metadata entries", "88 bytes"}},
      {"CVE-2024-23605: more pairs than bytes", counts(0, 100, 64), Code::File, {"100 metadata entries"}},
      {"more pairs than the limit", counts(0, 70000, 70000 * 14), Code::File, {"70000", "65536"}},
      {"CVE-2024-21825: tensors x size wraps", counts(UINT64_MAX, 0, 64), Code::File, {"tensors"}},
      {"CVE-2026-27940: tensors + 1 wraps", counts(UINT64_MAX - 1, 0, 64), Code::File, {"tensors"}},
      {"more tensors than bytes", counts(1000, 0, 64), Code::File, {"1000 tensors", "at most 1 "}},
  };
  for (const Row& row : rows) check(row);
}

TEST_CASE("bad values", "[engine][gguf]") {
  const Row rows[] = {
      {"CVE-2024-23496: a string of 2^64 - 1 bytes",
       with_value(8, Bytes().u64(UINT64_MAX).data),
       Code::File,
       {"metadata entry 1 of 1", "key \"k\"", "a string at offset", "18446744073709551615"}},
      {"CVE-2024-12055: a string one byte beyond the end",
       GgufWriter().raw_value("k", 8, Bytes().u64(5).data + "four").file(),
       Code::File,
       {"needs 5 bytes, the file has 4 left"}},
      {"CVE-2024-21836: array count x size wraps",
       with_value(9, Bytes().u32(10).u64(uint64_t(1) << 61).data),
       Code::File,
       {"2305843009213693952 values of 8 bytes"}},
      {"CVE-2025-0315: an array longer than the file",
       with_value(9, Bytes().u32(0).u64(1000).data),
       Code::File,
       {"1000 values"}},
      {"Ollama CVE-2026-65315: strings without end",
       with_value(9, Bytes().u32(8).u64(uint64_t(1) << 40).data),
       Code::File,
       {"truncated", "of 8 bytes or more"}},
      {"CVE-2024-32878: an array whose second string is false",
       with_value(9, Bytes().u32(8).u64(2).string("a").u64(kBig).data),
       Code::File,
       {"a string at offset"}},
      {"an array of arrays",
       with_value(9, Bytes().u32(9).u64(1).u32(4).u64(0).data),
       Code::Unsupported,
       {"key \"k\"", "an array of arrays at offset 37,"}},
      {"a type beyond the last",
       with_value(13, ""),
       Code::File,
       {"type of the value", "is 13, expected 0 to 12"}},
      {"an element type beyond the last",
       with_value(9, Bytes().u32(99).u64(0).data),
       Code::File,
       {"type of the elements", "99"}},
      {"a bool of 2", with_value(7, "\2"), Code::File, {"a bool", "is 2"}},
  };
  for (const Row& row : rows) check(row);
}

TEST_CASE("bad keys", "[engine][gguf]") {
  const Row rows[] = {
      {"an empty key",
       GgufWriter().raw_value("", 0, "x").file() + std::string(64, 0),
       Code::File,
       {"a key", "0 bytes"}},
      {"a key too long",
       GgufWriter().raw_value(std::string(70000, 'k'), 0, "x").file(),
       Code::File,
       {"a key", "70000 bytes, expected 1 to 65536"}},
      {"CVE-2025-66959: a key of 2^63 bytes",
       counts(0, 1) + Bytes().u64(kBig).data + std::string(64, 0),
       Code::File,
       {"a key"}},
      {"a key with an escape",
       GgufWriter().raw_value("a\x1b[2Jb", 0, "x").file(),
       Code::File,
       {"\\x1B", "control character"}},
      {"a key twice",
       GgufWriter().value("a", 1u).value("b", 2u).value("a", 3u).file(),
       Code::File,
       {"key \"a\"", "two entries"}},
  };
  for (const Row& row : rows) check(row);
}

TEST_CASE("bad alignments", "[engine][gguf]") {
  const Row rows[] = {
      {"CVE-2025-0317: alignment 0",
       GgufWriter().value("general.alignment", 0u).file(),
       Code::File,
       {"general.alignment is 0"}},
      {"alignment 1",
       GgufWriter().value("general.alignment", 1u).file(),
       Code::File,
       {"a power of two from 8"}},
      {"alignment 48",
       GgufWriter().value("general.alignment", 48u).file(),
       Code::File,
       {"general.alignment is 48"}},
      {"llama.cpp#24997: alignment 2^31, by which padding wraps",
       GgufWriter().value("general.alignment", 0x80000000u).file(),
       Code::File,
       {"2147483648"}},
      {"alignment below zero",
       GgufWriter().scalar("general.alignment", 5, int32_t(-32)).file(),
       Code::File,
       {"-32, expected 0"}},
      {"alignment as text",
       GgufWriter().value("general.alignment", "32").file(),
       Code::File,
       {"string, expected an integer"}},
  };
  for (const Row& row : rows) check(row);
}

TEST_CASE("bad shapes and types of tensors", "[engine][gguf]") {
  const Row rows[] = {
      {"no dimensions", with_tensor(0, {}, 0, 0), Code::File, {"tensor \"t.weight\"", "0 dimensions"}},
      {"five dimensions", with_tensor(5, {1, 1, 1, 1, 1}, 0, 0), Code::File, {"5 dimensions", "1 to 4"}},
      {"2^32 - 1 dimensions", with_tensor(UINT32_MAX, {1}, 0, 0), Code::File, {"4294967295 dimensions"}},
      {"a dimension of 0", with_tensor(2, {32, 0}, 0, 0), Code::File, {"dimension 1 is 0"}},
      {"CVE-2024-21802: dimensions wrap",
       with_tensor(2, {uint64_t(1) << 32, uint64_t(1) << 32}, 0, 0),
       Code::File,
       {"tensor \"t.weight\"", "dimension 1"}},
      {"CVE-2026-33298: 2^42 + 1 rows",
       with_tensor(3, {uint64_t(1) << 21, 1, (uint64_t(1) << 42) + 1}, 0, 0),
       Code::File,
       {"dimension 2"}},
      {"a negative dimension", with_tensor(1, {uint64_t(-32)}, 0, 0), Code::File, {"dimension 0"}},
      {"CVE-2025-53630: sizes add up beyond 64 bits",
       with_tensor(1, {(uint64_t(1) << 60) - 32}, 28, 0),
       Code::File,
       {"beyond the end of the file"}},
      {"part of a block",
       with_tensor(1, {33}, 8, 0),
       Code::File,
       {"33 weights of type q8_0", "multiple of 32"}},
      {"a type not in the table",
       with_tensor(1, {32}, 99, 0),
       Code::Unsupported,
       {"\"t.weight\"", "type 99 at offset 52 "}},
      {"a type that was removed", with_tensor(1, {32}, 4, 0), Code::Unsupported, {"\"t.weight\"", "type 4 "}},
  };
  for (const Row& row : rows) check(row);
}

TEST_CASE("bad names and places of tensors", "[engine][gguf]") {
  const Row rows[] = {
      {"an offset off the alignment", with_tensor(1, {32}, 0, 16), Code::File, {"offset 16", "alignment 32"}},
      {"CVE-2026-5757: an offset beyond the end",
       with_tensor(1, {32}, 0, 1 << 20),
       Code::File,
       {"beyond the end of the file"}},
      {"llama.cpp#26318: an offset that wraps",
       with_tensor(1, {32}, 0, UINT64_MAX - 31),
       Code::File,
       {"beyond the end"}},
      {"an offset to which its bytes cannot be added",
       with_tensor(1, {uint64_t(1) << 59}, 0, UINT64_MAX - (uint64_t(1) << 61) + 1),
       Code::File,
       {"beyond the end"}},
      {"CVE-2026-7482: more weights than bytes",
       with_tensor(1, {2048}, 0, 0),
       Code::File,
       {"8192 bytes", "truncated, or its dimensions are wrong"}},
      {"a name too long",
       GgufWriter().raw_tensor(std::string(65, 'n'), 1, {1}, 0, 0).data("0123").file(),
       Code::File,
       {"a tensor's name", "65 bytes, expected 1 to 64"}},
      {"CVE-2024-41130: a second name that cannot be read",
       counts(2, 0) + Bytes().string("a").u32(1).u64(8).u32(0).u64(0).u64(kBig).data + std::string(64, 0),
       Code::File,
       {"tensor 2 of 2", "a tensor's name"}},
      {"no name",
       GgufWriter().raw_tensor("", 1, {1}, 0, 0).data("0123").file(),
       Code::File,
       {"tensor 1 of 1"}},
      {"a name with a line break",
       GgufWriter().raw_tensor("a\nb", 1, {1}, 0, 0).data("0123").file(),
       Code::File,
       {"a\\x0Ab", "control character"}},
      {"a name twice",
       GgufWriter().tensor("a", 0, {1}, "0123").tensor("a", 0, {1}, "0123").file(),
       Code::File,
       {"tensor \"a\"", "two of this name"}},
      {"data shared by two",
       GgufWriter().tensor("a", 0, {16}, std::string(64, 0)).raw_tensor("b", 1, {8}, 0, 32).file(),
       Code::File,
       {"\"b\"", "overlaps that of \"a\""}},
      {"the same place twice",
       GgufWriter().tensor("a", 0, {8}, std::string(32, 0)).raw_tensor("b", 1, {8}, 0, 0).file(),
       Code::File,
       {"overlaps"}},
  };
  for (const Row& row : rows) check(row);
}

TEST_CASE("a small file cut short at every byte", "[engine][gguf]") {
  GgufWriter writer;
  writer.value("general.architecture", "llama").value("a.list", std::vector<std::string>{"x", "yy", ""});
  writer.value("a.numbers", std::vector<float>{1, 2}).value("a.flag", true).value("a.count", 7u);
  writer.tensor("one.weight", 0, {8}, std::string(32, 1))
      .tensor("two.weight", 8, {32, 2}, std::string(68, 2));
  const std::string file = writer.file();
  const size_t last_needed = file.size() - 28;  // the padding behind the last tensor may be missing
  for (size_t length = 0; length <= file.size(); ++length) {
    const std::string cut = file.substr(0, length);
    for (const bool callback : {false, true}) {
      clear_error_text();
      const Status status = callback ? open_callback(cut, cut.size()) : open_memory(cut);
      INFO(length << " of " << file.size() << ": " << error_text());
      if (length >= last_needed) {
        CHECK(status.ok());
        continue;
      }
      CHECK(status.code == Code::File);
      CHECK(std::string(error_text()).size() > 20);
      // A callback promises the whole file. Then the read itself fails, and says so.
      CHECK_FALSE(open_callback(cut, file.size()).ok());
    }
  }
}

TEST_CASE("every byte of a small file set to other values is survived", "[engine][gguf]") {
  GgufWriter writer;
  writer.value("general.alignment", 32u).value("list", std::vector<std::string>{"x", "yy"});
  writer.value("numbers", std::vector<float>{1, 2}).tensor("a", 8, {32, 2}, std::string(68, 2));
  const std::string file = writer.file();
  size_t opened = 0;
  for (size_t at = 0; at < writer.header().size(); ++at)
    for (const uint8_t value : {0x00, 0x01, 0x7f, 0x80, 0xff}) {
      std::string changed = file;
      changed[at] = char(value);
      opened += open_memory(changed).ok();
    }
  CHECK(opened > 0);
}

TEST_CASE("a false length costs no memory", "[engine][gguf]") {
  // The callback claims an exabyte. A string of half of it is refused by the limit of headers, and one of 512
  // MiB by the first read that fails, when little memory is held.
  const uint64_t claimed = uint64_t(1) << 60;
  std::string file =
      counts(0, 1) + Bytes().string("k").u32(8).u64(claimed / 2).data + std::string(1 << 17, 'x');
  CHECK(open_callback(file, claimed).code == Code::Unsupported);
  CHECK(std::string(error_text()).find("largest header") != std::string::npos);
  file = counts(0, 1) + Bytes().string("k").u32(8).u64(1u << 29).data + std::string(1 << 17, 'x');
  CHECK(open_callback(file, claimed).code == Code::File);
  CHECK(std::string(error_text()).find("returned 1") != std::string::npos);
}

// The parts of a split model may each have as many tensors as a file may. Together they may not have more.
TEST_CASE("parts have no more tensors together than a file may have", "[engine][gguf]") {
  constexpr uint64_t kInEach = kMaxTensors / 2 + 1;
  const test::TemporaryFolder folder;
  for (const uint32_t number : {0u, 1u}) {
    GgufWriter writer;
    writer.alignment = 8;
    writer.value("general.alignment", 8u).value("split.no", number).value("split.count", 2u);
    for (uint64_t i = 0; i < kInEach; ++i)
      writer.raw_tensor(std::to_string(number) + "." + std::to_string(i), 1, {1}, 24, i * 8);
    writer.data(std::string(kInEach * 8, 0));
    folder.write(number ? "m-00002-of-00002.gguf" : "m-00001-of-00002.gguf", writer.file());
  }
  Source source;
  REQUIRE(source.open_file((folder.path() + "/m-00001-of-00002.gguf").c_str()).ok());
  CHECK(Gguf().open(std::move(source)).code == Code::File);
  CHECK(std::string(error_text()).find("65538 tensors in all parts, expected at most 65536") !=
        std::string::npos);
}

TEST_CASE("a model opens once", "[engine][gguf]") {
  const std::string file = GgufWriter().file();
  Source first, second;
  REQUIRE(first.open_memory(file.data(), file.size()).ok());
  REQUIRE(second.open_memory(file.data(), file.size()).ok());
  Gguf gguf;
  CHECK(gguf.open(Source()).code == Code::Argument);
  REQUIRE(gguf.open(std::move(first)).ok());
  CHECK(gguf.open(std::move(second)).code == Code::Argument);
}
