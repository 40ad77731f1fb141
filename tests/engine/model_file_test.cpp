// A model from a file on each device, copied and mapped: where its weights lie, and what happens if the file
// is cut.
#include <unistd.h>

#include <catch2/generators/catch_generators.hpp>

#include "support/devices.h"
#include "support/gguf_writer.h"
#include "support/limited_device.h"
#include "support/tiny_model.h"

using namespace greta;
using namespace greta::test;

TEST_CASE("weights of a file are copied, or mapped where that was asked for and the device can",
          "[engine][file]") {
  FOR_EACH_DEVICE(which);
  if (!which.computes) return;  // it has no kernels
  const OpenDevice opened = which.open();
  LimitedDevice limited(*opened, uint64_t(1) << 30);
  Device* const device = GENERATE(true, false) ? opened.device.get() : &limited;
  const std::string content = make_tiny({.vocab = 300}).file;
  const TemporaryFolder folder;
  std::vector<float> logits[2];
  for (const bool map : {false, true}) {
    const bool maps = map && device->info().imports_host;
    const std::string path = folder.write(map ? "mapped" : "copied", content);
    Source source;
    REQUIRE(source.open_file(path.c_str(), map).ok());
    DeviceKernels kernels(*device);
    Model model;
    REQUIRE(describe_model(std::move(source), kernels, true, Log{}, &model).ok());
    CHECK((model.store.mapped_bytes() > 0) == maps);
    CHECK(model.store.device_bytes() + model.store.mapped_bytes() >= model.store.file_bytes());
    CHECK((model.store.mapping_saves(model.gguf.source(), model.devices) > 0) ==
          (device->info().imports_host && !maps));
    REQUIRE(load_model(&model, {}).ok());
    CHECK((model.store.mapped_bytes() > 0) == maps);
    std::unique_ptr<Executor> executor;
    REQUIRE(Executor::open(model, {.context = 64}, uint64_t(1) << 32, &executor).ok());
    uint32_t sequence = 0;
    REQUIRE(executor->acquire_sequence(&sequence).ok());
    const auto run = [&]() -> Status {
      const Executor::Row row{1, 0, sequence, Executor::Output::Logits};
      GRETA_TRY(executor->step({&row, 1}));
      logits[map].assign(executor->logits(), executor->logits() + 300);
      return {};
    };
    REQUIRE(run().ok());
    REQUIRE(truncate(path.c_str(), 100) == 0);
    CHECK(run().code == (maps ? Code::File : Code::Ok));
  }
  CHECK(logits[0] == logits[1]);
}
