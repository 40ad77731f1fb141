// Good files of every kind, and getters that fail with a sentence.
#include "gguf/gguf.h"

#include <catch2/catch_test_macros.hpp>
#include <cmath>

#include "support/gguf_writer.h"

using namespace greta;
using test::GgufWriter;

namespace {

bool says(const char* part) { return std::string(error_text()).find(part) != std::string::npos; }

Status open_memory(const std::string& file, Gguf* out) {
  Source source;
  GRETA_TRY(source.open_memory(file.data(), file.size()));
  return out->open(std::move(source));
}

Status open_callback(const std::string& file, Gguf* out) {
  Source source;
  const auto read = [](void* user, uint64_t offset, void* to, uint64_t bytes) {
    memcpy(to, static_cast<const std::string*>(user)->data() + offset, bytes);
    return 0;
  };
  GRETA_TRY(source.open_callback(read, const_cast<std::string*>(&file), file.size()));
  return out->open(std::move(source));
}

GgufWriter one_of_each() {
  GgufWriter writer;
  writer.scalar("u8", 0, uint8_t(200)).scalar("i8", 1, int8_t(-3)).scalar("u16", 2, uint16_t(60000));
  writer.scalar("i16", 3, int16_t(-300))
      .scalar("u32", 4, uint32_t(4000000000))
      .scalar("i32", 5, int32_t(-70000));
  writer.scalar("f32", 6, 1.5f)
      .value("bool", true)
      .value("string", "caf\xC3\xA9")
      .scalar("u64", 10, uint64_t(1) << 40);
  writer.scalar("i64", 11, -(int64_t(1) << 40)).scalar("f64", 12, 0.25);
  writer.value("strings", std::vector<std::string>{"a", "", "bcd"})
      .value("floats", std::vector<float>{1, 2, 3});
  writer.value("ints", std::vector<int32_t>{-1, 2}).array("bools", 7, std::vector<uint8_t>{1, 0, 1});
  writer.array("nothing", 8, std::vector<uint8_t>{});
  return writer;
}

template <class T>
T get(Status (Gguf::*getter)(std::string_view, T*) const, const Gguf& gguf, const char* key, T fallback) {
  T value = fallback;
  const Status status = (gguf.*getter)(key, &value);
  INFO(error_text());
  CHECK(status.ok());
  return value;
}

}  // namespace

TEST_CASE("all value types, from pages and through a callback, versions 2 and 3", "[engine][gguf]") {
  for (const uint32_t version : {2u, 3u}) {
    for (const bool mapped : {true, false}) {
      GgufWriter writer = one_of_each();
      writer.version = version;
      const std::string file = writer.file();
      Gguf opened;
      const Status status = mapped ? open_memory(file, &opened) : open_callback(file, &opened);
      INFO(error_text());
      REQUIRE(status.ok());
      const Gguf gguf = std::move(opened);  // views survive a move
      CHECK(gguf.version() == version);
      CHECK(gguf.values().size() == 17);
      CHECK(get(&Gguf::get_u32, gguf, "u8", 0u) == 200);
      CHECK(get(&Gguf::get_f32, gguf, "i8", 0.0f) == -3);
      CHECK(get(&Gguf::get_u32, gguf, "u16", 0u) == 60000);
      CHECK(get(&Gguf::get_f32, gguf, "i16", 0.0f) == -300);
      CHECK(get(&Gguf::get_u32, gguf, "u32", 0u) == 4000000000u);
      CHECK(get(&Gguf::get_f32, gguf, "i32", 0.0f) == -70000);
      CHECK(get(&Gguf::get_f32, gguf, "f32", 0.0f) == 1.5f);
      CHECK(get(&Gguf::get_f32, gguf, "f64", 0.0f) == 0.25f);
      CHECK(get(&Gguf::get_bool, gguf, "bool", false));
      CHECK(get(&Gguf::get_string, gguf, "string", std::string_view()) == "caf\xC3\xA9");
      CHECK(get(&Gguf::get_f32, gguf, "u64", 0.0f) == 0x1p40f);
      CHECK(get(&Gguf::get_u32, gguf, "absent", 42u) == 42);

      StringArray strings;
      REQUIRE(gguf.get_strings("strings", &strings).ok());
      std::string joined;
      for (const std::string_view text : strings) (joined += text) += '|';
      CHECK(joined == "a||bcd|");
      PackedArray<float> floats;
      REQUIRE(gguf.get_f32_array("floats", &floats).ok());
      REQUIRE(floats.count == 3);
      CHECK(floats[2] == 3);
      PackedArray<int32_t> ints;
      REQUIRE(gguf.get_i32_array("ints", &ints).ok());
      CHECK(ints[0] == -1);
      StringArray nothing{nullptr, 9};
      REQUIRE(gguf.get_strings("nothing", &nothing).ok());
      CHECK_FALSE(nothing.begin() != nothing.end());
    }
  }
}

TEST_CASE("a value of the wrong type or size fails in words", "[engine][gguf]") {
  GgufWriter writer = one_of_each();
  writer.value("nan", float(NAN)).scalar("huge", 12, 1e300);
  const std::string file = writer.file();
  Gguf gguf;
  REQUIRE(open_memory(file, &gguf).ok());
  uint32_t u = 5;
  float f = 5;
  bool b = false;
  std::string_view text;
  StringArray strings;
  PackedArray<float> floats;
  PackedArray<int32_t> ints;
  const auto refused = [&](Status status, const char* key, const char* expected) {
    INFO(error_text());
    CHECK(status.code == Code::File);
    CHECK(says(key));
    CHECK(says(expected));
  };
  refused(gguf.get_u32("i8", &u), "\"i8\"", "-3, expected 0 to 4294967295");
  refused(gguf.get_u32("u64", &u), "\"u64\"", "1099511627776, expected");
  refused(gguf.get_u32("i64", &u), "\"i64\"", "-1099511627776, expected");
  refused(gguf.get_u32("string", &u), "\"string\"", "string, expected an integer");
  refused(gguf.get_u32("f32", &u), "\"f32\"", "f32, expected an integer");
  refused(gguf.get_u32("ints", &u), "\"ints\"", "array of 2 i32, expected an integer");
  refused(gguf.get_f32("nan", &f), "\"nan\"", "finite");
  refused(gguf.get_f32("huge", &f), "\"huge\"", "finite");
  refused(gguf.get_f32("bool", &f), "\"bool\"", "expected a number");
  refused(gguf.get_f32("floats", &f), "\"floats\"", "array of 3 f32, expected a number");
  refused(gguf.get_bool("u8", &b), "\"u8\"", "u8, expected a bool");
  refused(gguf.get_string("u8", &text), "\"u8\"", "expected a string");
  refused(gguf.get_strings("floats", &strings), "\"floats\"", "array of 3 f32, expected an array of string");
  refused(gguf.get_f32_array("ints", &floats), "\"ints\"", "expected an array of f32");
  refused(gguf.get_i32_array("i32", &ints), "\"i32\"", "i32, expected an array of i32");
  refused(gguf.require("absent"), "\"absent\"", "missing");
  CHECK(u == 5);
  CHECK(f == 5);
}

TEST_CASE("a key that is absent leaves the default", "[engine][gguf]") {
  const std::string file = one_of_each().array("unsigned", 4, std::vector<uint32_t>{7}).file();
  Gguf first, gguf;
  REQUIRE(open_memory(file, &first).ok());
  gguf = std::move(first);
  const StringArray some{nullptr, 9};
  const PackedArray<float> floats{nullptr, 9};
  const PackedArray<int32_t> ints{nullptr, 9};
  CHECK(get(&Gguf::get_f32, gguf, "absent", 1.5f) == 1.5f);
  CHECK(get(&Gguf::get_bool, gguf, "absent", true));
  CHECK(get(&Gguf::get_string, gguf, "absent", std::string_view("text")) == "text");
  CHECK(get(&Gguf::get_strings, gguf, "absent", some).count == 9);
  CHECK(get(&Gguf::get_f32_array, gguf, "absent", floats).count == 9);
  CHECK(get(&Gguf::get_i32_array, gguf, "absent", ints).count == 9);
  CHECK(get(&Gguf::get_i32_array, gguf, "unsigned", ints)[0] == 7);
  CHECK(gguf.require("u8").ok());
}

TEST_CASE("values as numbers", "[engine][gguf]") {
  const std::string file = one_of_each().file();
  Gguf gguf;
  REQUIRE(open_memory(file, &gguf).ok());
  std::vector<double> numbers;
  for (const char* key : {"i64", "f64", "bool", "ints", "bools", "nothing"})
    CHECK(gguf_numbers(*gguf.find(key), &numbers) == (key != std::string("nothing")));
  CHECK(numbers == std::vector<double>{-0x1p40, 0.25, 1, -1, 2, 1, 0, 1});
  CHECK_FALSE(gguf_numbers(*gguf.find("string"), &numbers));
  CHECK_FALSE(gguf_numbers(*gguf.find("strings"), &numbers));
  CHECK(numbers.size() == 8);
}

TEST_CASE("one value for each layer", "[engine][gguf]") {
  const std::string file = one_of_each().file();
  Gguf gguf;
  REQUIRE(open_memory(file, &gguf).ok());
  uint32_t layers[3] = {};
  REQUIRE(gguf.get_layers_u32("u8", 3, layers).ok());
  CHECK((layers[0] == 200 && layers[2] == 200));
  REQUIRE(gguf.get_layers_u32("bools", 3, layers).ok());
  CHECK((layers[0] == 1 && layers[1] == 0 && layers[2] == 1));
  CHECK(gguf.get_layers_u32("ints", 3, layers).code == Code::File);
  CHECK(says("an array of 2 values, expected 3, one for each layer"));
  CHECK(gguf.get_layers_u32("ints", 2, layers).code == Code::File);
  CHECK(says("-1, expected 0"));
  CHECK(gguf.get_layers_u32("floats", 3, layers).code == Code::File);
  CHECK(gguf.get_layers_u32("string", 3, layers).code == Code::File);
  CHECK(gguf.get_layers_u32("strings", 3, layers).code == Code::File);
  layers[0] = 77;
  CHECK(gguf.get_layers_u32("absent", 3, layers).ok());
  CHECK(layers[0] == 77);
}

TEST_CASE("tensors of every type with their places", "[engine][gguf]") {
  GgufWriter writer;
  writer.alignment = 64;
  writer.value("general.alignment", 64u);
  uint64_t bytes[uint32_t(QuantType::count)];
  for (uint32_t t = 0; t < uint32_t(QuantType::count); ++t) {
    const QuantInfo& info = quant_info(QuantType(t));
    bytes[t] = 6ull * info.block_bytes;
    writer.tensor(std::string("t.") + info.name, info.gguf_id, {info.block * 2ull, 3},
                  std::string(bytes[t], char(t)));
  }
  const std::string file = writer.file();
  Gguf gguf;
  REQUIRE(open_memory(file, &gguf).ok());
  REQUIRE(gguf.tensors().size() == uint32_t(QuantType::count));
  for (uint32_t t = 0; t < uint32_t(QuantType::count); ++t) {
    const GgufTensor* tensor = gguf.find_tensor(std::string("t.") + quant_info(QuantType(t)).name);
    REQUIRE(tensor);
    CHECK(tensor->type == QuantType(t));
    CHECK(tensor->dims == 2);
    CHECK((tensor->ne[0] == quant_info(QuantType(t)).block * 2 && tensor->ne[1] == 3 && tensor->ne[2] == 1));
    CHECK(tensor->bytes == bytes[t]);
    CHECK(tensor->offset % 64 == 0);
    std::string data(tensor->bytes, 0);
    REQUIRE(gguf.source().read_at(0, tensor->offset, data.data(), data.size()).ok());
    CHECK(data == std::string(bytes[t], char(t)));
  }
  CHECK_FALSE(gguf.find_tensor("t"));
  CHECK_FALSE(gguf.find_tensor("u"));
  CHECK_FALSE(gguf.find_tensor(""));
}

TEST_CASE("split models", "[engine][gguf]") {
  const test::TemporaryFolder folder;
  const auto part = [](uint16_t number, uint16_t count, int32_t tensors, const char* name) {
    GgufWriter writer;
    writer.scalar("split.no", 2, number)
        .scalar("split.count", 2, count)
        .scalar("split.tensors.count", 5, tensors);
    if (number == 0) writer.value("general.name", "whole");
    return writer.tensor(name, 0, {8}, std::string(32, char('0' + number))).file();
  };
  const auto open = [&](const std::string& path, Gguf* out) -> Status {
    Source source;
    GRETA_TRY(source.open_file(path.c_str()));
    return out->open(std::move(source));
  };
  folder.write("m-00001-of-00002.gguf", part(0, 2, 2, "a"));
  folder.write("m-00002-of-00002.gguf", part(1, 2, 2, "b"));
  Gguf gguf;
  REQUIRE(open(folder.path() + "/m-00002-of-00002.gguf", &gguf).ok());
  REQUIRE(gguf.find_tensor("b"));
  CHECK(gguf.find_tensor("a")->part == 0);
  CHECK(gguf.find_tensor("b")->part == 1);
  CHECK(gguf.find("general.name"));
  char byte;
  REQUIRE(gguf.source().read_at(1, gguf.find_tensor("b")->offset, &byte, 1).ok());
  CHECK(byte == '1');

  const struct {
    std::string first, second;
    const char* expected;
  } rows[] = {
      {part(0, 2, 3, "a"), part(1, 2, 3, "b"), "hold 2 tensors, expected 3"},
      {part(1, 2, 2, "a"), part(0, 2, 2, "b"), "part 2 of 2, expected 1 of 2"},
      {part(0, 2, 2, "a"), part(0, 2, 2, "b"), "part 1 of 2, expected 2 of 2"},
      {part(0, 3, 2, "a"), part(1, 3, 2, "b"), "part 1 of 3, expected 1 of 2"},
      {part(0, 2, 2, "a"), part(1, 2, 2, "a"), "tensor \"a\": there are two"},
      {GgufWriter().file(), part(1, 2, 1, "b"), "part 1 of 1, expected 1 of 2"},
      {GgufWriter().value("split.count", 2u).file(), part(1, 2, 1, "b"), "no key split.no, expected it in"},
  };
  for (const auto& row : rows) {
    folder.write("x-00001-of-00002.gguf", row.first);
    folder.write("x-00002-of-00002.gguf", row.second);
    Gguf bad;
    CHECK(open(folder.path() + "/x-00001-of-00002.gguf", &bad).code == Code::File);
    INFO(error_text());
    CHECK(says(row.expected));
  }
  Gguf alone;
  CHECK(open(folder.write("renamed.gguf", part(1, 2, 2, "b")), &alone).code == Code::File);
  CHECK(says("part 2 of a model split in 2"));
  Gguf whole;  // one part of one is whole, whatever its number
  CHECK(open(folder.write("one.gguf", part(2, 1, 1, "b")), &whole).ok());
}

TEST_CASE("values as short text", "[engine][gguf]") {
  GgufWriter writer = one_of_each();
  writer.value("odd", "a\"b\n\x1b\\\x7f").value("false", false);
  const std::string file = writer.file();
  Gguf gguf;
  REQUIRE(open_memory(file, &gguf).ok());
  const auto text = [&](const char* key, uint32_t most = 60) { return gguf_text(*gguf.find(key), most); };
  CHECK(text("i64") == "-1099511627776");
  CHECK(text("f32") == "1.5");
  CHECK(text("bool") == "true");
  CHECK(text("string", 3) == "\"caf\"...");
  CHECK(text("strings") == "[\"a\", \"\", \"bcd\"]");
  CHECK(text("strings", 7) == "[\"a\", \"\", ...] (3)");
  CHECK(text("bools") == "[true, false, true]");
  CHECK(text("nothing") == "[]");
  CHECK(text("odd") == "\"a\\\"b\\n \\\\ \"");
  CHECK(text("false") == "false");
}
