// The engine is compared with Python's jinja2 on the cases of conformance.json, which make_conformance.py
// makes.
#include <catch2/catch_test_macros.hpp>
#include <fstream>
#include <iterator>
#include <utility>

#include "places.h"
#include "text/jinja/jinja.h"

using namespace greta;
using namespace greta::jinja;

TEST_CASE("templates render as jinja2 renders them", "[engine][jinja]") {
  std::ifstream file(GRETA_SOURCE_DIR "/tests/text/jinja/conformance.json", std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  Value cases;
  REQUIRE(parse_json(text, &cases).ok());
  REQUIRE(cases["cases"].size() > 900);
  size_t refused = 0;
  for (const Value& each : cases["cases"].items()) {
    const std::string_view source = each["template"].as_string();
    Template form;
    std::string out;
    Status status = form.parse(source);
    if (status.ok()) status = form.render(cases["context"], cases["now"].as_int(), {}, &out);
    INFO(source);
    if (const Value* expected = each.find("ok")) {
      INFO((status.ok() ? "" : error_text()));
      CHECK(status.ok());
      CHECK(out == expected->as_string());
    } else {
      CHECK_FALSE(status.ok());
      CHECK(out.empty());
      CHECK(std::string_view(error_text()).starts_with("line "));
      ++refused;
    }
  }
  CHECK(refused > 100);
}

TEST_CASE("methods that the cases do not have", "[engine][jinja]") {
  const std::pair<const char*, const char*> cases[] = {
      {"{{ 'aaa'.rsplit('aa') }} {{ 'a-b-c'.rsplit('-', 1) }}", "['a', ''] ['a-b', 'c']"},
      {"{{ ' a b  c '.rsplit(none, 1) }} {{ ' a b  c '.split(none, 1) }}", "[' a b', 'c'] ['a', 'b  c ']"},
      {"{{ 'aaa'.replace('a', 'b', count=2) }}", "bba"},  // since Python 3.13
      {"{{ (7).is_integer() }}", "True"},                 // since Python 3.12
  };
  for (const auto& [source, expected] : cases) {
    INFO(source);
    Template form;
    std::string out;
    REQUIRE(form.parse(source).ok());
    CHECK(form.render(Value::dict(), 0, {}, &out).ok());
    CHECK(out == expected);
  }
}
