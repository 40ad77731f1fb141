// The rules of argument blocks in C++, and GLSL's idea of their layout, read from its SPIR-V.
#include <catch2/catch_test_macros.hpp>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "abi_headers.inc"
#include "runtime/device.h"

namespace {

struct Field {
  std::string block, name;
  uint64_t offset, bytes;
};

struct Block {
  std::string name;
  uint64_t bytes;
};

const std::vector<Block> kBlocks = {
#define BLOCK(block) {#block, sizeof(block)},
#define FIELD(block, field)
#include "abi_fields.inc"
#undef BLOCK
#undef FIELD
};

const std::vector<Field> kFields = {
#define BLOCK(block)
#define FIELD(block, field) {#block, #field, offsetof(block, field), sizeof(block::field)},
#include "abi_fields.inc"
#undef BLOCK
#undef FIELD
};

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

}  // namespace

TEST_CASE("argument blocks hold addresses first and at most 128 bytes", "[spike]") {
  CHECK(kBlocks.size() > 15);
  for (const Block& block : kBlocks) {
    CAPTURE(block.name);
    if (!ends_with(block.name, "Block")) continue;
    CHECK(block.bytes <= greta::kMaxBlockBytes);
    uint64_t end = 0;
    bool scalars = false;
    for (const Field& field : kFields) {
      if (field.block != block.name) continue;
      CAPTURE(field.name);
      CHECK(field.offset == end);  // no padding between fields
      end = field.offset + field.bytes;
      CHECK((field.bytes == 8 || field.bytes == 4));
      CHECK_FALSE((scalars && field.bytes == 8));
      scalars = field.bytes == 4;
    }
    CHECK(block.bytes - end < 8);
  }
}

#ifdef ABI_PROBE_SPIRV
namespace {

std::vector<uint32_t> read_words(const char* path) {
  std::vector<uint32_t> words;
  FILE* file = std::fopen(path, "rb");
  uint32_t word;
  while (file && std::fread(&word, sizeof word, 1, file) == 1) words.push_back(word);
  if (file) std::fclose(file);
  return words;
}

// Offsets by "Struct.member", of the structs that have them.
std::map<std::string, uint32_t> member_offsets(const std::vector<uint32_t>& words) {
  constexpr uint32_t kHeaderWords = 5, kOpName = 5, kOpMemberName = 6, kOpMemberDecorate = 72, kOffset = 35;
  std::map<uint32_t, std::string> structs;
  std::map<std::pair<uint32_t, uint32_t>, std::string> members;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> offsets;
  for (size_t at = kHeaderWords; at < words.size() && words[at] >> 16;) {
    const uint32_t* word = &words[at];
    const uint32_t op = word[0] & 0xffff;
    if (op == kOpName) structs[word[1]] = reinterpret_cast<const char*>(word + 2);
    if (op == kOpMemberName) members[{word[1], word[2]}] = reinterpret_cast<const char*>(word + 3);
    if (op == kOpMemberDecorate && word[3] == kOffset) offsets[{word[1], word[2]}] = word[4];
    at += word[0] >> 16;
  }
  std::map<std::string, uint32_t> result;
  for (const auto& [member, offset] : offsets) {
    std::string name = members[member];
    if (ends_with(name, "_")) name.pop_back();  // abi.h renames what GLSL reserves
    result[structs[member.first] + "." + name] = offset;
  }
  return result;
}

}  // namespace

TEST_CASE("GLSL packs the blocks as C++ does", "[spike]") {
  const std::vector<uint32_t> words = read_words(ABI_PROBE_SPIRV);
  REQUIRE(words.size() > 100);
  REQUIRE(words[0] == 0x07230203);
  const std::map<std::string, uint32_t> offsets = member_offsets(words);
  for (const Field& field : kFields) {
    const std::string name = field.block + "." + field.name;
    CAPTURE(name);
    const auto found = offsets.find(name);
    REQUIRE(found != offsets.end());
    CHECK(found->second == field.offset);
  }
}
#endif
