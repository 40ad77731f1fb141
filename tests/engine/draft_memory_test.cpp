// The layer that drafts tokens in memory plans: its weights, its cache and the hidden states that it reads
// are counted to the byte on the device that has the output, wherever the other pieces are.
#include "support/model_file.h"
#include "support/two_devices.h"

using namespace greta;
using namespace greta::test;

namespace {

std::string file_of(const char* head) { return write_model(read_model(std::string("../heads/") + head)); }

Status describe_head(Opening& opening) {
  GRETA_TRY(opening.describe());
  return use_head(&opening.model);
}

uint64_t sum(const std::vector<uint64_t>& bytes) {
  uint64_t all = 0;
  for (const uint64_t each : bytes) all += each;
  return all;
}

}  // namespace

TEST_CASE("draft head: the memory plan is what is allocated on each device", "[engine][devices][draft]") {
  for (const char* name : {"qwen35-head", "glm4moe-head"})
    for (const char* split : {"", "first", "middle", "turns", "output"}) {
      INFO(name << ", split " << split);
      Opening opening(file_of(name));
      uint64_t held[2] = {};
      const uint32_t allowed = ~0u;
      SmallDevice first(*opening.device[0], allowed, held[0]), second(*opening.device[1], allowed, held[1]);
      opening.wrap(0, &first), opening.wrap(1, &second);
      REQUIRE(describe_head(opening).ok());
      Model& m = opening.model;
      REQUIRE(place_on(opening.devices, split_placement(split, m.shape.layers), &m).ok());
      REQUIRE(load_model(&m, {}).ok());
      const uint32_t devices = uint32_t(m.devices.size());
      for (uint32_t d = 0; d < devices; ++d) CHECK(held[d] == m.store.device_bytes(d));
      const uint64_t weights[] = {held[0], held[1]}, free[] = {uint64_t(1) << 30, uint64_t(1) << 30};
      std::unique_ptr<Executor> executor;
      REQUIRE(Executor::open(m, {.context = 256}, Executor::FreeBytes(free, devices), &executor).ok());
      for (uint32_t d = 0; d < devices; ++d) CHECK(held[d] - weights[d] == executor->plan().on[d].total());
      executor.reset();
      opening.close();
    }
}

TEST_CASE("draft head: its bytes are those that a plan without it lacks", "[engine][draft]") {
  for (const char* name :
       {"qwen35-head", "qwen35moe-head", "qwen3next-head", "glm4moe-head", "nemotron_h_moe-head"})
    for (const bool split : {false, true}) {
      INFO(name << (split ? ", split" : ""));
      uint64_t weights[2], cache[2], tables[2], layers[2], of_head = 0;
      for (const bool head : {false, true}) {
        Opening opening(file_of(name));
        REQUIRE((head ? describe_head(opening) : opening.describe()).ok());
        Model& m = opening.model;
        Placement placement = Placement::whole(m.shape.layers);
        if (split) placement.device.back() = 1;
        REQUIRE(m.store.describe(m.gguf, *m.arch, m.shape, m.devices, m.placement, false).ok());
        if (split) REQUIRE(place_on(opening.devices, placement, &m).ok());
        ExecutorOptions options{.context = 256, .checkpoint_bytes = 1};  // as many as there must be
        const uint64_t free[] = {uint64_t(1) << 30, uint64_t(1) << 30};
        ExecutorPlan plan;
        REQUIRE(Executor::plan(m, &options, Executor::FreeBytes(free, m.devices.size()), &plan).ok());
        weights[head] = m.store.device_bytes() + m.store.mapped_bytes();
        cache[head] = plan.all().cache, tables[head] = plan.all().tables;
        layers[head] = sum(plan.layer_bytes);
        CHECK((plan.head_bytes > 0) == head);
        if (!head) continue;
        of_head = plan.head_bytes;
        CHECK(plan.layer_bytes.size() == m.shape.layers + 1);
        CHECK(plan.layer_bytes.back() > 0);
        if (!split) CHECK(m.store.head_bytes() == weights[1] - weights[0]);
        CHECK(cache[1] - cache[0] + tables[1] - tables[0] >= of_head);
        opening.close();
      }
      CHECK(weights[1] > weights[0]);
      CHECK(layers[1] - layers[0] < of_head);  // which also has hidden states
      if (!split) CHECK(cache[1] + tables[1] == cache[0] + tables[0] + of_head);
    }
}

TEST_CASE("draft head: devices are filled with room for it", "[engine][devices][draft]") {
  for (const char* name : {"qwen35-head", "glm4moe-head"}) {
    INFO(name);
    Opening opening(file_of(name));
    REQUIRE(describe_head(opening).ok());
    Model& m = opening.model;
    const ExecutorOptions options{.context = 4096, .cache_tokens = 4 * 4096};  // so that layers are large
    const uint64_t much = uint64_t(1) << 30;
    size_t splits = 0;
    for (uint64_t first = 1 << 20; first < (1 << 25); first += first / 12) {
      const uint64_t given[] = {first, much};
      REQUIRE(place_by_memory(opening.devices, options, given, &m).ok());
      const bool there_too = m.devices[0].number == 0;
      std::vector<uint64_t> free = {there_too ? first : much, much};
      free.resize(m.devices.size());
      for (size_t d = 0; d < free.size(); ++d) {
        REQUIRE(m.store.device_bytes(uint32_t(d)) <= free[d]);
        free[d] -= m.store.device_bytes(uint32_t(d));
      }
      ExecutorOptions planned = options;
      ExecutorPlan plan;
      REQUIRE(Executor::plan(m, &planned, free, &plan).ok());
      for (size_t d = 0; d < free.size(); ++d) CHECK(plan.on[d].total() <= free[d]);
      splits += m.devices.size() > 1;
    }
    CHECK(splits > 2);
  }
}

TEST_CASE("draft head: an executor that has room without it is refused with both numbers",
          "[engine][draft]") {
  const std::string file = file_of("qwen35-head");
  uint64_t without = 0;
  for (const bool head : {false, true}) {
    Opening opening(file);
    REQUIRE((head ? describe_head(opening) : opening.describe()).ok());
    REQUIRE(load_model(&opening.model, {}).ok());
    ExecutorOptions options{.context = 256};
    ExecutorPlan plan;
    REQUIRE(Executor::plan(opening.model, &options, ~uint64_t(0), &plan).ok());
    std::unique_ptr<Executor> executor;
    if (!head) without = plan.total();
    const Status status = Executor::open(opening.model, options, without, &executor);
    CHECK(status.ok() == !head);
    if (head) {
      CHECK(status.code == Code::Memory);
      INFO(error_text());
      CHECK(told(SizeText(plan.total()).text));
      CHECK(told(SizeText(without).text));
    }
    executor.reset();
    opening.close();
  }
}

TEST_CASE("draft head: rules for tensors leave it with the output", "[engine][devices][draft]") {
  Opening opening(file_of("glm4moe-head"));
  REQUIRE(describe_head(opening).ok());
  Placement placement = Placement::whole(opening.model.shape.layers);
  const auto device_of = [](const char* name) { return strstr(name, "exps") ? 1 : -1; };
  REQUIRE(move_tensors(opening.model, device_of, &placement).ok());
  CHECK(placement.output() == 0);
  REQUIRE(place_on(opening.devices, placement, &opening.model).ok());
  CHECK(opening.model.placement.layer(opening.model.shape.layers) == opening.model.placement.output());
}
