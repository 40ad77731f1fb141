// greta.h on a Vulkan device that is lost, and what its driver is asked for while a model runs.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstring>

#include "api/handles.h"
#include "support/tiny_model.h"
#include "support/vulkan_devices.h"
#include "support/vulkan_faults.h"

using namespace greta::test;
using Catch::Matchers::ContainsSubstring;

namespace {

const int32_t kTokens[] = {1, 4, 2, 8};

// A runtime on vulkan0, or on a device that is opened elsewhere, with a model (the tiny one, or a file) and a session.
struct Objects {
  TinyModel tiny = make_tiny({});
  std::string log;  // warnings
  greta_runtime* runtime = nullptr;
  greta_model* model = nullptr;
  greta_session* session = nullptr;

  explicit Objects(std::unique_ptr<greta::Device> device = nullptr, const char* path = nullptr) {
    greta_runtime_options options{};
    options.struct_size = sizeof options;
    options.device = device ? "cpu" : "vulkan0";
    options.log_user = &log;
    options.log = [](void* user, greta_log_level level, const char* text) {
      if (level >= GRETA_LOG_WARNING) static_cast<std::string*>(user)->append(text).append("\n");
    };
    REQUIRE(greta_runtime_open(&options, &runtime) == GRETA_OK);
    if (device) runtime->device = std::move(device);
    greta_source source{};
    source.struct_size = sizeof source;
    if (path) source.path = path;
    else source.memory = tiny.file.data(), source.memory_bytes = tiny.file.size();
    greta_model_options of_model{};
    of_model.struct_size = sizeof of_model;
    of_model.source = &source;
    REQUIRE(greta_model_open(runtime, &of_model, &model) == GRETA_OK);
    REQUIRE(greta_session_open(model, nullptr, &session) == GRETA_OK);
  }
  ~Objects() {
    greta_session_close(session);
    greta_model_close(model);
    greta_runtime_close(runtime);
  }
  greta_status eval(const float** out) { return greta_session_eval(session, kTokens, 4, GRETA_ROWS_LAST, out); }
};

}  // namespace

TEST_CASE("api: a lost device says why until it is closed, and is opened again", "[api][vulkan]") {
  Faults faults;
  std::vector<float> want;
  for (const char* function : {"vkQueueSubmit2", "vkWaitSemaphores"}) {
    CAPTURE(function);
    Objects o(std::move(faults.opened().device));
    const float* logits = nullptr;
    REQUIRE(o.eval(&logits) == GRETA_OK);
    want.assign(logits, logits + o.tiny.shape.vocab);
    faults.fail(function, 0, kDeviceLost);
    CHECK(o.eval(&logits) == GRETA_ERROR_DEVICE);
    CHECK_THAT(greta_error_text(), ContainsSubstring(function) && ContainsSubstring("VK_ERROR_DEVICE_LOST"));
    faults.none();  // the driver would answer again: nobody asks it
    const std::string cause = std::string("was lost (") + function + ": VK_ERROR_DEVICE_LOST)";
    CHECK(o.eval(&logits) == GRETA_ERROR_DEVICE);
    CHECK_THAT(greta_error_text(), ContainsSubstring(cause));
    greta_session* other = nullptr;
    CHECK(greta_session_open(o.model, nullptr, &other) == GRETA_ERROR_DEVICE);
    CHECK_THAT(greta_error_text(), ContainsSubstring(cause));
    CHECK(other == nullptr);
  }
  Objects again;
  const float* logits = nullptr;
  REQUIRE(again.eval(&logits) == GRETA_OK);
  CHECK(memcmp(logits, want.data(), want.size() * sizeof(float)) == 0);
  greta_device_info info{};
  info.struct_size = sizeof info;
  REQUIRE(greta_runtime_describe(again.runtime, &info) == GRETA_OK);
  CHECK(!strcmp(info.id, "vulkan0"));
}

TEST_CASE("api: kernels of a step are compiled side by side, each for subgroups of a given width", "[api][vulkan]") {
  MockDevices mock;
  greta::NamedDevice named;
  REQUIRE(mock.open("vulkan0", &named).ok());
  std::unique_ptr<greta::Device> device(named.device);
  Objects o(std::move(device));
  CHECK(mock.seen().without_lanes == 0);  // of those that load the model
  const int together = greta::cpu_count() > 1 ? 2 : 1;
  mock.await(together);
  const float* logits = nullptr;
  REQUIRE(o.eval(&logits) == GRETA_OK);
  const MockDevices::Pipelines seen = mock.seen();
  CHECK(seen.made > 2);
  CHECK(seen.without_lanes == 0);
  CHECK(seen.at_once >= together);
}

TEST_CASE("api: the plain kernels take the place of those that the driver refuses", "[api][vulkan]") {
  MockDevices mock;
  const auto on_mock = [&] {
    greta::NamedDevice named;
    REQUIRE(mock.open("vulkan0", &named).ok());
    return std::make_unique<Objects>(std::unique_ptr<greta::Device>(named.device),
                                     GRETA_SOURCE_DIR "/models/tales-llama-7m-q4_k_m.gguf");
  };
  const auto vocab = [](const Objects& o) {
    greta_model_info info{};
    info.struct_size = sizeof info;
    REQUIRE(greta_model_describe(o.model, &info) == GRETA_OK);
    return info.vocab_size;
  };
  const float* logits = nullptr;
  std::vector<float> want;
  {
    const auto healthy = on_mock();
    REQUIRE(healthy->eval(&logits) == GRETA_OK);
    CHECK(healthy->log.empty());
    want.assign(logits, logits + vocab(*healthy));
  }
  const auto o = on_mock();
  for (const greta::KernelRow& row : greta::kernel_table())
    if (row.rank && !strcmp(row.backend, "vulkan")) mock.refuse(row.code.code);
  REQUIRE(o->eval(&logits) == GRETA_OK);
  CHECK_THAT(o->log, ContainsSubstring("done without: kernel ") && ContainsSubstring("refuses the shader") &&
                         ContainsSubstring("a newer driver may take it"));
  double error = 0, size = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    error += (logits[i] - want[i]) * (logits[i] - want[i]);
    size += want[i] * want[i];
  }
  CHECK(error < 1e-4 * size);
  const std::string said = o->log;
  REQUIRE(greta_session_truncate(o->session, 0) == GRETA_OK);
  REQUIRE(o->eval(&logits) == GRETA_OK);
  CHECK(o->log == said);  // once

  mock.none();
  const auto without = on_mock();
  for (const greta::KernelRow& row : greta::kernel_table())
    if (!strcmp(row.backend, "vulkan")) mock.refuse(row.code.code);
  CHECK(without->eval(&logits) == GRETA_ERROR_UNSUPPORTED);
  CHECK_THAT(greta_error_text(), ContainsSubstring("the driver refuses some, a newer one may take them"));
}
