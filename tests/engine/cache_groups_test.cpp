// Groups of the cache, and checkpoints: whatever was forked, truncated, saved, restored or forgotten, a text
// goes on as if it had been read from its beginning.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <cstring>

#include "engine/groups_rig.h"
#include "support/saved_session.h"

using namespace greta;
using namespace greta::test;
using Catch::Generators::from_range;

namespace {

// The layers of a file's shape, and what its cache takes in f16.
struct Shapes {
  Shape shape;
  uint64_t layer_page_bytes;
  Shapes(uint32_t layers, uint32_t period, uint32_t window, uint32_t kv_heads, uint32_t width) {
    shape.layers = layers;
    for (uint32_t l = 0; l < layers; ++l) {
      LayerShape layer;
      layer.window = (l + 1) % period ? window : 0;
      shape.each.push_back(layer);
    }
    layer_page_bytes = uint64_t(kPageTokens) * kv_heads * width * 2 * 2;
  }
  uint64_t bytes(uint32_t context, uint32_t sequences = 1, uint64_t checkpoint_bytes = 0) const {
    const uint32_t pages = uint32_t(divide_up(context, kPageTokens));
    uint64_t bytes = uint64_t(pages) * kPageTokens * sizeof(uint32_t);  // the token log
    const std::vector<uint64_t> page_bytes(shape.layers, layer_page_bytes);
    const CacheGroups groups =
        plan_cache_groups(shape, {sequences, kMaxStepTokens, pages, page_bytes, checkpoint_bytes});
    for (const CacheGroup& group : groups.all()) {
      CHECK(group.page_bytes == layer_page_bytes * group.layers);
      bytes += group.page_bytes * group.pages;
    }
    return bytes;
  }
};

}  // namespace

TEST_CASE("cache groups: what the cache of known shapes takes", "[engine][groups]") {
  constexpr double kGiB = double(uint64_t(1) << 30);
  const Shapes gemma3_27b(62, 6, 1024, 16, 128), gpt_oss_20b(24, 2, 128, 8, 64);
  CHECK(double(gemma3_27b.bytes(32768)) <= 3.4 * kGiB);
  CHECK(double(gpt_oss_20b.bytes(131072)) <= 3.2 * kGiB);
  const Shapes no_windows(62, 1, 1024, 16, 128);
  CHECK(no_windows.bytes(32768) == uint64_t(512) * (62 * no_windows.layer_page_bytes + 256));
  CHECK(gemma3_27b.bytes(1024) == uint64_t(16) * (62 * gemma3_27b.layer_page_bytes + 256));  // one group
  const uint64_t page = 52 * gemma3_27b.layer_page_bytes;
  CHECK(gemma3_27b.bytes(32768, 1, 40 * page) == gemma3_27b.bytes(32768, 1, 17 * page) + 23 * page);
}

TEST_CASE("cache groups: layers with a window have pages of their own where these are fewer",
          "[engine][groups]") {
  const Shapes gpt_oss_20b(24, 2, 128, 8, 64);
  const std::vector<uint64_t> page_bytes(24, gpt_oss_20b.layer_page_bytes);
  const auto groups = [&](uint32_t pages) {
    return plan_cache_groups(gpt_oss_20b.shape, {1, kMaxStepTokens, pages, page_bytes, 1});
  };
  const uint32_t windowed = groups(2048).group[1].pages;
  CHECK(groups(2048).count == 2);
  CHECK(groups(windowed + 1).count == 2);
  CHECK(groups(windowed).count == 1);
}

TEST_CASE("states: the plan counts them, and a saved state of another model is refused", "[engine][groups]") {
  const Windowed& model = kHybridModels[1];
  const std::string file = windowed(model.golden, nullptr, 0), lfm2 = windowed("lfm2-converted", nullptr, 0);
  Sessions sessions(file, 2, 0), others(lfm2, 1, 0);
  const ExecutorPlan& plan = sessions.executor->plan();
  const RecurrentShape& shape = sessions.engine.model->shape.recurrence;
  // Three inputs of a convolution over 2 x 2 x 8 keys and 4 x 12 values, and 4 heads of 8 x 12, in 3 layers.
  CHECK(shape.conv_values() == 3 * 80);
  CHECK(shape.scan_values() == 4 * 8 * 12);
  CHECK(plan.state_bytes == 3 * (256 + 384) * sizeof(float));
  const uint64_t pages =
      plan.groups.group[0].page_bytes * plan.pages + plan.pages * kPageTokens * sizeof(uint32_t);
  // Of 8 rows 80 values go into a convolution, and 4 rates and 4 strengths into a scan, in whole 64 of them.
  const uint64_t inputs = 3 * 8 * (128 + 64 + 64) * sizeof(float);
  CHECK(plan.all().cache == pages + plan.states * plan.state_bytes + inputs);
  CHECK(plan.states >= 2 + 1 + 2);

  const std::unique_ptr<Session> session = sessions.open(), other = others.open();
  Status status;
  logits_of(*session, some_tokens(90, 3), &status);
  std::string bytes, kept;
  REQUIRE(save(*session, &bytes).ok());
  logits_of(*other, some_tokens(20, 3), &status);
  REQUIRE(save(*other, &kept).ok());
  CHECK(restore(*other, bytes).code == Code::Unsupported);
  std::string now;
  REQUIRE(save(*other, &now).ok());
  CHECK(now == kept);
  bytes[8] = 1;  // of version 1, which has no states
  CHECK_FALSE(restore(*session, bytes).ok());
}

TEST_CASE("cache groups: each turn of a conversation reads its new tokens and few others",
          "[engine][groups]") {
  const auto model = GENERATE(from_range(std::vector<Windowed>{
      kWindowedModels[0], kHybridModels[0], kHybridModels[1], kHybridModels[2]}));
  INFO(model.golden);
  const std::string file = windowed(model.golden, model.key, model.window);
  Sessions sessions(file, 1, 0, 0, 12100);
  REQUIRE(sessions.executor->plan().groups.count == (model.key ? 2 : 1));
  const std::unique_ptr<Session> session = sessions.open();
  GenerateOptions options;
  options.max_tokens = 12;  // half of it is reasoning, which the next turn leaves out
  options.ignore_end = true;
  uint32_t end = 0;
  for (uint32_t turn = 0; turn < 40; ++turn) {
    REQUIRE(session->truncate(end).ok());
    GenerateResult result;
    const std::vector<int32_t> more = some_tokens(300, turn);
    REQUIRE(session->generate(more, options, &result).ok());
    CHECK(result.prompt_tokens == more.size());
    CHECK(result.reread_tokens <= kPageTokens);
    end += uint32_t(more.size());
  }
  CHECK(end == 12'000);
}

TEST_CASE("cache groups: a session of the first version is read, and one of the second where pages stay",
          "[engine][groups][state]") {
  for (const Windowed& model : kWindowedModels) DYNAMIC_SECTION(model.golden) {
      const std::string file = windowed(model.golden, model.key, model.window);
      Sessions stay(file, 1, 0, kOneGroup), go(file, 1, 0);
      Reference reference(file);
      const std::vector<int32_t> text = some_tokens(700, 3), more = some_tokens(20, 4);
      // The texts go on, and go back to where the second version has no pages.
      std::string saved[2];
      for (Sessions* from : {&stay, &go}) {
        const std::unique_ptr<Session> session = from->open();
        Status status;
        logits_of(*session, text, &status);
        std::string& bytes = saved[from == &go];
        REQUIRE(save(*session, &bytes).ok());
        StateHeader header;
        memcpy(&header, bytes.data(), sizeof header);
        CHECK(header.version == (from == &stay ? 1 : 2));
      }
      CHECK(saved[1].size() < saved[0].size());
      for (const std::string& bytes : saved)
        for (Sessions* to : {&stay, &go}) {
          const std::unique_ptr<Session> session = to->open();
          const Status restored = restore(*session, bytes);
          INFO(error_text());
          REQUIRE(restored.ok());
          std::vector<int32_t> whole = text;
          for (const uint32_t position : {700u, 690u, 300u}) {
            REQUIRE(session->truncate(position).ok());
            whole.resize(position);
            whole.insert(whole.end(), more.begin(), more.end());
            Status status;
            const std::vector<float> logits = logits_of(*session, more, &status);
            REQUIRE(status.ok());
            CHECK(logits == reference.after(whole));
          }
        }
    }
}

TEST_CASE("cache groups: answers of requests do not depend on what was cached, lost or set back",
          "[serve][groups]") {
  const Windowed& model = kWindowedModels[GENERATE(0, 1)];
  const bool ahead = GENERATE(false, true);
  const std::string file = windowed(model.golden, model.key, model.window);
  ExecutorOptions sizes{.context = 1024, .sequences = 3, .cache_tokens = 1344, .step_tokens = 64};
  sizes.checkpoint_bytes = kOneGroup;
  Rig reference(sizes, {}, false, file);
  const Executor& whole = *reference.engine.executor;
  REQUIRE(whole.plan().groups.count == 1);
  const Shape& shape = whole.model().shape;
  const uint64_t page = whole.cache_bytes(kPageTokens, Executor::CacheForm::Whole) / shape.layers *
                        uint64_t(std::ranges::count(shape.each, model.window, &LayerShape::window));
  sizes.checkpoint_bytes = 8 * page;  // so that the prefix cache has some room for windows
  SchedulerOptions options;
  options.host_cache_bytes = uint64_t(64) << 20;
  options.chunk_tokens = 64;
  Rig rig(sizes, options, ahead, file);
  REQUIRE(rig.engine.executor->plan().groups.count == 2);

  compare_answers(reference, rig);
  const SchedulerCounts counts = rig.scheduler->counts();
  CHECK(counts.cached_tokens > 0);
  CHECK(counts.brought_back > 0);
  rig.check_clean();
}
