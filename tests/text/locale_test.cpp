// Numbers are written and read with a point, whatever locale the program has set.
#include <catch2/catch_test_macros.hpp>
#include <cstdlib>
#include <string>

#include "engine/engine.h"
#include "platform/platform.h"
#include "support/comma_locale.h"
#include "text/jinja/jinja.h"

using namespace greta;

static std::string rendered(const char* source) {
  jinja::Template form;
  std::string out;
  Status status = form.parse(source);
  if (status.ok()) status = form.render(jinja::Value::dict(), 0, {}, &out);
  return status.ok() ? out : error_text();
}

TEST_CASE("a locale with a decimal comma changes no text of the library", "[platform][engine][locale]") {
  const CommaLocale locale;
  if (!locale.is_set()) SKIP("the C library takes no locale of ours");
  REQUIRE(std::strtod("0,5", nullptr) == 0.5);  // the process does have the comma

  CHECK(!fail(Code::Argument, "%s is %g, expected %.2f", "top-p", 1.5, 0.25).ok());
  CHECK(std::string(error_text()) == "top-p is 1.5, expected 0.25");
  CHECK(!within(Status{Code::Argument}, "at %.1f", 2.5).ok());
  CHECK(std::string(error_text()) == "at 2.5: top-p is 1.5, expected 0.25");
  std::string logged;
  Log log;
  log.user = &logged;
  log.write = [](void* user, uint32_t, const char* text) { *static_cast<std::string*>(user) = text; };
  log(LogLevel::Warning, "%.3f ms", 1.125);
  CHECK(logged == "1.125 ms");
  CHECK(std::string(SizeText(uint64_t(3) << 29).text) == "1.50 GiB");

  CHECK(rendered("{{ 3.14159|round(2) }}") == "3.14");
  CHECK(rendered("{{ '%.2f|%g|%e'|format(2.5, 0.5, 1.5) }}") == "2.50|0.5|1.500000e+00");
  CHECK(rendered("{{ '{:.1f} {:,.2f} {:.1%}'.format(0.5, 1234.5, 0.125) }}") == "0.5 1,234.50 12.5%");
  CHECK(rendered("{{ 1500|filesizeformat }} {{ '1.5'|float + 0.25 }} {{ '2.5'|int }}") == "1.5 kB 1.75 2");
  CHECK(rendered("{{ 1.5e3 }} {{ [0.1]|tojson }} {{ 0.1|string }}") == "1500.0 [0.1] 0.1");

  jinja::Value number;
  REQUIRE(jinja::parse_json("[1.5, 1e-3]", &number).ok());
  CHECK(jinja::to_json(number) == "[1.5, 0.001]");

  const float half = 0.5f;
  GgufValue value = {};
  value.type = ValueType::F32;
  value.data = reinterpret_cast<const uint8_t*>(&half);
  value.bytes = sizeof half;
  CHECK(gguf_text(value, 100) == "0.5");
}
