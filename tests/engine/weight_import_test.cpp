// A GPU that shares the host's memory reads weights in the pages of their file. Results are the same as with
// copied weights, whether the driver takes such pages, refuses them from the beginning, or refuses them while
// loading.
#include <catch2/catch_test_macros.hpp>

#include "places.h"
#include "support/forwarding_device.h"
#include "support/tiny_model.h"
#include "support/vulkan_faults.h"

using namespace greta;
using namespace greta::test;

namespace {

struct Loaded {
  Engine engine;
  uint64_t planned_device = 0, planned_mapped = 0, device = 0, mapped = 0;  // bytes, before and after loading
  std::vector<float> logits;
};

void require(Status status) {
  INFO(error_text());
  REQUIRE(status.ok());
}

// The bundled model's logits after a few tokens. `refuse` says from when on the driver takes no pages.
enum class Refuse { Never, AtLoading, Always };
void load(Faults& faults, Refuse refuse, Source source, Loaded* out) {
  const auto refused = [&] { faults.fail("vkGetMemoryHostPointerPropertiesEXT", 0, kOutOfHostMemory); };
  if (refuse == Refuse::Always) refused();
  Device* device = nullptr;
  require(faults.open(&device));
  out->engine.device.reset(device);
  out->engine.kernels = std::make_unique<DeviceKernels>(*device);
  out->engine.model = std::make_unique<Model>();
  Model& model = *out->engine.model;
  require(describe_model(std::move(source), *out->engine.kernels, false, Log{}, &model));
  out->planned_device = model.store.device_bytes();
  out->planned_mapped = model.store.mapped_bytes();
  if (refuse == Refuse::AtLoading) refused();
  require(load_model(&model, {}));
  out->device = model.store.device_bytes();
  out->mapped = model.store.mapped_bytes();
  require(Executor::open(model, {.context = 64}, uint64_t(1) << 32, &out->engine.executor));
  std::unique_ptr<Session> session;
  require(Session::open(std::shared_ptr<Executor>(out->engine.executor.get(), [](Executor*) {}), &session));
  const int32_t tokens[] = {1, 300, 17, 42, 256, 99, 5, 1000, 77};
  const float* logits = nullptr;
  require(session->eval({tokens, 8}, OutputRows::Last, &logits));
  require(session->eval({tokens + 8, 1}, OutputRows::Last, &logits));
  out->logits.assign(logits, logits + model.shape.vocab);
  faults.fail("", 0, 0);
}

Source bundled() {
  Source source;
  require(source.open_file(GRETA_SOURCE_DIR "/models/tales-llama-7m-q4_k_m.gguf", true));
  return source;
}

// Counts imports, each of at most so many bytes.
class CountedImports final : public ForwardingDevice {
 public:
  CountedImports(Device& inner, uint64_t most_bytes, uint32_t* count)
      : ForwardingDevice(inner), count_(count) {
    info_.max_import_bytes = most_bytes;
  }
  Status import_host(const void* pages, uint64_t bytes, Buffer* out) override {
    ++*count_;
    CHECK(bytes <= info_.max_import_bytes);
    return inner_.import_host(pages, bytes, out);
  }

 private:
  uint32_t* count_;
};

}  // namespace

TEST_CASE("weights are imported as many at once as a buffer may hold", "[engine]") {
  if (*test_split()) SKIP("each device imports what it has");
  const TinyModel tiny = make_tiny({});
  const uint64_t ends = 2 * page_bytes();
  uint32_t all = 0, in_parts = 0;
  for (uint32_t* const count : {&all, &in_parts}) {
    const uint64_t most = (count == &all ? tiny.file.size() : tiny.file.size() / 3) + ends;
    EngineOptions options;
    options.wrap = [&](Device& inner) { return std::make_unique<CountedImports>(inner, most, count); };
    Engine engine;
    open_engine(tiny.file, options, &engine);
    if (!engine.device->info().imports_host) SKIP("the device copies weights");
    CHECK(engine.model->store.mapped_bytes() > 0);
  }
  CHECK(all == 1);
  CHECK(in_parts > 2);
}

TEST_CASE("weights are read in the pages of a file, or copied where a driver refuses them",
          "[engine][vulkan]") {
  Faults faults;
  for (const char* lacking : {"", "processor"}) {  // the device as it is, and as an integrated GPU
    INFO("without " << lacking);
    faults.hide(lacking);
    Loaded copied, refused, imported;
    load(faults, Refuse::Always, bundled(), &copied);
    CHECK_FALSE(copied.engine.device->info().imports_host);
    CHECK(copied.planned_mapped == 0);
    CHECK(copied.device == copied.planned_device);

    load(faults, Refuse::Never, bundled(), &imported);
    if (!imported.engine.device->info().imports_host) SKIP("the driver takes no pages of a mapped file");
    CHECK(imported.planned_mapped > 0);
    CHECK(imported.mapped == imported.planned_mapped);
    CHECK(imported.device == imported.planned_device);
    CHECK(imported.device < copied.device);
    CHECK(imported.logits == copied.logits);

    load(faults, Refuse::AtLoading, bundled(), &refused);
    CHECK(refused.planned_mapped == imported.mapped);
    CHECK(refused.mapped == 0);
    CHECK(refused.device == copied.device);
    CHECK(refused.logits == copied.logits);
  }
}

TEST_CASE("a GPU with memory of its own imports nothing", "[engine][vulkan]") {
  Faults faults;
  faults.hide("host's memory");
  const OpenDevice device = faults.opened();
  CHECK_FALSE(device->info().imports_host);
  CHECK_FALSE(device->info().unified_memory);
}

// A file in memory may lie at any address. Tensors that kernels cannot read at theirs are copied.
TEST_CASE("weights in memory that are not aligned are copied", "[engine][vulkan]") {
  Faults faults;
  Loaded file;
  load(faults, Refuse::Never, bundled(), &file);
  if (!file.engine.device->info().imports_host) SKIP("the driver takes no pages of a mapped file");
  Source whole = bundled();
  std::vector<uint8_t> bytes(whole.size(0) + 68);
  uint8_t* const page = bytes.data() + (64 - reinterpret_cast<uint64_t>(bytes.data()) % 64) % 64;
  for (const uint64_t offset : {0u, 4u}) {
    require(whole.read_at(0, 0, page + offset, whole.size(0)));
    Source source;
    require(source.open_memory(page + offset, whole.size(0)));
    Loaded loaded;
    load(faults, Refuse::Never, std::move(source), &loaded);
    CHECK(loaded.mapped == (offset ? 0 : file.mapped));
    CHECK(loaded.logits == file.logits);
  }
}
