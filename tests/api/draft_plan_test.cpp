// Memory plans of a model with the layer that drafts tokens, and what is refused by them, through greta.h.
#include <catch2/matchers/catch_matchers_string.hpp>
#include <string>

#include "support/api_objects.h"
#include "support/model_file.h"

using namespace greta;
using namespace greta::test;
using Catch::Matchers::ContainsSubstring;

namespace {

TinyModel model_of(const std::string& name) {
  TinyModel made;
  made.file = write_model(read_model(name));
  return made;
}

struct Plans {
  Objects o;
  greta_executor_options sizes = sized<greta_executor_options>();

  explicit Plans(const char* name, uint64_t limit = 0) : o(model_of(name), options_with(&limit)) {
    sizes.context = 256;
    sizes.checkpoint_bytes = 1;  // as many states as there must be
  }
  static greta_runtime_options options_with(const uint64_t* limit) {
    greta_runtime_options options = {};
    options.device = "cpu";
    options.device_limits = *limit ? limit : nullptr;
    options.device_limit_count = *limit ? 1 : 0;
    return options;
  }
  greta_memory_plan make(uint32_t head) {
    sizes.draft_head = head;
    auto plan = sized<greta_memory_plan>();
    REQUIRE(greta_memory_plan_make(o.runtime, o.file, &sizes, &plan) == GRETA_OK);
    return plan;
  }
  greta_status open(uint32_t head, uint32_t of_executor) {
    auto load = sized<greta_model_options>();
    load.source = &o.source;
    load.draft_head = head;
    greta_model_close(std::exchange(o.model, nullptr));
    if (const greta_status status = greta_model_open(o.runtime, &load, &o.model)) return status;
    sizes.draft_head = of_executor;
    auto session = sized<greta_session_options>();
    session.private_executor = &sizes;
    const greta_status status = greta_session_open(o.model, &session, &o.session);
    greta_session_close(std::exchange(o.session, nullptr));
    return status;
  }
};

}  // namespace

TEST_CASE("api: memory plans count the layer that drafts tokens where it is asked for", "[api][draft]") {
  Plans plans("../heads/qwen35-head");
  const greta_memory_plan without = plans.make(0), with = plans.make(1);
  CHECK(without.draft_head_bytes == 0);
  CHECK(with.draft_head_bytes > 0);
  const uint64_t weights = with.weights_bytes - without.weights_bytes;
  CHECK(with.weights_bytes + with.mapped_bytes > without.weights_bytes + without.mapped_bytes);
  CHECK(with.draft_head_bytes == weights + with.cache_bytes - without.cache_bytes + with.tables_bytes -
                                     without.tables_bytes);
  CHECK(with.total_bytes ==
        without.total_bytes + with.draft_head_bytes + with.arena_bytes - without.arena_bytes);
  CHECK(plans.open(1, 1) == GRETA_OK);
  CHECK(plans.open(1, 0) == GRETA_OK);
  CHECK(plans.open(0, 0) == GRETA_OK);
  CHECK(plans.open(0, 1) == GRETA_ERROR_ARGUMENT);
  CHECK_THAT(greta_error_text(), ContainsSubstring("opened without it (draft_head)"));

  plans.sizes.draft_head = 2;
  auto plan = sized<greta_memory_plan>();
  CHECK(greta_memory_plan_make(plans.o.runtime, plans.o.file, &plans.sizes, &plan) == GRETA_ERROR_ARGUMENT);
  CHECK_THAT(greta_error_text(), ContainsSubstring("draft_head"));
  Plans other("glm4moe-converted");
  other.sizes.draft_head = 1;
  CHECK(greta_memory_plan_make(other.o.runtime, other.o.file, &other.sizes, &plan) ==
        GRETA_ERROR_UNSUPPORTED);
  CHECK_THAT(greta_error_text(), ContainsSubstring("no layer that drafts tokens"));
}

TEST_CASE("api: a device that has no room for the layer that drafts tokens is refused with both numbers",
          "[api][draft]") {
  uint64_t total = 0;
  {
    Plans whole("../heads/qwen35-head");
    total = whole.make(0).total_bytes;
  }
  Plans plans("../heads/qwen35-head", total);
  CHECK(plans.make(0).fits == 1);
  const greta_memory_plan with = plans.make(1);
  CHECK(with.fits == 0);
  CHECK(with.free_bytes == total);
  CHECK(plans.open(0, 0) == GRETA_OK);
  CHECK(plans.open(1, 0) == GRETA_ERROR_MEMORY);
  const uint64_t beside = with.total_bytes - with.weights_bytes, free = total - with.weights_bytes;
  CHECK_THAT(greta_error_text(), ContainsSubstring(SizeText(beside).text));
  CHECK_THAT(greta_error_text(), ContainsSubstring(SizeText(free).text));
}
