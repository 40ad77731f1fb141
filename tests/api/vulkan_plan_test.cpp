// Plans of greta.h compile nothing on a Vulkan device.
#include <catch2/catch_test_macros.hpp>

#include "api/handles.h"
#include "places.h"
#include "support/vulkan_devices.h"

namespace {

constexpr char kTales[] = GRETA_SOURCE_DIR "/models/tales-llama-7m-q4_k_m.gguf";

template <class Struct>
Struct sized() {
  Struct with{};
  with.struct_size = sizeof with;
  return with;
}

}  // namespace

TEST_CASE("api: plans of memory and of steps compile no kernel", "[api][vulkan]") {
  MockDevices mock;
  mock.list("discrete");
  greta::NamedDevice named;
  REQUIRE(mock.open("vulkan0", &named).ok());
  auto options = sized<greta_runtime_options>();
  options.device = "cpu";
  greta_runtime* runtime = nullptr;
  REQUIRE(greta_runtime_open(&options, &runtime) == GRETA_OK);
  runtime->first().kernels = std::make_unique<greta::DeviceKernels>(*named.device);
  runtime->first().device.reset(named.device);
  auto source = sized<greta_source>();
  source.path = kTales;
  greta_file* file = nullptr;
  REQUIRE(greta_file_open(&source, &file) == GRETA_OK);

  mock.await(0);
  auto plan = sized<greta_memory_plan>();
  CHECK(greta_memory_plan_make(runtime, file, nullptr, &plan) == GRETA_OK);
  CHECK(plan.arena_bytes > 0);
  const auto on_device = [](void*, const greta_device_plan*) { return 0; };
  CHECK(greta_placement_plan(runtime, file, nullptr, nullptr, on_device, nullptr) == GRETA_OK);
  auto steps = sized<greta_plan_options>();
  int launches = 0;
  steps.user = &launches;
  steps.on_launch = [](void* user, const greta_plan_launch*) { return ++*static_cast<int*>(user), 0; };
  CHECK(greta_plan_explain(runtime, file, &steps) == GRETA_OK);
  CHECK(launches > 0);
  CHECK(mock.seen().made == 0);

  auto of_model = sized<greta_model_options>();
  of_model.source = &source;
  greta_model* model = nullptr;
  CHECK(greta_model_open(runtime, &of_model, &model) == GRETA_OK);
  CHECK(mock.seen().made > 0);  // those that pack its weights
  greta_model_close(model);
  greta_file_close(file);
  greta_runtime_close(runtime);
}
