#include <catch2/catch_test_macros.hpp>
#include <cstring>
#include <string>
#include <thread>

#include "platform/platform.h"

using namespace greta;

TEST_CASE("a failure keeps its sentence for its thread", "[platform]") {
  clear_error_text();
  CHECK(std::string(error_text()).empty());
  CHECK(fail(Code::File, "%s: expected %d bytes", "a.gguf", 7).code == Code::File);
  CHECK(std::string(error_text()) == "a.gguf: expected 7 bytes");
  std::thread([] { CHECK(std::string(error_text()).empty()); }).join();
  const Status status = within(Status{Code::File}, "layer %d", 3);
  CHECK(status.code == Code::File);
  CHECK(std::string(error_text()) == "layer 3: a.gguf: expected 7 bytes");
  CHECK(within(Status{Code::File}, "layer %d", 3).code == Code::File);  // a place is said once
  CHECK(std::string(error_text()) == "layer 3: a.gguf: expected 7 bytes");
  CHECK(within(Status{}, "not seen").ok());
  CHECK(std::string(error_text()) == "layer 3: a.gguf: expected 7 bytes");
}

TEST_CASE("a sentence that does not fit is cut", "[platform]") {
  const std::string longer(3 * kErrorTextBytes, 'x');
  CHECK(!fail(Code::Argument, "%s", longer.c_str()).ok());
  CHECK(strlen(error_text()) == kErrorTextBytes - 1);
  CHECK(!within(Status{Code::Argument}, "where").ok());
  CHECK(strlen(error_text()) == kErrorTextBytes - 1);
  CHECK(std::string(error_text(), 8) == "where: x");
  CHECK(!within(Status{Code::Argument}, "%s", longer.c_str()).ok());
  CHECK(strlen(error_text()) == kErrorTextBytes - 1);
}

TEST_CASE("checked arithmetic reports overflow", "[platform]") {
  uint64_t out;
  CHECK(checked_add(1, 2, &out));
  CHECK(out == 3);
  CHECK(!checked_add(~uint64_t(0), 1, &out));
  CHECK(checked_multiply(1u << 31, 4, &out));
  CHECK(!checked_multiply(uint64_t(1) << 33, uint64_t(1) << 31, &out));
  CHECK(round_up(0, 64) == 0);
  CHECK(round_up(65, 64) == 128);
  CHECK(divide_up(65, 64) == 2);
}

TEST_CASE("a log without a callback is silent, with one it gets level and text", "[platform]") {
  Log()(LogLevel::Error, "nobody listens");
  std::string seen;
  Log log;
  log.user = &seen;
  log.write = [](void* user, uint32_t level, const char* text) {
    *static_cast<std::string*>(user) = std::to_string(level) + text;
  };
  log(LogLevel::Warning, "%d left", 5);
  CHECK(seen == "25 left");
}
