#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstring>
#include <string>

#include "support/devices.h"

using namespace greta;
using Catch::Matchers::ContainsSubstring;

static Status try_open(const char* name, std::string* backend = nullptr) {
  Device* device = nullptr;
  const Status status = open_device(name, with_threads(1), &device);
  const std::unique_ptr<Device> owned(device);
  if (backend && device) *backend = device->info().backend;
  return status;
}

TEST_CASE("devices are opened by name", "[runtime]") {
  std::string backend;
  CHECK(try_open("cpu", &backend).ok());
  CHECK(backend == "cpu");
  CHECK(try_open("cpu0").ok());
  CHECK(try_open("auto").ok());
  CHECK(try_open("").ok());
  CHECK(try_open(nullptr).ok());
}

TEST_CASE("a device that is not there is an error with the reason", "[runtime]") {
  CHECK(try_open("cpu1").code == Code::Unsupported);
  CHECK_THAT(error_text(), ContainsSubstring("device cpu1") && ContainsSubstring("one CPU device"));
  for (const char* name : {"gpu", "cpux", "cp", "cpu-1", "cpu 0", "CPU", "cpu00000", "toaster7"}) {
    CHECK(try_open(name).code == Code::Unsupported);
    CHECK_THAT(error_text(),
               ContainsSubstring(name) && ContainsSubstring("auto, ") && ContainsSubstring(", cpu (also"));
  }
}

TEST_CASE("each backend describes what it counts", "[runtime]") {
  REQUIRE(!backends().empty());
  for (const Backend* backend : backends()) {
    for (uint32_t index = 0; index < backend->count({}); ++index) {
      DeviceInfo info;
      REQUIRE(backend->describe(index, {}, &info).ok());
      CHECK(!strcmp(info.backend, backend->name));
      CHECK(strlen(info.name) > 0);
    }
    DeviceInfo info;
    CHECK(backend->describe(1000, {}, &info).code == Code::Unsupported);
  }
}
