// Templates that want too much stop at a limit. Values and the reader of JSON survive any input.
#include <catch2/catch_test_macros.hpp>

#include "text/jinja/jinja.h"
#include "text/unicode/unicode.h"

using namespace greta;
using namespace greta::jinja;

namespace {

Status render(std::string_view text, std::string* out, const Limits& limits = {}) {
  Template form;
  GRETA_TRY(form.parse(text));
  return form.render(Value::dict(), 0, limits, out);
}

// Low limits, so that a slow build reaches them soon.
Limits low() { return {1'000'000, 1 << 20, 8 << 20, 200}; }

Status refusal(const std::string& text) {
  std::string out;
  clear_error_text();
  const Status status = render(text, &out, low());
  CHECK(out.empty());
  return status;
}

std::string many(const char* text, size_t count) {
  std::string out;
  for (size_t i = 0; i < count; ++i) out += text;
  return out;
}

}  // namespace

// CVE-2025-61620 and CVE-2025-62426.
TEST_CASE("a hostile template stops at a limit", "[engine][jinja]") {
  const std::string forever = "{% for a in range(9999) %}{% for b in range(9999) %}";
  const std::string texts[] = {
      "{{ 'a' * 10 ** 9 }}",
      "{{ [0] * 10 ** 9 }}",
      "{{ ('a' * 1000000) * 10 ** 18 }}",
      forever + "{% endfor %}{% endfor %}",
      forever + "x{% endfor %}{% endfor %}",
      "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
      "{% macro f() %}{{ caller and 1 }}{% call f() %}{% endcall %}{% endmacro %}{{ f() }}",
      "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(50) }}",
      "{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}",
      "{% set n = namespace(s='ab') %}{% for i in range(99) %}{% set n.s = n.s ~ n.s %}{% endfor %}",
      "{% set n = namespace(s=[1]) %}{% for i in range(99) %}{% set n.s = n.s + n.s %}{% endfor %}",
      "{% set n = namespace(s=[]) %}{% for i in range(9999) %}{% set n.s = [n.s] %}{% endfor %}{{ n.s }}",
      "{% set n = namespace(s=[]) %}{% for i in range(9999) %}{% set n.s = [n.s] %}{% endfor %}{{ n.s == "
      "[n.s] }}",
      "{% set n = namespace(s=[]) %}{% for i in range(99) %}{% set n.s = [n.s, n.s] %}{% endfor %}{{ n.s == "
      "n.s }}",
      "{% set n = namespace(s=[]) %}{% for i in range(99) %}{% set n.s = [n.s, n.s] %}{% endfor %}{{ n.s | "
      "tojson }}",
      "{% set n = namespace() %}{% set n.a = [n, n] %}{{ n }}",
      "{{ '%1000000000d' % 1 }}",
      "{{ '%*d' % (10 ** 15, 1) }}",
      "{{ '{:1000000000}'.format(1) }}",
      "{{ 'a' | center(10 ** 15) }}",
      "{{ '\\t'.expandtabs(10 ** 15) }}",
      "{{ ('a\\n' * 10000) | indent(100000) }}",
      "{{ ('a' * 100000).replace('a', 'b' * 100000) }}",
      "{{ ('a' * 100000) | join('b' * 100000) }}",
      "{{ [1] | batch(10 ** 15, 1) | list }}",
      "{{ [1] | slice(10 ** 15) | list }}",
      "{% set a = 'a' * 1000000 %}{% for i in range(9999) %}{% set b = a.find(a ~ 'b') ~ a.count('a') %}{% "
      "endfor %}",
      "{{ " + many("(", 10000) + "1" + many(")", 10000) + " }}",
      "{{ " + many("not ", 10000) + "1 }}",
      "{{ 1" + many(" + 1", 10000) + " }}",
      "{{ 1" + many(" | string", 10000) + " }}",
      "{{ a" + many(".a", 10000) + " }}",
      many("{% if 1 %}", 10000),
      "{% set " + many("(", 10000) + "a" + many(")", 10000) + " = 1 %}",
  };
  for (const std::string& text : texts) {
    INFO(text.substr(0, 100));
    CHECK(refusal(text).code == Code::Full);
  }
  for (const char* text : {"{{ range(10 ** 9) }}", "{{ 2 ** 10 ** 9 }}", "{{ 9223372036854775807 + 1 }}"})
    CHECK(refusal(text).code == Code::Argument);
}

// CVE-2024-34359: there is no object behind a value whose attributes would lead to functions of the system.
TEST_CASE("a template reaches nothing but its context", "[engine][jinja]") {
  for (const char* text :
       {"{{ ''.__class__.__mro__ }}", "{{ [].__class__.__base__.__subclasses__() }}",
        "{{ self.__init__.__globals__ }}", "{{ cycler.__init__.__globals__.os }}",
        "{{ namespace.__globals__ }}", "{% include '/etc/passwd' %}", "{% import 'os' as os %}{{ os }}",
        "{{ ''|attr('__class__') }}", "{{ range.__self__ }}", "{{ open('/etc/passwd') }}"}) {
    INFO(text);
    std::string out;
    const Status status = render(text, &out, low());
    CHECK((!status.ok() || out.empty()));
  }
}

TEST_CASE("each limit is its own", "[engine][jinja]") {
  std::string out;
  Limits limits = low();
  limits.output_bytes = 3;
  CHECK(render("abc", &out, limits).ok());
  CHECK(render("abcd", &out, limits).code == Code::Full);
  CHECK(out == "abc");
  limits = low();
  limits.steps = 100;
  CHECK(render("{% for i in range(5) %}{{ i }}{% endfor %}", &out, limits).ok());
  CHECK(render("{% for i in range(50) %}{{ i }}{% endfor %}", &out, limits).code == Code::Full);
  limits = low();
  limits.depth = 10;
  CHECK(render("{{ ((1)) }}", &out, limits).ok());
  CHECK(render("{{ [[[[[[[[[[1]]]]]]]]]] }}", &out, limits).code == Code::Full);
}

TEST_CASE("memory that was given back can be used again", "[engine][jinja]") {
  std::string out;
  REQUIRE(render("{% for i in range(1000) %}{% set a = 'x' * 100000 %}{% endfor %}ok", &out,
                 {50'000'000, 100, 1 << 20, 200})
              .ok());
  CHECK(out == "ok");
}

TEST_CASE("a deep value is destroyed without recursion", "[engine][jinja]") {
  Value value = Value::list();
  for (int i = 0; i < 1'000'000; ++i) {
    Value outer = i % 2 ? Value::list({value}) : Value::dict();
    outer.set("k", value);
    value = std::move(outer);
  }
  CHECK(value.size() == 1);
}

TEST_CASE("values as they are used from C++", "[engine][jinja]") {
  Value dict = Value::dict();
  for (int i = 0; i < 100; ++i) dict.set("k" + std::to_string(i), i);
  dict.set("k7", "seven");
  CHECK(dict.size() == 100);
  CHECK(dict["k7"].as_string() == "seven");
  CHECK(dict.entries()[7].key.as_string() == "k7");
  CHECK(dict["k99"].as_int() == 99);
  CHECK(dict["k100"].is_undefined());
  CHECK(dict.find("k100") == nullptr);
  CHECK(Value("a\xFF").as_string() == "a\xEF\xBF\xBD");
  CHECK(Value(1).as_double() == 1.0);
  CHECK(Value(true).is_bool());
  CHECK(Value(nullptr).is_none());
  CHECK(to_json(Value::list({Value(1), Value(), Value("\"é")})) == "[1, null, \"\\\"é\"]");
}

TEST_CASE("JSON text to values", "[engine][jinja]") {
  const auto parse = [](std::string_view text) {
    Value value;
    INFO(text);
    REQUIRE(parse_json(text, &value).ok());
    return to_json(value);
  };
  CHECK(parse(" {\"b\": [1, -2.5e3, true, false, null], \"a\": {}, \"b\": 1} ") == "{\"b\": 1, \"a\": {}}");
  CHECK(parse(R"("\u00e9\ud83d\ude42\n\ud800\/")") == "\"é🙂\\n\xEF\xBF\xBD/\"");
  CHECK(parse("18446744073709551615") == "1.8446744073709552e+19");
  CHECK(parse("-9223372036854775808") == "-9223372036854775808");

  struct Bad {
    std::string text;
    const char* says;
  };
  const Bad bad[] = {
      {"", "line 1, column 1"},
      {"{\"a\" 1}", "line 1, column 6: expected ':'"},
      {"[1,\n 2", "line 2, column 3"},
      {"[1,]", "line 1, column 4"},
      {"01", "line 1, column 1"},
      {"1.", "digits"},
      {"\"a", "line 1, column 3"},
      {"\"\\x\"", "escape"},
      {"\"é\" x", "line 1, column 5"},
      {"nul", "value"},
      {"{1: 2}", "key"},
      {"\"\n\"", "line 1, column 2"},
      {"\"\\ud83d\\u00\"", "hex"},
      {"1e999", "beyond"},
      {"[\n\"\xFF\"]", "line 2"},
      {many("[", 100000), "brackets"},
      {many("{\"a\":", 1000), "brackets"},
  };
  for (const Bad& each : bad) {
    Value value = 5;
    INFO(each.text.substr(0, 40));
    CHECK(parse_json(each.text, &value).code == Code::Argument);
    CHECK(std::string(error_text()).find(each.says) != std::string::npos);
    CHECK(value.as_int() == 5);
  }
}
