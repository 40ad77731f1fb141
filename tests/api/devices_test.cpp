// Runtimes with several devices, and placements, through greta.h.
#include <catch2/matchers/catch_matchers_string.hpp>
#include <string>

#include "api/handles.h"
#include "support/api_objects.h"
#include "support/two_devices.h"

using namespace greta;
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

// The bytes of all pieces of a plan without those of the cache, which is kept for them.
int keep_piece_bytes(void* user, const greta_device_plan* plan) {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < plan->layers + 2; ++i) sum += plan->piece_bytes[i];
  for (uint32_t i = 0; i < plan->layers; ++i) sum += plan->expert_bytes[i];
  const bool logs = strstr(plan->pieces, "output") != nullptr;  // the tokens of the context
  const uint64_t log = logs ? plan->context * sizeof(uint32_t) : 0;
  static_cast<std::vector<std::pair<uint64_t, uint64_t>>*>(user)->emplace_back(
      sum, plan->weights_bytes + plan->mapped_bytes + plan->cache_bytes - log);
  return 0;
}

TinyModel model_with_experts() { return Opening::of_file(file_with_experts()); }

// By what a tensor's name contains.
struct Rule {
  const char* part;
  int device;
};
int by_rule(void* user, const char* tensor) {
  const Rule& rule = *static_cast<const Rule*>(user);
  return strstr(tensor, rule.part) ? rule.device : -1;
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

TEST_CASE("api: rules for tensors that make no sense are refused in words", "[api][devices]") {
  Objects o(model_with_experts());
  std::vector<greta_device_plan> plans;
  Rule rule = {"", 0};
  auto placement = sized<greta_placement>();
  placement.device_of = by_rule;
  placement.device_of_user = &rule;
  const auto plan = [&] {
    plans.clear();
    return greta_placement_plan(o.runtime, o.file, nullptr, &placement, keep_plan, &plans);
  };
  for (const int device : {0, -1}) {  // the one that there is, and none
    rule = {"", device};
    REQUIRE(plan() == GRETA_OK);
    REQUIRE(plans.size() == 1);
    CHECK(std::string(plans[0].pieces) == "embedding, layers 0-1, output");
  }
  for (const auto& [device, words] : {std::pair(1, "device_of gave device 1, but the runtime has 1"),
                                      std::pair(-2, "device_of gave device -2, but the runtime has 1")}) {
    rule = {"exps", device};
    CHECK(plan() == GRETA_ERROR_ARGUMENT);
    CHECK_THAT(greta_error_text(), ContainsSubstring(words));
    CHECK(plans.empty());
  }
  rule = {"blk.1.ffn_up_exps", 0};
  CHECK(plan() == GRETA_ERROR_UNSUPPORTED);
  CHECK_THAT(greta_error_text(), ContainsSubstring("blk.1.ffn_up_exps.weight would move"));
  CHECK_THAT(greta_error_text(), ContainsSubstring("the experts of a layer are on one device"));
  rule = {"blk.0.attn_q", 0};
  CHECK(plan() == GRETA_ERROR_UNSUPPORTED);
  CHECK_THAT(greta_error_text(), ContainsSubstring("a layer but for its experts is on one device"));
  // The same when a model is opened.
  auto options = sized<greta_model_options>();
  options.source = &o.source;
  options.placement = &placement;
  CHECK(greta_model_open(o.runtime, &options, &o.model) == GRETA_ERROR_UNSUPPORTED);
  CHECK(o.model == nullptr);
}

TEST_CASE("api: experts on the processor", "[api][devices]") {
  Objects o(model_with_experts());
  auto placement = sized<greta_placement>();
  placement.host_experts = UINT32_MAX;
  std::vector<greta_device_plan> plans;
  const auto plan = [&](greta_runtime* runtime) {
    return greta_placement_plan(runtime, o.file, nullptr, &placement, keep_plan, &plans);
  };
  if (on_cpu()) {  // where they are anyway
    REQUIRE(plan(o.runtime) == GRETA_OK);
    REQUIRE(plans.size() == 1);
    CHECK(std::string(plans[0].pieces) == "embedding, layers 0-1, output");
    return;
  }
  CHECK(plan(o.runtime) == GRETA_ERROR_ARGUMENT);
  CHECK_THAT(greta_error_text(), ContainsSubstring("the processor, which is not among the devices"));
  greta_runtime* both = nullptr;
  REQUIRE(open_with((std::string(test_device()) + ",cpu").c_str(), &both) == GRETA_OK);
  uint64_t tables[2] = {};
  for (const uint32_t from : {UINT32_MAX, 16u}) {
    plans.clear();
    placement.bring_experts_from = from;
    REQUIRE(plan(both) == GRETA_OK);
    REQUIRE(plans.size() == 2);
    CHECK(std::string(plans[0].pieces) == "embedding, layers 0-1, output");
    CHECK(std::string(plans[1].pieces) == "experts of layers 0-1");
    tables[from == 16] = plans[0].tables_bytes;
  }
  CHECK(tables[1] > tables[0]);  // room for what is brought
  plans.clear();
  placement.host_experts = 1;
  REQUIRE(plan(both) == GRETA_OK);
  CHECK(std::string(plans.at(1).pieces) == "experts of layer 0");
  greta_runtime_close(both);
}

TEST_CASE("api: the bytes of pieces are those of the weights and the cache", "[api][devices]") {
  for (const bool experts : {false, true}) {
    Objects o(experts ? model_with_experts() : make_tiny({}));
    auto executor = sized<greta_executor_options>();
    executor.context = 512;
    std::vector<std::pair<uint64_t, uint64_t>> sums;
    REQUIRE(greta_placement_plan(o.runtime, o.file, &executor, nullptr, keep_piece_bytes, &sums) == GRETA_OK);
    REQUIRE(sums.size() == 1);
    CHECK(sums[0].first == sums[0].second);
  }
}

namespace {

// Fails whenever memory is wanted, once it is lost.
class LostDevice final : public ForwardingDevice {
 public:
  LostDevice(Device& inner, const bool& lost) : ForwardingDevice(inner), lost_(lost) {
    info_.imports_host = false;
  }
  Status allocate(uint64_t bytes, Memory memory, Buffer* out) override {
    return lost_ ? fail(Code::Device, "the device was lost") : inner_.allocate(bytes, memory, out);
  }

 private:
  const bool& lost_;
};

// A runtime of two processors, "first" and "cpu", of which the first one can be lost.
struct TwoProcessors {
  bool lost = false;
  std::unique_ptr<Device> inner[2];
  std::vector<std::string> warnings;
  std::unique_ptr<greta_runtime> runtime = std::make_unique<greta_runtime>();

  TwoProcessors() {
    runtime->exact = true;
    runtime->log = {[](void* user, uint32_t level, const char* text) {
                      if (level == uint32_t(LogLevel::Warning))
                        static_cast<TwoProcessors*>(user)->warnings.emplace_back(text);
                    },
                    this};
    for (uint32_t d : {0, 1}) {
      Device* opened = nullptr;
      REQUIRE(open_device("cpu", {}, &opened).ok());
      inner[d].reset(opened);
      RuntimeDevice& device = runtime->devices.emplace_back();
      if (d == 0)
        device.device = std::make_unique<LostDevice>(*inner[d], lost);
      else
        device.device = std::move(inner[d]);
      device.kernels = std::make_unique<DeviceKernels>(*device.device);
      format_text(device.id, sizeof device.id, "%s", d ? "cpu" : "first");
    }
  }
};

}  // namespace

TEST_CASE("api: experts on the processor beside another device", "[api][devices]") {
  TwoProcessors two;
  Objects o(model_with_experts());
  auto placement = sized<greta_placement>();
  std::vector<greta_device_plan> plans;
  const auto plan = [&] {
    plans.clear();
    const greta_status status =
        greta_placement_plan(two.runtime.get(), o.file, nullptr, &placement, keep_plan, &plans);
    INFO(greta_error_text());
    REQUIRE(status == GRETA_OK);
  };
  placement.host_experts = UINT32_MAX;
  plan();
  REQUIRE(plans.size() == 2);
  CHECK(std::string(plans[0].pieces) == "embedding, layers 0-1, output");
  CHECK(std::string(plans[1].pieces) == "experts of layers 0-1");
  const uint64_t tables = plans[0].tables_bytes;
  placement.bring_experts_from = 16;
  plan();
  CHECK(plans.at(0).tables_bytes > tables);  // room for what is brought
  placement.host_experts = 1;
  plan();
  CHECK(std::string(plans.at(1).pieces) == "experts of layer 0");
  // A rule counts before the number.
  Rule rule = {"blk.0.", 0};
  placement.device_of = by_rule;
  placement.device_of_user = &rule;
  plan();
  REQUIRE(plans.size() == 1);
  rule = {"blk.1.", 1};
  plan();
  REQUIRE(plans.size() == 2);
  CHECK(std::string(plans[1].pieces) == "layer 1, experts of layer 0");
}

TEST_CASE("api: a device that is lost while a model is placed by memory is left out", "[api][devices]") {
  Objects o(model_with_experts());
  TwoProcessors two;
  two.lost = true;
  auto placement = sized<greta_placement>();
  auto options = sized<greta_model_options>();
  options.source = &o.source;
  options.placement = &placement;
  greta_model* model = nullptr;
  placement.kind = GRETA_PLACEMENT_OFFLOAD;  // the caller's word counts
  placement.offloaded = UINT32_MAX;
  CHECK(greta_model_open(two.runtime.get(), &options, &model) == GRETA_ERROR_DEVICE);
  CHECK_THAT(greta_error_text(), ContainsSubstring("the device was lost"));
  CHECK(two.warnings.empty());

  placement.kind = GRETA_PLACEMENT_AUTO;
  const greta_status status = greta_model_open(two.runtime.get(), &options, &model);
  INFO(greta_error_text());
  REQUIRE(status == GRETA_OK);
  REQUIRE(two.warnings.size() == 1);
  CHECK_THAT(two.warnings[0],
             ContainsSubstring("device first was lost, and is left out: the device was lost"));
  greta_session* session = nullptr;
  CHECK(greta_session_open(model, nullptr, &session) == GRETA_OK);
  greta_session_close(session);
  greta_model_close(model);
  std::vector<greta_device_plan> plans;
  REQUIRE(greta_placement_plan(two.runtime.get(), o.file, nullptr, &placement, keep_plan, &plans) ==
          GRETA_OK);
  REQUIRE(plans.size() == 1);
  CHECK(std::string(plans[0].id) == "cpu");
  // Where no other one is left, it fails.
  two.runtime->devices[1].left_out = true;
  two.runtime->devices[0].left_out = false;
  CHECK(greta_model_open(two.runtime.get(), &options, &model) == GRETA_ERROR_DEVICE);
  CHECK_THAT(greta_error_text(), ContainsSubstring("the device was lost"));
}
