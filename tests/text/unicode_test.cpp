// UTF-8, and the classes of code points.
#include "text/unicode/unicode.h"

#include <catch2/catch_test_macros.hpp>
#include <vector>

using namespace greta;

TEST_CASE("every code point survives encoding and decoding", "[engine][unicode]") {
  for (uint32_t code = 0; code < 0x110000; ++code) {
    char bytes[4];
    const uint32_t count = encode_utf8(code, bytes);
    const CodePoint back = decode_utf8({bytes, count}, 0);
    const bool surrogate = code >= 0xD800 && code < 0xE000;
    if (back.bytes != count || back.code != (surrogate ? kReplacement : code)) FAIL("code point " << code);
  }
  char bytes[4];
  CHECK(decode_utf8({bytes, encode_utf8(0x110000, bytes)}, 0).code == kReplacement);
}

TEST_CASE("invalid UTF-8 becomes one U+FFFD for each maximal part", "[engine][unicode]") {
  const std::string bad = "\xEF\xBF\xBD";
  const struct {
    std::string text, expected;
  } rows[] = {
      {"\x80", bad},
      {"a\xFFz", "a" + bad + "z"},
      {"\xC0\xAF", bad + bad},                      // overlong
      {"\xE0\x80\xAF", bad + bad + bad},            // overlong: E0 80 is no start
      {"\xED\xA0\x80", bad + bad + bad},            // a surrogate
      {"\xF4\x90\x80\x80", bad + bad + bad + bad},  // above U+10FFFF
      {"\xF0\x9F\x99", bad},                        // cut short
      {"\xF0\x9F\x99x", bad + "x"},
      {"\xE1\x80\xE2\xF0\x91\x92\xF1\xBFz", bad + bad + bad + bad + "z"},  // the standard's example
  };
  for (const auto& row : rows) {
    CHECK_FALSE(is_valid_utf8(row.text));
    CHECK(valid_utf8(row.text) == row.expected);
  }
  CHECK(is_valid_utf8("\xF0\x9F\x99\x82 \xC3\xA9"));
  CHECK(is_valid_utf8(std::string_view("\0", 1)));
}

TEST_CASE("a stream lets only whole characters out", "[engine][unicode]") {
  const std::string text = "a\xC3\xA9\xE4\xBD\xA0\xF0\x9F\x99\x82z\xFF\xE4\xBD";
  for (size_t step = 1; step <= text.size(); ++step) {
    Utf8Stream stream;
    std::string out;
    for (size_t at = 0; at < text.size(); at += step) {
      stream.push(std::string_view(text).substr(at, step), &out);
      CHECK(is_valid_utf8(out));
    }
    CHECK(out == "a\xC3\xA9\xE4\xBD\xA0\xF0\x9F\x99\x82z\xEF\xBF\xBD");
    stream.flush(&out);
    CHECK(out == valid_utf8(text));
    stream.flush(&out);
    CHECK(out == valid_utf8(text));
  }
}

TEST_CASE("classes of code points", "[engine][unicode]") {
  const struct {
    uint32_t code;
    CharClass expected;
  } rows[] = {{'a', CharClass::Lower},
              {'Z', CharClass::Upper},
              {'7', CharClass::Decimal},
              {'_', CharClass::Connector},
              {'!', CharClass::Punctuation},
              {'+', CharClass::Symbol},
              {' ', CharClass::Space},
              {'\n', CharClass::Space},
              {0, CharClass::Control},
              {0x85, CharClass::Space},
              {0xE9, CharClass::Lower},
              {0x1C5, CharClass::Title},
              {0x2B0, CharClass::Modifier},
              {0x4F60, CharClass::OtherLetter},
              {0x301, CharClass::NonspacingMark},
              {0x903, CharClass::Mark},
              {0x20DD, CharClass::Mark},
              {0xBD, CharClass::OtherNumber},
              {0x2167, CharClass::LetterNumber},
              {0x1F642, CharClass::Symbol},
              {0x3002, CharClass::Punctuation},
              {0x378, CharClass::Unassigned},
              {0xD800, CharClass::Control},
              {0xE000, CharClass::Control},
              {0x10FFFF, CharClass::Unassigned},
              {0x110000, CharClass::Unassigned},
              {UINT32_MAX, CharClass::Unassigned},
              {0xAC00, CharClass::OtherLetter},
              {0xD7A3, CharClass::OtherLetter},
              {0xD7A4, CharClass::Unassigned},
              {0x20C1, CharClass::Symbol}};  // of Unicode 17
  for (const auto& row : rows) {
    INFO(std::hex << row.code);
    CHECK(char_class(row.code) == row.expected);
  }
  uint32_t spaces = 0;
  for (uint32_t code = 0; code < 0x110000; ++code) spaces += is_space(code);
  CHECK(spaces == 25);  // White_Space has had 25 members since Unicode 6.3
  CHECK_FALSE(is_space(0x200B));
  CHECK_FALSE(is_space(0x1C));
}

TEST_CASE("lower case, decomposition, Han", "[engine][unicode]") {
  CHECK(lower_case('Q') == 'q');
  CHECK(lower_case('q') == 'q');
  CHECK(lower_case(0xC9) == 0xE9);
  CHECK(lower_case(0x3A3) == 0x3C3);
  CHECK(lower_case(0x130) == 'i');
  CHECK(lower_case(0x4F60) == 0x4F60);
  CHECK(lower_case(UINT32_MAX) == UINT32_MAX);
  const struct {
    uint32_t code;
    std::vector<uint32_t> expected;
  } rows[] = {{'e', {'e'}},
              {0xE9, {'e'}},
              {0x301, {}},
              {0x1EC7, {'e'}},  // two marks
              {0x37E, {';'}},
              {0xAC00, {0x1100, 0x1161}},
              {0xAC01, {0x1100, 0x1161, 0x11A8}},
              {0xD7A3, {0x1112, 0x1175, 0x11C2}},
              {0x9CB, {0x9C7, 0x9BE}},
              {0x1D160, {0x1D158, 0x1D165, 0x1D16E}},
              {0x4F60, {0x4F60}},
              {UINT32_MAX, {UINT32_MAX}}};
  for (const auto& row : rows) {
    uint32_t codes[kMaxDecomposed];
    const uint32_t count = decompose(row.code, codes);
    CHECK(std::vector<uint32_t>(codes, codes + count) == row.expected);
  }
  CHECK(is_han(0x4F60));
  CHECK(is_han(0x3005));
  CHECK(is_han(0x2E80));
  CHECK_FALSE(is_han(0x2E9A));
  CHECK_FALSE(is_han(0x3042));
  CHECK_FALSE(is_han('a'));
  CHECK_FALSE(is_han(UINT32_MAX));
}

TEST_CASE("names are quoted so that a terminal is safe", "[engine][unicode]") {
  CHECK(std::string(Quoted("blk.0.attn_q").c_str()) == "\"blk.0.attn_q\"");
  CHECK(std::string(Quoted("\x1b[2J\xFF\"").c_str()) == "\"\\x1B[2J\\xFF\\x22\"");
  CHECK(std::string(Quoted("\xC3\xA9\xC2\x9B").c_str()) == "\"\xC3\xA9\\xC2\\x9B\"");
  const std::string longest = Quoted(std::string(100000, '\xF1')).c_str();
  CHECK(longest.size() < 120);
  CHECK(longest.substr(longest.size() - 4) == "...\"");
}
