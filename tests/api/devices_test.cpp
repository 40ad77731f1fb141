// Runtimes with several devices, and placements, through greta.h.
#include <catch2/matchers/catch_matchers_string.hpp>
#include <string>

#include "support/api_objects.h"

using namespace greta::test;
using Catch::Matchers::ContainsSubstring;

namespace {

greta_status open_with(const char* device, greta_runtime** out) {
  auto options = sized<greta_runtime_options>();
  options.device = device;
  return greta_runtime_open(&options, out);
}

int keep_plan(void* user, const greta_device_plan* plan) {
  static_cast<std::vector<greta_device_plan>*>(user)->push_back(*plan);
  return 0;
}

}  // namespace

TEST_CASE("api: lists of devices that make no sense are refused in words", "[api][devices]") {
  greta_runtime* runtime = nullptr;
  CHECK(open_with("cpu,cpu", &runtime) == GRETA_ERROR_ARGUMENT);
  CHECK_THAT(greta_error_text(), ContainsSubstring("device cpu is named twice"));
  CHECK(open_with("cpu,,cpu", &runtime) == GRETA_ERROR_ARGUMENT);
  CHECK_THAT(greta_error_text(), ContainsSubstring("a name is empty"));
  CHECK(open_with("cpu,neural0", &runtime) == GRETA_ERROR_UNSUPPORTED);
  CHECK_THAT(greta_error_text(), ContainsSubstring("neural0"));
  auto options = sized<greta_runtime_options>();
  const uint64_t limits[] = {1 << 20, 1 << 20};
  options.device = "cpu";
  options.device_limits = limits;
  options.device_limit_count = 2;
  CHECK(greta_runtime_open(&options, &runtime) == GRETA_ERROR_ARGUMENT);
  CHECK_THAT(greta_error_text(), ContainsSubstring("2 limits of memory for 1 devices"));
  options.device_limits = nullptr;
  CHECK(greta_runtime_open(&options, &runtime) == GRETA_ERROR_ARGUMENT);
  CHECK(runtime == nullptr);
}

TEST_CASE("api: a runtime tells its devices, each with its limit", "[api][devices]") {
  auto options = sized<greta_runtime_options>();
  const uint64_t limit = 12345678;
  options.device = "cpu";
  options.device_limits = &limit;
  options.device_limit_count = 1;
  greta_runtime* runtime = nullptr;
  REQUIRE(greta_runtime_open(&options, &runtime) == GRETA_OK);
  CHECK(greta_runtime_device_count(runtime) == 1);
  CHECK(greta_runtime_device_count(nullptr) == 0);
  auto info = sized<greta_device_info>();
  REQUIRE(greta_runtime_device(runtime, 0, &info) == GRETA_OK);
  CHECK(std::string(info.id) == "cpu");
  CHECK(info.memory_free_bytes == limit);
  CHECK(greta_runtime_device(runtime, 1, &info) == GRETA_ERROR_ARGUMENT);
  greta_runtime_close(runtime);
}

TEST_CASE("api: the plan of one device is that of the whole model", "[api][devices]") {
  Objects o;
  auto whole = sized<greta_memory_plan>();
  REQUIRE(greta_memory_plan_make(o.runtime, o.file, nullptr, &whole) == GRETA_OK);
  std::vector<greta_device_plan> plans;
  REQUIRE(greta_placement_plan(o.runtime, o.file, nullptr, nullptr, keep_plan, &plans) == GRETA_OK);
  REQUIRE(plans.size() == 1);
  CHECK(plans[0].total_bytes == whole.total_bytes);
  CHECK(plans[0].weights_bytes == whole.weights_bytes);
  CHECK(plans[0].cache_bytes == whole.cache_bytes);
  CHECK(plans[0].fits == 1);
  CHECK(std::string(plans[0].pieces) == "embedding, layers 0-1, output");
  CHECK(greta_placement_plan(o.runtime, o.file, nullptr, nullptr, nullptr, nullptr) == GRETA_ERROR_ARGUMENT);
}

TEST_CASE("api: placements that make no sense are refused in words", "[api][devices]") {
  Objects o;
  std::vector<greta_device_plan> plans;
  auto placement = sized<greta_placement>();
  const auto refused = [&](const char* words) {
    CHECK(greta_placement_plan(o.runtime, o.file, nullptr, &placement, keep_plan, &plans) ==
          GRETA_ERROR_ARGUMENT);
    CHECK_THAT(greta_error_text(), ContainsSubstring(words));
  };
  const int wrong = 7;
  memcpy(&placement.kind, &wrong, sizeof wrong);
  refused("kind is 7");
  placement.kind = GRETA_PLACEMENT_LIST;
  refused("devices is NULL");
  const uint32_t devices[] = {0, 0, 3, 0};
  placement.devices = devices;
  placement.device_count = 3;
  refused("a placement of 3 pieces, but the model has 4");
  placement.device_count = 4;
  refused("piece 2 is placed on device 3, but the runtime has 1");
  placement = sized<greta_placement>();
  placement.kind = GRETA_PLACEMENT_OFFLOAD;
  placement.offloaded = 1;
  placement.share_count = 2;
  refused("shares is NULL");
  const double shares[] = {0, 0};
  placement.shares = shares;
  refused("2 shares, but");
  CHECK(plans.empty());
  if (!on_cpu()) {
    placement.share_count = 1;
    refused("all shares are 0");
    placement.share_count = 0;
    refused("no processor is among the devices");
  }
}
