// JSON schemas with alternatives: oneOf, of which exactly one may hold, many values, and alternatives that no
// value meets.
#include <catch2/catch_test_macros.hpp>
#include <string>
#include <vector>

#include "text/grammar/grammar.h"
#include "text/grammar/json_schema.h"

using namespace greta;

namespace {

struct Schema {
  explicit Schema(const std::string& schema, bool strict = true) {
    std::string gbnf;
    const Log log = {[](void* to, uint32_t level, const char* text) {
                       if (level == uint32_t(LogLevel::Warning)) *static_cast<std::string*>(to) += text;
                     },
                     &warning};
    const bool made = json_schema_grammar(schema, {.strict = strict, .log = log}, &gbnf).ok() &&
                      parse_grammar(gbnf, "root", nullptr, &grammar).ok();
    INFO(schema << ": " << error_text() << gbnf);
    REQUIRE(made);
  }
  bool allows(std::string_view text) const {
    GrammarMatcher matcher(grammar);
    REQUIRE(matcher.reset().ok());
    return matcher.push(text).ok() && matcher.may_end();
  }
  std::string warning;
  std::shared_ptr<const Grammar> grammar;
};

struct Case {
  const char* schema;
  std::vector<std::string_view> yes, no;
};

void check(const Case& each) {
  const Schema schema(each.schema);
  INFO(each.schema);
  CHECK(schema.warning == "");
  for (const std::string_view text : each.yes) {
    INFO("yes: " << text);
    CHECK(schema.allows(text));
  }
  for (const std::string_view text : each.no) {
    INFO("no: " << text);
    CHECK_FALSE(schema.allows(text));
  }
}

std::string numbered(int count, const char* format) {
  std::string list;
  for (int i = 0; i < count; ++i) {
    char text[64];
    snprintf(text, sizeof text, format, i);
    list += (i ? "," : "") + std::string(text);
  }
  return list;
}

}  // namespace

TEST_CASE("json schema: of oneOf exactly one holds", "[grammar]") {
  const Case cases[] = {
      // One property or the other, and not both.
      {R"({"type":"object","properties":{"a":{},"b":{},"c":{}},)"
       R"("oneOf":[{"required":["a"]},{"required":["b"]}]})",
       {R"({"a":1})", R"({"b":1,"c":2})"},
       {R"({"a":1,"b":1})", "{}", R"({"c":1})"}},
      {R"({"properties":{"a":{}},"required":["a"],)"
       R"("oneOf":[{"properties":{"n":{"const":1}},"required":["n"]},{"required":["a"]}]})",
       {R"({"a":1})"},
       {R"({"a":1,"n":1})"}},
      // Objects that a property tells apart, here and behind a reference.
      {R"({"oneOf":[{"properties":{"k":{"const":"x"},"v":{"type":"null"}},"required":["k"]},)"
       R"({"properties":{"k":{"enum":["y","z"]}},"required":["k"]}]})",
       {R"({"k":"x","v":null})", R"({"k":"z"})"},
       {R"({"k":"w"})", "{}"}},
      {R"({"oneOf":[{"$ref":"#/$defs/a"},{"$ref":"#/$defs/b"}],"$defs":{)"
       R"("a":{"type":"object","properties":{"t":{"$ref":"#/$defs/one"}},"required":["t"]},)"
       R"("b":{"type":"object","properties":{"t":{"const":2},"in":{"$ref":"#"}},"required":["t"]},)"
       R"("one":{"const":1}}})",
       {R"({"t":1})", R"({"t":2,"in":{"t":2,"in":{"t":1}}})"},
       {R"({"t":3})"}},
      // Types, bounds, lengths and patterns.
      {R"({"oneOf":[{"type":"string"},{"type":["integer","null"]},)"
       R"({"type":"array","items":{"type":"string"}}]})",
       {"\"a\"", "1", "null", "[\"a\"]", "[]"},
       {"1.5"}},
      {R"({"type":"integer","oneOf":[{"minimum":10},{"maximum":0}]})", {"10", "0"}, {"5"}},
      {R"({"type":"string","oneOf":[{"maxLength":2},{"minLength":4}]})", {"\"ab\"", "\"abcd\""}, {"\"abc\""}},
      {R"({"oneOf":[{"type":"string","pattern":"^a"},{"type":"string","pattern":"^b"}]})",
       {"\"ax\"", "\"bx\""},
       {"\"c\""}},
      {R"({"oneOf":[{"enum":[1,"a"]},{"enum":["b",2]},{"type":"boolean"}]})", {"1", "\"b\"", "true"}, {"3"}},
      // An empty array would meet both.
      {R"({"oneOf":[{"type":"array","items":{"type":"string"}},{"type":"array","items":{"type":"null"}}]})",
       {"[\"a\"]", "[null,null]"},
       {"[]", "[\"a\",null]"}},
      // What meets the first also meets the second.
      {R"({"oneOf":[{"type":"string","minLength":4},{"type":"string"},{"type":"null"}],"maxLength":3})",
       {"\"abc\"", "null"},
       {"\"abcd\""}},
  };
  for (const Case& each : cases) check(each);
}

TEST_CASE("json schema: a oneOf that is not held is told, or refused", "[grammar]") {
  const std::string overlap = R"({"oneOf":[{"type":"integer"},{"type":"number","minimum":0}]})";
  std::string gbnf;
  CHECK(json_schema_grammar(overlap, {.strict = true}, &gbnf).code == Code::Unsupported);
  CHECK(std::string(error_text()) == "JSON schema: \"oneOf\" is not supported: \"#/oneOf\"");
  const Schema schema(overlap, false);
  CHECK(schema.warning.find("answers are not held to oneOf (\"#/oneOf\")") != std::string::npos);
  CHECK(schema.allows("1"));
  const std::string many = "{\"oneOf\":[" + numbered(300, R"({"const":%d})") + "]}";
  CHECK_FALSE(json_schema_grammar(many, {.strict = true}, &gbnf).ok());
  // Two schemas that say the same cannot hold alone.
  CHECK(json_schema_grammar(R"({"oneOf":[{"type":"null"},{"type":"null"}]})", {}, &gbnf).code ==
        Code::Argument);
}

TEST_CASE("json schema: many values take few states", "[grammar]") {
  const Schema values("{\"enum\":[" + numbered(3000, "\"v%d\"") + "]}");
  for (const char* text : {"\"v0\"", "\"v1\"", "\"v2999\""}) CHECK(values.allows(text));
  for (const char* text : {"\"v\"", "\"v3000\"", "\"v01\"", "v1"}) CHECK_FALSE(values.allows(text));
  const std::string even = R"({"type":"integer","maximum":100,"multipleOf":2})";
  const Schema twice(R"({"properties":{"a":)" + even +
                     R"(},"anyOf":[{"required":["a"]},{"properties":{"b":{}},"required":["b"]}]})");
  CHECK(twice.allows(R"({"a":98})"));
  CHECK(twice.allows(R"({"a":-98,"b":1})"));
  CHECK_FALSE(twice.allows(R"({"a":99})"));
  CHECK_FALSE(twice.allows(R"({"a":102})"));
  const Schema odd(R"({"enum":["é","è","","a","aa","aaa",1,11,1.5,"\"",[1],[1,2]]})");
  for (const char* text : {"\"é\"", "\"\"", "\"aa\"", "1", "11", "1.5", R"("\"")", "[1]", "[1, 2]"}) {
    INFO(text);
    CHECK(odd.allows(text));
  }
  for (const char* text : {"\"\xC3\"", "\"aaaa\"", "1.", "[1"}) CHECK_FALSE(odd.allows(text));
  std::string deep;
  for (int i = 0; i < 300; ++i) deep += (i ? ",\"" : "\"") + std::string(size_t(i), 'a') + "\"";
  CHECK(Schema("{\"enum\":[" + deep + "]}").allows("\"" + std::string(299, 'a') + "\""));
}

TEST_CASE("json schema: what no value meets does not come where it need not", "[grammar]") {
  const Case cases[] = {
      {R"({"properties":{"a":{"type":"string","pattern":"^xyz$","maxLength":2},"b":{"type":"null"}}})",
       {"{}", R"({"b":null})"},
       {R"({"a":""})"}},
      {R"({"properties":{"a":{"type":"null"},"b":{"type":"null"}},)"
       R"("patternProperties":{"a":{"type":"integer"}}})",
       {"{}", R"({"b":null})", R"({"xa":1})"},
       {R"({"a":null})", R"({"a":1})"}},
      {R"({"anyOf":[{"type":"integer","minimum":1,"maximum":2,"multipleOf":5},{"type":"null"}]})",
       {"null"},
       {"5"}},
      {R"({"type":["string","null"],"pattern":"^abc$","maxLength":1})", {"null"}, {"\"abc\""}},
      {R"({"type":"array","items":{"type":"string","format":"date","maxLength":3}})", {"[]"}, {"[\"\"]"}},
      {R"({"properties":{"a":{"$ref":"#/$defs/n"},"b":{"$ref":"#/$defs/n"},"c":{}},)"
       R"("$defs":{"n":{"type":"string","enum":[1]}}})",
       {"{}", R"({"c":1})"},
       {R"({"a":1})"}},
      {R"({"type":"object","properties":{},"minProperties":1})", {R"({"a":1})"}, {"{}"}},
  };
  for (const Case& each : cases) check(each);
  std::string gbnf;
  CHECK_FALSE(
      json_schema_grammar(R"({"properties":{"a":{"enum":[1],"type":"string"}},"required":["a"]})", {}, &gbnf)
          .ok());
}

TEST_CASE("json schema: patterns beside lengths of any size", "[grammar]") {
  for (const char* pattern : {".", "a|b", "^[a-z]+$", "\\\\.json$"})
    for (const char* least : {"0", "1", "6"}) {
      const Schema schema(R"({"type":"string","pattern":")" + std::string(pattern) + R"(","minLength":)" +
                          least + R"(,"maxLength":65536})");
      CHECK(schema.allows(pattern[0] == '\\' ? "\"abcdef.json\"" : "\"abcdef\""));
      CHECK_FALSE(schema.allows("\"\""));
    }
  // More states than there may be: the lengths are told of, and else refused.
  const std::string large = R"({"type":"string","pattern":"^(ab)+$","minLength":9000})";
  std::string gbnf;
  CHECK(json_schema_grammar(large, {.strict = true}, &gbnf).code == Code::Unsupported);
  CHECK(Schema(large, false).warning.find("minLength") != std::string::npos);
}
