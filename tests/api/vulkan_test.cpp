// greta.h on a Vulkan device that is lost, and the calls of the driver while a model is loaded and runs.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstring>

#include "api/handles.h"
#include "places.h"
#include "support/tiny_model.h"
#include "support/vulkan_devices.h"
#include "support/vulkan_faults.h"

using namespace greta::test;
using Catch::Matchers::ContainsSubstring;

namespace {

const int32_t kTokens[] = {1, 4, 2, 8};

// A runtime on vulkan0, or on a device that is opened elsewhere, with a session of the tiny model or of a
// file.
struct Objects {
  TinyModel tiny = make_tiny({});
  std::string log;  // warnings
  greta_runtime* runtime = nullptr;
  greta_model* model = nullptr;
  greta_session* session = nullptr;

  explicit Objects(std::unique_ptr<greta::Device> device = nullptr, const char* path = nullptr) {
    open_model(std::move(device), path);
    REQUIRE(open_session() == GRETA_OK);
  }
  struct WithoutSession {};
  Objects(WithoutSession, std::unique_ptr<greta::Device> device, const char* path = nullptr) {
    open_model(std::move(device), path);
  }

  void open_model(std::unique_ptr<greta::Device> device, const char* path) {
    greta_runtime_options options{};
    options.struct_size = sizeof options;
    options.device = device ? "cpu" : "vulkan0";
    options.log_user = &log;
    options.log = [](void* user, greta_log_level level, const char* text) {
      if (level >= GRETA_LOG_WARNING) static_cast<std::string*>(user)->append(text).append("\n");
    };
    REQUIRE(greta_runtime_open(&options, &runtime) == GRETA_OK);
    if (device) {
      runtime->first().kernels = std::make_unique<greta::DeviceKernels>(*device);
      runtime->first().device = std::move(device);
    }
    greta_source source{};
    source.struct_size = sizeof source;
    if (path)
      source.path = path;
    else
      source.memory = tiny.file.data(), source.memory_bytes = tiny.file.size();
    greta_model_options of_model{};
    of_model.struct_size = sizeof of_model;
    of_model.source = &source;
    REQUIRE(greta_model_open(runtime, &of_model, &model) == GRETA_OK);
  }
  greta_status open_session(int (*progress)(void*, uint64_t, uint64_t) = nullptr, void* user = nullptr) {
    greta_executor_options executor{};
    executor.struct_size = sizeof executor;
    executor.step_tokens = 8;  // the kernels of long steps take long to compile
    executor.progress = progress;
    executor.progress_user = user;
    greta_session_options options{};
    options.struct_size = sizeof options;
    options.private_executor = &executor;
    return greta_session_open(model, &options, &session);
  }
  ~Objects() {
    greta_session_close(session);
    greta_model_close(model);
    greta_runtime_close(runtime);
  }
  greta_status eval(const float** out) {
    return greta_session_eval(session, kTokens, 4, GRETA_ROWS_LAST, out);
  }
  std::vector<float> eval() {
    const float* logits = nullptr;
    greta_model_info info{};
    info.struct_size = sizeof info;
    REQUIRE(greta_model_describe(model, &info) == GRETA_OK);
    INFO(greta_error_text());
    REQUIRE(eval(&logits) == GRETA_OK);
    return {logits, logits + info.vocab_size};
  }
};

constexpr char kTales[] = GRETA_SOURCE_DIR "/models/tales-llama-7m-q4_k_m.gguf";

std::unique_ptr<greta::Device> open_first(MockDevices& mock) {
  greta::NamedDevice named;
  REQUIRE(mock.open("vulkan0", &named).ok());
  return std::unique_ptr<greta::Device>(named.device);
}

double relative_error(const std::vector<float>& of, const std::vector<float>& want) {
  double error = 0, size = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    error += (of[i] - want[i]) * (of[i] - want[i]);
    size += want[i] * want[i];
  }
  return error / size;
}

// The callback that is told of compiled kernels lets the waiting driver go on. Once it stops the compiling,
// by its answer or through the session.
struct Stopper {
  MockDevices& mock;
  bool answers;
  greta_session** session = nullptr;
  int heard = 0;
  static int hear(void* user, uint64_t done, uint64_t total) {
    Stopper& stopper = *static_cast<Stopper*>(user);
    stopper.mock.await(0);
    if (stopper.heard++ || done == total) return 0;
    if (stopper.answers) return 1;
    greta_session_cancel(*stopper.session);
    return 0;
  }
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
    faults.none();  // the driver would work again, but is not called any more
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

TEST_CASE("api: kernels of a step are compiled side by side, each for subgroups of a given width",
          "[api][vulkan]") {
  MockDevices mock;
  Objects o(Objects::WithoutSession{}, open_first(mock));
  CHECK(mock.seen().without_lanes == 0);  // for the kernels that load the model
  const int together = greta::cpu_count() > 1 ? 2 : 1;
  mock.await(together);
  REQUIRE(o.open_session() == GRETA_OK);
  const float* logits = nullptr;
  REQUIRE(o.eval(&logits) == GRETA_OK);
  const MockDevices::Pipelines seen = mock.seen();
  CHECK(seen.made > 2);
  CHECK(seen.without_lanes == 0);
  CHECK(seen.at_once >= together);
}

TEST_CASE("api: a step is cancelled while its kernels are compiled, and the session goes on",
          "[api][vulkan]") {
  MockDevices mock;
  const std::vector<float> want = Objects(open_first(mock)).eval();
  for (const bool answers : {true, false}) {
    CAPTURE(answers);
    Objects o(Objects::WithoutSession{}, open_first(mock));
    const greta::DeviceInfo& device = o.runtime->first().device->info();
    if (!device.cpu_type) SKIP("a GPU's kernels are compiled when a session is opened");
    Stopper stopper{mock, answers, &o.session};
    REQUIRE(o.open_session(Stopper::hear, &stopper) == GRETA_OK);
    CHECK(stopper.heard == 0);
    for (const bool generates : {false, true}) {
      stopper.heard = 0;
      mock.await(1000);
      if (generates) {
        greta_generate_result result{};
        result.struct_size = sizeof result;
        CHECK(greta_session_generate(o.session, kTokens, 4, nullptr, &result) == GRETA_OK);
        CHECK(result.reason == GRETA_STOP_CANCELLED);
        CHECK(result.generated_tokens == 0);
      } else {
        const float* logits = nullptr;
        CHECK(o.eval(&logits) == GRETA_ERROR_CANCELLED);
        CHECK_THAT(greta_error_text(), ContainsSubstring("compiling was cancelled after "));
      }
      CHECK(greta_session_position(o.session) == 0);
    }
    CHECK(o.eval() == want);
  }
}

TEST_CASE("api: a GPU's usual kernels are compiled when a session is opened", "[api][vulkan]") {
  MockDevices mock;
  mock.list("discrete");
  Objects o(Objects::WithoutSession{}, open_first(mock));
  Stopper stopper{mock, true};
  mock.await(1000);
  CHECK(o.open_session(Stopper::hear, &stopper) == GRETA_ERROR_CANCELLED);
  CHECK(o.session == nullptr);
  CHECK(stopper.heard == 1);
  REQUIRE(o.open_session(Stopper::hear, &stopper) == GRETA_OK);
  mock.await(0);
  const int32_t token = 1;
  REQUIRE(greta_session_eval(o.session, &token, 1, GRETA_ROWS_NONE, nullptr) == GRETA_OK);
  greta_generate_options options{};
  options.struct_size = sizeof options;
  options.max_tokens = 1;
  REQUIRE(greta_session_generate(o.session, &token, 1, &options, nullptr) == GRETA_OK);
  CHECK(mock.seen().made == 0);
}

TEST_CASE("api: the plain kernels take the place of those that the driver refuses", "[api][vulkan]") {
  MockDevices mock;
  const auto on_mock = [&] {
    return std::make_unique<Objects>(Objects::WithoutSession{}, open_first(mock), kTales);
  };
  std::vector<float> want;
  {
    const auto healthy = on_mock();
    REQUIRE(healthy->open_session() == GRETA_OK);
    want = healthy->eval();
    CHECK(healthy->log.empty());
  }
  const auto o = on_mock();
  for (const greta::KernelRow& row : greta::kernel_table())
    if (row.rank && !strcmp(row.backend, "vulkan")) mock.refuse(row.code.code);
  REQUIRE(o->open_session() == GRETA_OK);
  const std::vector<float> plain = o->eval();
  CHECK_THAT(o->log, ContainsSubstring("not used: kernel ") && ContainsSubstring("refuses the shader") &&
                         ContainsSubstring("a newer driver may take it"));
  CHECK(relative_error(plain, want) < 1e-4);
  const std::string said = o->log;
  REQUIRE(greta_session_truncate(o->session, 0) == GRETA_OK);
  o->eval();
  CHECK(o->log == said);  // once

  mock.none();
  const auto without = on_mock();
  for (const greta::KernelRow& row : greta::kernel_table())
    if (!strcmp(row.backend, "vulkan")) mock.refuse(row.code.code);
  const float* logits = nullptr;
  const greta_status opened = without->open_session();  // a GPU's kernels are compiled here
  CHECK((opened == GRETA_OK ? without->eval(&logits) : opened) == GRETA_ERROR_UNSUPPORTED);
  CHECK_THAT(greta_error_text(), ContainsSubstring("the driver refuses some, a newer one may take them"));
}

TEST_CASE("api: weights that the driver cannot pack stay in the file's order", "[api][vulkan]") {
  MockDevices mock;
  const std::vector<float> want = Objects(open_first(mock), kTales).eval();
  for (const char* refused : {"convert_planes_q4_k_planes", "convert_planes_"}) {
    CAPTURE(refused);
    int kernels = 0;
    for (const greta::KernelRow& row : greta::kernel_table())
      if (!strncmp(row.name, refused, strlen(refused))) mock.refuse(row.code.code), ++kernels;
    REQUIRE(kernels > 0);
    Objects o(open_first(mock), kTales);
    CHECK_THAT(o.log, ContainsSubstring("not used: kernel convert_planes_"));
    const std::string said = o.log;
    CHECK(relative_error(o.eval(), want) < 1e-4);
    CHECK(o.log == said);
    const greta::Layout layout = o.model->model.weights().layers[0].query.layout;
    CHECK(layout == greta::Layout::Gguf);
  }
}
