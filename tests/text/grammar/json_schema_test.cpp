// What the grammars of JSON schemas accept and refuse, and which schemas are refused by name.
#include "text/grammar/json_schema.h"

#include <catch2/catch_test_macros.hpp>

#include "text/grammar/grammar.h"

using namespace greta;

namespace {

std::shared_ptr<const Grammar> grammar_of(std::string_view schema) {
  std::string gbnf;
  std::shared_ptr<const Grammar> grammar;
  const Status status = json_schema_grammar(schema, {}, &gbnf);
  INFO(schema << ": " << error_text());
  REQUIRE(status.ok());
  const Status parsed = parse_grammar(gbnf, "root", nullptr, &grammar);
  INFO(gbnf << error_text());
  REQUIRE(parsed.ok());
  return grammar;
}

struct Case {
  const char* schema;
  std::vector<std::string_view> yes, no;
};

const Case kCases[] = {
    {"{}", {"1", "{}", "[1, \"a\", {\"b\":null}]", "-1.5e3", "true"}, {"", "01", "{a:1}", "[1,]"}},
    {R"({"type":"object"})", {"{}", R"({"a":{"b":[]}})"}, {"[]", "1"}},
    {R"({"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string"},)"
     R"("c":{"type":"null"}},"required":["b"]})",
     {R"({"b":"x"})", R"({"a":1,"b":""})", R"({"b":"x","c":null})", R"({"a":-7, "b":"é\n","c":null})"},
     {"{}", R"({"a":1})", R"({"b":1})", R"({"b":"x","a":1})", R"({"b":"x",})", R"({"b":"x","d":1})",
      R"({,"b":"x"})"}},
    {R"({"properties":{"a":{"type":"integer"}},"additionalProperties":{"type":"boolean"}})",
     {"{}", R"({"a":1})", R"({"a":1,"b":true})", R"({"aa":true,"":false})", R"({"é":true})"},
     {R"({"a":true})", R"({"b":1})", R"({"\u0061":true})"}},
    {R"({"type":"object","additionalProperties":false})", {"{}"}, {R"({"a":1})"}},
    {R"({"required":["k"],"type":"object"})", {R"({"k":1})", R"({"k":[],"z":2})"}, {"{}", R"({"z":2})"}},
    {R"({"enum":["a",1,null,{"x":[true]}]})", {"\"a\"", "1", "null", R"({"x": [true]})"}, {"\"b\"", "2"}},
    {R"({"type":"string","enum":["a",1]})", {"\"a\""}, {"1"}},
    {R"({"const":"q\"\\\n"})", {R"("q\"\\\n")"}, {"\"q\""}},
    {R"({"type":["integer","null"]})", {"5", "null"}, {"5.5", "\"5\""}},
    {R"({"anyOf":[{"type":"integer"},{"type":"array","items":{"type":"boolean"}}]})",
     {"5", "[]", "[true,false]"},
     {"[1]", "true"}},
    {R"({"type":"string","minLength":2,"maxLength":3})",
     {R"("ab")", R"("aéz")", R"("\n\u00e9")"},
     {R"("a")", R"("abcd")", R"("\ud800x")", "\"a\nb\""}},
    {R"({"type":"array","items":{"type":"integer"},"minItems":2,"maxItems":3})",
     {"[1,2]", "[1, 2, 3]"},
     {"[1]", "[1,2,3,4]", "[]"}},
    {R"({"type":"array","prefixItems":[{"type":"integer"},{"type":"string"}],"minItems":1})",
     {"[1]", R"([1,"a"])"},
     {"[]", R"(["a"])", "[1,\"a\",2]"}},
    {R"({"prefixItems":[{"type":"integer"}],"items":{"type":"null"},"minItems":2})",
     {"[1,null]", "[1,null,null]"},
     {"[1]", "[1,1]"}},
    {R"({"type":"array","maxItems":0})", {"[]"}, {"[1]"}},
    {R"({"$defs":{"tree":{"type":"object","properties":{"v":{"type":"integer"},)"
     R"("kids":{"type":"array","items":{"$ref":"#/$defs/tree"}}},"required":["v"]}},"$ref":"#/$defs/tree"})",
     {R"({"v":1})", R"({"v":1,"kids":[{"v":2,"kids":[]},{"v":3}]})"},
     {R"({"kids":[]})", R"({"v":1,"kids":[{}]})"}},
    {R"({"type":"object","properties":{"next":{"$ref":"#"}}})",
     {"{}", R"({"next":{"next":{}}})"},
     {R"({"next":1})"}},
    {R"({"type":"string","format":"date"})",
     {"\"2024-02-28\"", "\"1999-12-31\""},
     {"\"2024-02-30\"", "\"2024-13-01\"", "\"2024-04-31\""}},
    {R"({"type":"string","format":"uuid"})", {"\"01234567-89ab-cdef-0123-456789abcdef\""}, {"\"01234567\""}},
    {R"({"type":"string","format":"date-time"})",
     {"\"2024-02-28T23:59:59Z\"", "\"2024-02-28T00:00:00.5+01:00\""},
     {"\"2024-02-28\""}},
    {R"({"type":["integer","string"],"format":"date"})", {"7", "\"2024-02-28\""}, {"\"7\""}},
    {R"({"allOf":[{"type":"object","properties":{"a":{"type":"integer"}},)"
     R"("required":["a"]},{"$ref":"#/$defs/b"}],"required":["c"],
         "$defs":{"b":{"properties":{"b":{"type":"null"},"a":{"type":"integer"}}}}})",
     {R"({"a":1,"b":null,"c":[]})", R"({"a":1,"c":2})"},
     {R"({"a":1})", R"({"c":1})", R"({"a":"x","c":1})", R"({"a":1,"b":1,"c":1})"}},
    {R"({"allOf":[{"properties":{"a":{}}},{"additionalProperties":false,"properties":{"a":{},"b":{}}}]})",
     {"{}", R"({"a":1})", R"({"a":1,"b":2})"},
     {R"({"c":1})"}},
    {R"({"pattern":"^[A-C]{2}-\\d+(x|yz)?$"})",
     {"\"AB-1\"", "\"CC-12yz\"", "\"AA-0x\""},
     {"\"AD-1\"", "\"AB-\"", "\"AB-1xyz\"", "AB-1", "\"\""}},
    {R"({"type":"string","pattern":"^(?:a|b.){0,2}?$"})",
     {"\"\"", "\"a\"", "\"bxa\"", "\"b\\\"b\\\\\"", "\"bé\""},
     {"\"b\"", "\"aaa\"", "\"b\\n\"", "\"b\"\""}},
    {R"({"pattern":"^[^a\\]\\s\\\\]+[\\w\\-]\\u00e9\\.$"})",
     {"\"xyz_é.\"", "\"\\\"-é.\""},
     {"\"a_é.\"", "\"x _é.\"", "\"x\\\\_é.\"", "\"xyz_éx\""}},
    {R"({"pattern":"^$"})", {"\"\""}, {"\"a\""}},
    {R"({"pattern":"^[\\n\\x41\"]\\S\\D\\W$"})",
     {R"("\nxx ")", R"("A\"\\!")", R"("\"xx\t")"},
     {R"("nxx ")", R"("A x ")", R"("Ax1 ")", R"("Axxx")"}},
    {R"({"type":"number","minimum":0,"maximum":2})", {"0", "0.5", "1.99", "2"}, {"-1", "2.1", "3", "-0.5"}},
    {R"({"type":"number","exclusiveMinimum":0,"exclusiveMaximum":1})",
     {"0.5", "0.00000000000001"},
     {"0", "1", "0.0", "-0.5", "0.9999999999999999"}},
    {R"({"type":"number","exclusiveMinimum":-3,"exclusiveMaximum":0})",
     {"-0.5", "-2.75", "-1", "-2"},
     {"-3", "-3.5", "0", "-0.0", "0.5", "-2.99999999999999999"}},
    {R"({"type":"number","minimum":-1,"maximum":1})", {"0", "1", "-1", "-0.5", "0.5"}, {"-1.5", "1.5", "-0"}},
    // References through lists, and with escapes.
    {R"({"anyOf":[{"type":"null"},{"type":"array","items":{"$ref":"#/anyOf/0"}}]})",
     {"null", "[null]"},
     {"[1]"}},
    {R"({"prefixItems":[{"type":"null"},{"type":"boolean"},{"$ref":"#/prefixItems/1"}]})",
     {"[null,true,false]"},
     {"[null,true,null]"}},
    {R"({"$ref":"#/$defs/a~1b~0c%25%20d","$defs":{"a/b~c% d":{"type":"boolean"}}})", {"true"}, {"null"}},
    // type beside anyOf and allOf.
    {R"({"type":"integer","anyOf":[{"minimum":10},{"maximum":-10}]})", {"10", "-10"}, {"9", "-9", "\"10\""}},
    {R"({"type":["string","null"],"anyOf":[{"type":"null"},{"type":"integer"},{"minLength":2}]})",
     {"null", "\"ab\""},
     {"7", "\"a\""}},
    {R"({"type":"object","properties":{"a":{},"b":{}},"anyOf":[{"required":["a"]},{"required":["b"]}]})",
     {R"({"a":1})", R"({"b":1})", R"({"a":1,"b":2})"},
     {"{}", "1"}},
    {R"({"type":"integer","allOf":[{"minimum":3},{"type":"number","maximum":5}]})",
     {"3", "5"},
     {"2", "6", "4.5"}},
    {R"({"type":"object","properties":{"k":{"type":"string"}},)"
     R"("allOf":[{"properties":{"k":{"maxLength":1}},"required":["k"]}]})",
     {R"({"k":"x"})"},
     {R"({"k":"xy"})", "{}", R"({"k":1})"}},
    {R"({"type":"string","enum":["a","b",1],"anyOf":[{"enum":["b","c"]},{"const":1}]})",
     {"\"b\""},
     {"\"a\"", "1"}},
    {R"({"$ref":"#/$defs/n","maximum":4,"$defs":{"n":{"type":"integer","minimum":2}}})",
     {"2", "4"},
     {"1", "5"}},
    {R"({"oneOf":[false,{"type":"null"}]})", {"null"}, {"1"}},
    {R"({"anyOf":[{"type":"integer"},{"type":"null"}],"oneOf":[{"minimum":3},{"type":"null"}]})",
     {"3", "null"},
     {"2"}},
    // Tuples of draft 7.
    {R"({"items":[{"type":"integer"},{"type":"string"}]})",
     {"[]", "[1]", R"([1,"a"])"},
     {"[\"a\"]", R"([1,"a",2])"}},
    {R"({"type":"array","items":[{"type":"integer"}],"additionalItems":{"type":"null"},"minItems":1})",
     {"[1]", "[1,null]", "[1, null, null]"},
     {"[]", "[1,2]"}},
    {R"({"type":"array","items":[],"additionalItems":{"type":"null"}})", {"[]", "[null]"}, {"[1]"}},
    {R"({"type":"array","items":[{"type":"integer"}],"additionalItems":false})", {"[1]"}, {"[1,1]"}},
    // Items that each come once.
    {R"({"type":"array","items":{"enum":["a","b","c"]},"uniqueItems":true})",
     {"[]", R"(["b"])", R"(["c","a"])", R"(["b", "c", "a"])"},
     {R"(["a","a"])", R"(["a","b","a"])", R"(["a","b","c","a"])", R"(["d"])"}},
    {R"({"items":{"$ref":"#/$defs/e"},"uniqueItems":true,"minItems":2,"maxItems":2,)"
     R"("$defs":{"e":{"enum":[1,1.0,2,true]}}})",
     {"[1,2]", "[true,1]"},
     {"[1]", "[1,1]", "[1,2,true]", "[1,1.0]"}},
    {R"({"type":"array","uniqueItems":true,"maxItems":1})", {"[]", "[7]"}, {"[7,8]"}},
    {R"({"type":"array","uniqueItems":false})", {"[7,7]"}, {"7"}},
    {R"({"enum":[1,2,3,"abc"],"minimum":2,"maxLength":2})", {"2", "3"}, {"1", "\"abc\""}},
    // Words that say nothing, and what belongs to other types.
    {R"({"id":"http://x/y","self":{},"x-order":["a"],"readonly":true,"nullable":true,"type":"boolean"})",
     {"true"},
     {"null"}},
    {R"({"type":"integer","pattern":"^1$","format":"date"})", {"7"}, {"\"1\""}},
    {R"({"type":["integer","null"],"format":"int32"})",
     {"null", "-2147483648", "2147483647"},
     {"2147483648"}},
    {R"({"type":"string","format":"colour"})", {"\"red\""}, {"1"}},
    // Formats, alone and with lengths.
    {R"({"format":"email"})", {R"("a.b@c.org")", R"("a@b")"}, {R"("a")", R"("@b")", R"("a@")", R"("a b@c")"}},
    {R"({"format":"ipv4"})",
     {R"("127.0.0.1")", R"("255.249.1.0")"},
     {R"("256.1.1.1")", R"("1.1.1")", R"("01.1.1.1")"}},
    {R"({"format":"ipv6"})",
     {R"("::")", R"("::1")", R"("fe80::1")", R"("1:2:3:4:5:6:7:8")"},
     {R"("1:2")", R"("1::2::3")"}},
    {R"({"format":"uri"})",
     {R"("https://a.b/c?d=e#f")", R"("urn:x:y")"},
     {R"("a")", R"("/a")", R"("http://a b")"}},
    {R"({"format":"uri-reference"})", {R"("/a/b?c")", R"("https://a")", R"("/")"}, {R"("a b")", R"("//")"}},
    {R"({"format":"hostname","maxLength":4})",
     {R"("a.bc")", R"("a-b")"},
     {R"("a.bcd")", R"("-a")", R"("a.")"}},
    {R"({"format":"duration"})",
     {R"("P1D")", R"("PT5M")", R"("P1Y2M3DT4H")"},
     {R"("P")", R"("1D")", R"("PT")"}},
    {R"({"format":"date","maxLength":10,"pattern":"^2"})", {R"("2024-02-28")"}, {R"("1999-02-28")"}},
    // Patterns that match within a text, and with lengths.
    {R"({"pattern":"b+"})", {R"("b")", R"("abbc")"}, {R"("")", R"("ac")"}},
    {R"({"pattern":"^a|b$"})", {R"("ax")", R"("xb")", R"("a")"}, {R"("x")", R"("xa")", R"("bx")"}},
    {R"x({"pattern":"^(?:a$|b)"})x", {R"("a")", R"("bx")"}, {R"("ax")", R"("xb")"}},
    {R"({"pattern":"^[a-z]+$","minLength":2,"maxLength":3})",
     {R"("ab")", R"("abc")"},
     {R"("a")", R"("abcd")", R"("aB")"}},
    {R"({"pattern":"^(?<year>\\d{4})?$"})", {R"("")", R"("2024")"}, {R"("20")"}},
    {R"({"enum":["a","bb",7],"pattern":"^.$"})", {"\"a\"", "7"}, {"\"bb\""}},
    // Bounds with fractions, and multiples.
    {R"({"type":"number","minimum":0.5,"maximum":2})",
     {"0.5", "0.75", "1", "1.999", "2"},
     {"0.4", "0.49999", "2.1", "0", "-1"}},
    {R"({"type":"number","minimum":-0.75,"exclusiveMaximum":1.25})",
     {"-0.75", "-0.5", "0", "1.2", "1", "0.3"},
     {"-0.76", "-1", "1.25", "1.3", "-0"}},
    {R"({"type":"integer","minimum":0.5,"maximum":3.5})", {"1", "3"}, {"0", "4"}},
    {R"({"type":"integer","minimum":-1e30,"maximum":1e30})", {"0", "-7"}, {"1.5"}},
    {R"({"type":"number","minimum":0,"exclusiveMinimum":true})", {"1", "0.5"}, {"0", "-1"}},
    {R"({"type":"integer","multipleOf":5})", {"0", "5", "-10", "1235"}, {"1", "12", "1.5"}},
    {R"({"type":"number","multipleOf":100,"minimum":0})", {"0", "100", "1200"}, {"-100", "10", "150"}},
    {R"({"type":"integer","multipleOf":7,"minimum":10,"maximum":30})", {"14", "21", "28"}, {"7", "15", "35"}},
    {R"({"type":"number","multipleOf":0.01,"minimum":0,"maximum":5})",
     {"0", "0.25", "4.9", "5"},
     {"0.001", "5.01"}},
    {R"({"type":"string","maxLength":65536})", {"\"\"", "\"a\""}, {"1"}},
    // Names and numbers of properties.
    {R"({"patternProperties":{"^x-":{"type":"integer"},"y$":{"type":"null"}},"additionalProperties":false})",
     {"{}", R"({"x-a":1})", R"({"ay":null,"x-":2})"},
     {R"({"a":1})", R"({"x-a":null})", R"({"x-y":1})"}},
    {R"({"properties":{"xa":{"type":"integer"}},"patternProperties":{"^x":{"minimum":5}},)"
     R"("additionalProperties":{"type":"boolean"}})",
     {R"({"xa":5})", R"({"a":true,"xb":6})"},
     {R"({"xa":4})", R"({"xb":true})", R"({"xb":4})", R"({"a":1})"}},
    {R"({"propertyNames":{"pattern":"^[A-Z]{2}$"},)"
     R"("additionalProperties":{"type":"integer"},"minProperties":1})",
     {R"({"AB":1})", R"({"AB":1,"CD":2})"},
     {"{}", R"({"ab":1})"}},
    {R"({"properties":{"a":{},"b":{},"c":{}},"additionalProperties":false,"minProperties":2})",
     {R"({"a":1,"c":1})", R"({"b":1,"c":1})", R"({"a":1,"b":1,"c":1})"},
     {"{}", R"({"a":1})", R"({"c":1})"}},
    {R"({"properties":{"a":{},"b":{},"c":{}},"additionalProperties":false,"maxProperties":1})",
     {"{}", R"({"a":1})", R"({"c":1})"},
     {R"({"a":1,"b":1})"}},
    {R"({"properties":{"a":{},"b":{},"c":{}},"additionalProperties":false,)"
     R"("dependencies":{"a":["b"],"c":{"required":["a"]}}})",
     {"{}", R"({"b":1})", R"({"a":1,"b":1})", R"({"a":1,"b":1,"c":1})"},
     {R"({"a":1})", R"({"c":1})", R"({"a":1,"c":1})"}},
    {R"({"allOf":[{"properties":{"a":{}}},{"properties":{"b":{}}}],"unevaluatedProperties":false})",
     {R"({"a":1,"b":1})"},
     {R"({"c":1})"}},
    {R"({"allOf":[{"properties":{"a":{},"b":{}}},{"additionalProperties":false,"properties":{"a":{}}}]})",
     {"{}", R"({"a":1})"},
     {R"({"b":1})"}},
    {R"({"allOf":[{"properties":{"a":{}},"additionalProperties":{"type":"null"}},{"properties":{"b":{}}}]})",
     {R"({"a":1,"b":null})"},
     {R"({"b":1})"}},
    // Schemas that have a name.
    {R"({"$ref":"#node","$defs":)"
     R"({"n":{"$anchor":"node","properties":{"next":{"$ref":"#node"}},"type":"object"}}})",
     {"{}", R"({"next":{"next":{}}})"},
     {R"({"next":1})"}},
    {R"({"$id":"http://x/y","$ref":"http://x/y#/$defs/n","$defs":{"n":{"type":"null"}}})", {"null"}, {"1"}},
    {"\xEF\xBB\xBF{\"type\":\"null\"}", {"null"}, {"1"}},
};

struct Refused {
  const char* schema;
  const char* says;  // in the error
};

void check(const Refused& row) {
  std::string gbnf;
  INFO(row.schema);
  CHECK_FALSE(json_schema_grammar(row.schema, {.strict = true}, &gbnf).ok());
  INFO(error_text());
  CHECK(std::string(error_text()).find(row.says) != std::string::npos);
}

}  // namespace

TEST_CASE("json schema: accepts and refuses", "[grammar]") {
  for (const Case& each : kCases) {
    INFO(each.schema);
    const auto grammar = grammar_of(each.schema);
    const auto accepts = [&](std::string_view text) {
      GrammarMatcher matcher(grammar);
      REQUIRE(matcher.reset().ok());
      return matcher.push(text).ok() && matcher.may_end();
    };
    for (const auto text : each.yes) {
      INFO("yes: " << text);
      CHECK((text.empty() ? false : accepts(text)));
    }
    for (const auto text : each.no) {
      INFO("no: " << text);
      CHECK_FALSE((text.empty() ? false : accepts(text)));
    }
  }
}

TEST_CASE("json schema: ranges of integers have their numbers and no others", "[grammar]") {
  const std::pair<int, int> ranges[] = {{0, 0},  {3, 7},     {0, 10},      {7, 123},   {99, 1001},
                                        {-5, 5}, {-120, -7}, {-1000, 999}, {250, 251}, {10, 99}};
  for (const auto& [least, most] : ranges) {
    const auto grammar = grammar_of("{\"type\":\"integer\",\"minimum\":" + std::to_string(least) +
                                    ",\"maximum\":" + std::to_string(most) + "}");
    for (int value = -1300; value <= 1300; ++value) {
      GrammarMatcher matcher(grammar);
      REQUIRE(matcher.reset().ok());
      INFO(value << " of " << least << " to " << most);
      REQUIRE((matcher.push(std::to_string(value)).ok() && matcher.may_end()) ==
              (value >= least && value <= most));
    }
  }
}

TEST_CASE("json schema: bounds of up to 64 bits", "[grammar]") {
  struct Bounds {
    const char* schema;
    std::vector<std::string_view> yes, no;
  };
  const Bounds all[] = {
      {R"("minimum":-9223372036854775808,"maximum":9223372036854775807)",
       {"-9223372036854775808", "9223372036854775807", "0", "-1", "1000000000000000000"},
       {"-9223372036854775809", "9223372036854775808", "10000000000000000000", "-0", "01"}},
      {R"("minimum":1234567890123456789)",
       {"1234567890123456789", "1234567890123456790", "9223372036854775807"},
       {"1234567890123456788", "9223372036854775808", "-1234567890123456789"}},
      {R"("exclusiveMaximum":-1234567890123456789)",
       {"-1234567890123456790", "-9223372036854775808"},
       {"-1234567890123456789", "0", "-9223372036854775809"}},
      {R"("exclusiveMinimum":9223372036854775806)", {"9223372036854775807"}, {"9223372036854775806", "1"}},
      {R"("exclusiveMinimum":999999999999999998,"exclusiveMaximum":1000000000000000002)",
       {"999999999999999999", "1000000000000000000", "1000000000000000001"},
       {"999999999999999998", "1000000000000000002"}},
      {R"("minimum":9223372036854775807,"maximum":9.0e18)", {}, {}},
      {R"("minimum":1e3,"maximum":1002.0)", {"1000", "1002"}, {"999", "1003"}},
  };
  for (const Bounds& each : all)
    for (const char* type : {"integer", "number"}) {
      const std::string schema = "{\"type\":\"" + std::string(type) + "\"," + each.schema + "}";
      INFO(schema);
      std::string gbnf;
      if (each.yes.empty()) {
        CHECK_FALSE(json_schema_grammar(schema, {}, &gbnf).ok());
        continue;
      }
      const auto grammar = grammar_of(schema);
      for (const bool yes : {true, false})
        for (const std::string_view text : yes ? each.yes : each.no) {
          GrammarMatcher matcher(grammar);
          REQUIRE(matcher.reset().ok());
          INFO(text);
          CHECK((matcher.push(text).ok() && matcher.may_end()) == yes);
        }
    }
}

TEST_CASE("json schema: keywords that hold the wrong thing are errors with their place", "[grammar]") {
  const Refused wrong[] = {
      {R"({"type":123})", "\"#/type\" must be the name of a type"},
      {R"({"type":[]})", "\"#/type\""},
      {R"({"type":["string",null]})", "\"#/type\""},
      {R"({"type":"String"})", "\"#/type\""},
      {R"({"properties":[]})", "\"#/properties\" must be an object of schemas"},
      {R"({"properties":{"a":1}})", "\"#/properties\""},
      {R"({"properties":{"a/b~":{"items":{"type":7}}}})", "\"#/properties/a~1b~0/items/type\""},
      {R"({"required":"a"})", "\"#/required\" must be a list of strings"},
      {R"({"required":[1]})", "\"#/required\""},
      {R"({"items":7})", "\"#/items\" must be a schema or a list"},
      {R"({"items":[1]})", "\"#/items\""},
      {R"({"prefixItems":{}})", "\"#/prefixItems\" must be a list of schemas"},
      {R"({"prefixItems":[{},{"minItems":-1}]})", "\"#/prefixItems/1/minItems\" must be a whole number"},
      {R"({"additionalItems":1,"items":[]})", "\"#/additionalItems\""},
      {R"({"additionalProperties":"no"})", "\"#/additionalProperties\" must be a schema"},
      {R"({"enum":"a"})", "\"#/enum\" must be a list of values"},
      {R"({"enum":[]})", "\"#/enum\""},
      {R"({"minimum":"1"})", "\"#/minimum\" must be a number"},
      {R"({"maxLength":1.5})", "\"#/maxLength\""},
      {R"({"uniqueItems":1})", "\"#/uniqueItems\" must be true or false"},
      {R"({"pattern":1})", "\"#/pattern\" must be a string"},
      {R"({"format":[]})", "\"#/format\""},
      {R"({"$ref":{}})", "\"#/$ref\""},
      {R"({"anyOf":{}})", "\"#/anyOf\" must be a list of schemas"},
      {R"({"anyOf":[{"allOf":[{"oneOf":[{"maxItems":"x"}]}]}]})", "\"#/anyOf/0/allOf/0/oneOf/0/maxItems\""},
      {R"({"$defs":{"x":{"type":1}}})", "\"#/$defs/x/type\""},
      {R"({"$ref":"#/other/x","other":{"x":{"type":1}},"title":"t"})", "other"},
      {R"({"$ref":"#/default/x","default":{"x":{"type":1}}})", "\"#/default/x/type\""},
      {R"({"$ref":"#/$defs/a~2","$defs":{}})", "~0 nor ~1"},
      {R"({"$ref":"#/$defs/%zz","$defs":{}})", "no escape"},
      {R"({"$ref":"#/anyOf/01","anyOf":[{},{}]})", "nothing is at"},
      {R"({"$ref":"#/anyOf/2","anyOf":[{},{}]})", "nothing is at"},
  };
  for (const Refused& row : wrong) check(row);
}

// CVE-2025-48943.
TEST_CASE("json schema: patterns that are not supported are named", "[grammar]") {
  const Refused wrong[] = {
      {R"({"pattern":"^(?=a)$"})", "only ( )"},        {R"({"pattern":"^(a$"})", "a ( without"},
      {R"({"pattern":"^a)$"})", "a ) without"},        {R"({"pattern":"^[a$"})", "a [ without"},
      {R"({"pattern":"^a**$"})", "repeat of nothing"}, {R"({"pattern":"^a{3,2}$"})", "{m,n}"},
      {R"({"pattern":"^a{200000}$"})", "too large"},   {R"({"pattern":"^\\bx$"})", "escape"},
      {R"({"pattern":"^(a)\\1$"})", "escape"},         {R"({"pattern":"^[z-a]$"})", "range"},
      {R"({"pattern":"^\\x01$"})", "no text meets"},
  };
  for (const Refused& row : wrong) check(row);
}

TEST_CASE("json schema: schemas that cannot be merged are named", "[grammar]") {
  const Refused wrong[] = {
      {R"({"allOf":[{"items":{"type":"null"}},{"items":{}}]})", "in two schemas"},
      {R"({"allOf":[{"pattern":"^a$"},{"pattern":"^.$"}]})", "in two schemas"},
      {R"({"allOf":[{"anyOf":[{}]},{"anyOf":[{},{}]}]})", "in two schemas"},
      {R"({"allOf":[{"type":"string"},{"type":"object"}]})", "no value meets all keywords at #"},
      {R"({"type":"null","anyOf":[{"type":"string"},{"type":"object"}]})",
       "no value meets any schema at #/anyOf"},
      {R"({"allOf":[{"$ref":"#"},{"$ref":"#"}]})", "too deep"},
  };
  for (const Refused& row : wrong) check(row);
}

TEST_CASE("json schema: what is not supported is named", "[grammar]") {
  const Refused wrong[] = {
      {"{", "JSON schema"},
      {"[]", "expected an object"},
      {R"({"not":{}})", "not"},
      {R"({"type":"array","uniqueItems":true})", "uniqueItems is supported only for items of an enum"},
      {R"({"prefixItems":[{}],"items":{"enum":[1]},"uniqueItems":true})", "uniqueItems is supported only"},
      {R"({"items":{"enum":[1,2,3,4,5,6,7,8,9,10,11]},"uniqueItems":true})",
       "at most 10 values, and there are 11"},
      {R"({"items":{"enum":[1,2]},"uniqueItems":true,"minItems":3})", "minItems is 3"},
      {R"({"items":[{}],"prefixItems":[{}]})", "beside prefixItems"},
      {R"({"type":"integer","minimum":9223372036854775808})", "no number"},
      {R"({"type":"number","multipleOf":0.3})", "multipleOf"},
      {R"({"type":"integer","minimum":1,"maximum":6,"multipleOf":7})", "no multiple of 7"},
      {R"({"type":"string","format":"colour"})", "\"format\" is not supported: \"colour\""},
      {R"({"allOf":[{"required":["b"]},{"properties":{"a":{}},"additionalProperties":false}]})",
       "not allowed"},
      {R"({"if":{},"then":{}})", "\"if\" is not supported"},
      {R"({"$ref":"http://x/y"})", "$ref"},
      {R"({"$ref":"#/$defs/x"})", "nothing is at"},
      {R"({"type":"thing"})", "thing"},
      {R"({"anyOf":[false]})", "no value meets any"},
      {R"({"minLength":1e9})", "minLength"},
      {"false", "false"},
  };
  for (const Refused& row : wrong) check(row);
  std::string deep = "{}";
  for (int i = 0; i < 70; ++i) deep = "{\"items\":" + deep + "}";
  std::string gbnf;
  CHECK_FALSE(json_schema_grammar(deep, {}, &gbnf).ok());
}
