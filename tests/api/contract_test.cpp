// The contract of greta.h: NULL everywhere, options of other versions, bad input, a caller's allocator that
// fails, and callbacks that stop.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstdlib>
#include <cstring>
#include <map>

#include "greta.h"
#include "support/api_objects.h"
#include "support/gguf_writer.h"

using namespace greta::test;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("api: NULL is an argument error everywhere, or does nothing", "[api]") {
  greta_runtime_close(nullptr);
  greta_file_close(nullptr);
  greta_model_close(nullptr);
  greta_tokenizer_close(nullptr);
  greta_executor_close(nullptr);
  greta_session_close(nullptr);
  greta_session_cancel(nullptr);
  CHECK(greta_device_count(nullptr) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_device_describe(0, nullptr) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_machine_examine(nullptr, nullptr) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_machine_examine_with(nullptr, nullptr, nullptr) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_device_list(nullptr, nullptr, nullptr) == GRETA_ERROR_ARGUMENT);
  CHECK(!greta_device_kind(1000, nullptr));
  CHECK(greta_runtime_open(nullptr, nullptr) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_runtime_describe(nullptr, nullptr) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_runtime_measure_bandwidth(nullptr, nullptr) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_runtime_measure_arithmetic(nullptr, nullptr) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_file_open(nullptr, nullptr) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_file_tensor(nullptr, 0, nullptr) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_file_metadata(nullptr, 0, nullptr, nullptr, nullptr, 0) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_file_tensor_count(nullptr) == 0);
  CHECK(greta_memory_plan_make(nullptr, nullptr, nullptr, nullptr) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_model_open(nullptr, nullptr, nullptr) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_model_describe(nullptr, nullptr) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_model_tokenizer(nullptr) == nullptr);
  CHECK(greta_tokenizer_open(nullptr, nullptr, nullptr, nullptr) == GRETA_ERROR_ARGUMENT);
  size_t size = 0;
  CHECK(greta_tokenizer_encode(nullptr, "a", 1, 0, nullptr, 0, &size) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_tokenizer_decode(nullptr, nullptr, 0, nullptr, 0, &size) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_tokenizer_chat(nullptr, nullptr, 0, 0, nullptr, 0, &size) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_executor_open(nullptr, nullptr, nullptr) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_session_open(nullptr, nullptr, nullptr) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_session_fork(nullptr, nullptr) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_session_truncate(nullptr, 0) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_session_tokens(nullptr) == nullptr);
  CHECK(greta_session_state_bytes(nullptr) == 0);
  CHECK(greta_session_save(nullptr, nullptr, nullptr) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_session_restore(nullptr, nullptr) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_session_eval(nullptr, nullptr, 0, GRETA_ROWS_NONE, nullptr) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_session_embed(nullptr, nullptr, 0, nullptr, nullptr) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_batch_eval(nullptr, 1) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_batch_generate(nullptr, 1) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_session_temperature(nullptr, 1) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_session_generate(nullptr, nullptr, 0, nullptr, nullptr) == GRETA_ERROR_ARGUMENT);
  CHECK(strlen(greta_error_text()) > 0);
}

TEST_CASE("api: options of older and newer callers", "[api]") {
  greta_runtime* runtime = nullptr;
  SECTION("an older caller's shorter struct") {
    struct {
      uint32_t struct_size, threads;
    } options{8, 1};
    REQUIRE(greta_runtime_open(reinterpret_cast<greta_runtime_options*>(&options), &runtime) == GRETA_OK);
  }
  SECTION("a newer caller's longer struct that asks for nothing new") {
    struct {
      greta_runtime_options known;
      uint64_t unknown;
    } options{};
    options.known.struct_size = sizeof options;
    REQUIRE(greta_runtime_open(&options.known, &runtime) == GRETA_OK);
  }
  SECTION("a newer caller who asks for something unknown") {
    struct {
      greta_runtime_options known;
      uint64_t unknown;
    } options{};
    options.known.struct_size = sizeof options;
    options.unknown = 1;
    CHECK(greta_runtime_open(&options.known, &runtime) == GRETA_ERROR_UNSUPPORTED);
  }
  SECTION("a forgotten struct_size") {
    greta_runtime_options options{};
    CHECK(greta_runtime_open(&options, &runtime) == GRETA_ERROR_ARGUMENT);
    CHECK_THAT(greta_error_text(), ContainsSubstring("struct_size"));
  }
  SECTION("a device that is not there is an error, not the CPU") {
    greta_runtime_options options{};
    options.struct_size = sizeof options;
    options.device = "hip7";
    CHECK(greta_runtime_open(&options, &runtime) != GRETA_OK);
    CHECK(runtime == nullptr);
    CHECK_THAT(greta_error_text(), ContainsSubstring("hip"));
  }
  greta_runtime_close(runtime);
}

TEST_CASE("api: a file's header as text, and a memory plan that holds", "[api]") {
  Objects o;
  CHECK(greta_file_version(o.file) == 3);
  CHECK(greta_file_size_bytes(o.file) == o.tiny.file.size());
  bool found = false;
  for (uint64_t i = 0; i < greta_file_metadata_count(o.file); ++i) {
    const char *key = nullptr, *type = nullptr;
    char value[64];
    REQUIRE(greta_file_metadata(o.file, i, &key, &type, value, sizeof value) == GRETA_OK);
    if (!strcmp(key, "llama.block_count")) found = !strcmp(type, "u32") && !strcmp(value, "2");
  }
  CHECK(found);
  greta_tensor_info tensor{};
  tensor.struct_size = sizeof tensor;
  REQUIRE(greta_file_tensor(o.file, 0, &tensor) == GRETA_OK);
  CHECK(!strcmp(tensor.name, "token_embd.weight"));
  CHECK(tensor.shape[0] == 48);
  CHECK(greta_file_tensor(o.file, greta_file_tensor_count(o.file), &tensor) == GRETA_ERROR_ARGUMENT);
  greta_memory_plan plan{};
  plan.struct_size = sizeof plan;
  REQUIRE(greta_memory_plan_make(o.runtime, o.file, nullptr, &plan) == GRETA_OK);
  CHECK(plan.fits == 1);
  CHECK(plan.context == 512);
  CHECK(plan.total_bytes == plan.weights_bytes + plan.cache_bytes + plan.arena_bytes + plan.tables_bytes);
  CHECK(plan.states_bytes == 0);
  CHECK(plan.checkpoints_bytes == 0);
}

TEST_CASE("api: a device's roofs are measured", "[api]") {
  Objects o;
  uint64_t bandwidth = 0, arithmetic = 0;
  CHECK(greta_runtime_measure_arithmetic(o.runtime, nullptr) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_runtime_measure_arithmetic(nullptr, &arithmetic) == GRETA_ERROR_ARGUMENT);
  REQUIRE(greta_runtime_measure_bandwidth(o.runtime, &bandwidth) == GRETA_OK);
  REQUIRE(greta_runtime_measure_arithmetic(o.runtime, &arithmetic) == GRETA_OK);
  CHECK(bandwidth > 0);
  CHECK(arithmetic > 0);
}

TEST_CASE("api: a profile counts each launch of a stage once", "[api]") {
  Objects o;
  REQUIRE(o.load() == GRETA_OK);
  uint32_t launches = 0;
  const auto count = [](void* user, const greta_profile_stage* stage) {
    if (!strcmp(stage->stage, "o")) *static_cast<uint32_t*>(user) += stage->launches;
  };
  const int32_t token = 5;
  REQUIRE(greta_session_profile(o.session, &token, 1, count, &launches) == GRETA_OK);
  CHECK(launches == o.tiny.shape.layers);
}

namespace {

// An allocator that counts blocks. Its n-th allocation fails.
struct CountingAllocator {
  uint64_t calls = 0, fail_at = 0, bytes = 0;
  std::map<void*, uint64_t> live;
  static void* allocate(void* user, uint64_t bytes, uint64_t alignment) {
    auto& self = *static_cast<CountingAllocator*>(user);
    if (++self.calls == self.fail_at) return nullptr;
    void* pointer = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
    self.live[pointer] = bytes;
    self.bytes += bytes;
    return pointer;
  }
  static void release(void* user, void* pointer, uint64_t bytes) {
    auto& self = *static_cast<CountingAllocator*>(user);
    CHECK(self.live[pointer] == bytes);
    self.live.erase(pointer);
    std::free(pointer);
  }
  greta_runtime_options options() {
    greta_runtime_options o{};
    o.allocate = allocate;
    o.release = release;
    o.allocator_user = this;
    return o;
  }
};

}  // namespace

TEST_CASE("api: each allocation may fail, and nothing leaks", "[api]") {
  const TinyShape shape{.vocab = 300};
  CountingAllocator whole;
  {
    Objects o(shape, whole.options());
    REQUIRE(o.load() == GRETA_OK);
  }
  CHECK(whole.live.empty());
  REQUIRE(whole.calls >= 2);
  for (uint64_t n = 1; n <= whole.calls; ++n) {
    CountingAllocator failing;
    failing.fail_at = n;
    {
      Objects o(shape, failing.options());
      INFO("allocation " << n << " of " << whole.calls);
      CHECK(o.load() == GRETA_ERROR_MEMORY);
      CHECK(strlen(greta_error_text()) > 0);
    }
    CHECK(failing.live.empty());
  }
}

TEST_CASE("api: a limit on memory is kept, and said", "[api]") {
  greta_runtime_options options{};
  options.memory_limit_bytes = 100000;
  Objects o(TinyShape{}, options);
  CHECK(o.load() == GRETA_ERROR_MEMORY);
  CHECK_THAT(greta_error_text(), ContainsSubstring("free"));
}

TEST_CASE("api: generation stops where it should", "[api]") {
  Objects o;
  REQUIRE(o.load() == GRETA_OK);
  const int32_t prompt[] = {1, 5, 9};
  greta_generate_options options{};
  options.struct_size = sizeof options;
  greta_generate_result result{};
  result.struct_size = sizeof result;
  SECTION("at max_tokens") {
    options.max_tokens = 7;
    options.ignore_end = 1;
    REQUIRE(greta_session_generate(o.session, prompt, 3, &options, &result) == GRETA_OK);
    CHECK(result.reason == GRETA_STOP_LENGTH);
    CHECK(result.generated_tokens == 7);
    CHECK(result.prompt_tokens == 3);
    CHECK(greta_session_position(o.session) == 9);
  }
  SECTION("when the context is full") {
    options.ignore_end = 1;
    REQUIRE(greta_session_generate(o.session, prompt, 3, &options, &result) == GRETA_OK);
    CHECK(result.reason == GRETA_STOP_CONTEXT);
    CHECK(greta_session_position(o.session) == 512);
    CHECK(greta_session_generate(o.session, prompt, 3, &options, &result) == GRETA_ERROR_FULL);
  }
  SECTION("when the callback says so") {
    options.ignore_end = 1;
    options.on_token = [](void* user, int32_t, const char*, size_t) {
      return ++*static_cast<int*>(user) == 4 ? 1 : 0;
    };
    int calls = 0;
    options.user = &calls;
    REQUIRE(greta_session_generate(o.session, prompt, 3, &options, &result) == GRETA_OK);
    CHECK(result.reason == GRETA_STOP_CANCELLED);
    CHECK(result.generated_tokens == 4);
  }
  SECTION("when cancelled in the prompt") {
    options.on_prompt = [](void* user, uint32_t, uint32_t) {
      return greta_session_cancel(static_cast<greta_session*>(user)), 0;
    };
    options.user = o.session;
    REQUIRE(greta_session_generate(o.session, prompt, 3, &options, &result) == GRETA_OK);
    CHECK(result.reason == GRETA_STOP_CANCELLED);
    CHECK(result.generated_tokens == 0);
    CHECK(greta_session_position(o.session) == 3);
  }
  SECTION("wrong tokens change nothing") {
    const int32_t wrong[] = {1, -1};
    CHECK(greta_session_generate(o.session, wrong, 2, &options, &result) == GRETA_ERROR_ARGUMENT);
    CHECK(greta_session_position(o.session) == 0);
  }
}

TEST_CASE("api: a full context that is shifted does not end a generation", "[api]") {
  Objects o;
  REQUIRE(o.load() == GRETA_OK);
  const int32_t prompt[] = {1, 5, 9};
  greta_generate_options options{};
  options.struct_size = sizeof options;
  options.ignore_end = 1;
  options.shift = 1;
  options.keep_tokens = 2;
  options.max_tokens = 520;
  greta_generate_result result{};
  result.struct_size = sizeof result;
  REQUIRE(greta_session_generate(o.session, prompt, 3, &options, &result) == GRETA_OK);
  CHECK(result.reason == GRETA_STOP_LENGTH);
  CHECK(result.generated_tokens == 520);
  CHECK(result.forgotten_tokens == 255);
  CHECK(greta_session_position(o.session) == 3 + 519 - 255);
  options.shift = 2;
  CHECK(greta_session_generate(o.session, prompt, 3, &options, &result) == GRETA_ERROR_ARGUMENT);
}

TEST_CASE("api: drawing depends on seed and position alone", "[api]") {
  Objects o;
  REQUIRE(o.load() == GRETA_OK);
  const auto draw = [&](uint64_t seed) {
    std::vector<int32_t> tokens;
    REQUIRE(greta_session_truncate(o.session, 0) == GRETA_OK);
    REQUIRE(greta_session_temperature(o.session, 2.0f) == GRETA_OK);
    REQUIRE(greta_session_seed(o.session, seed) == GRETA_OK);
    greta_generate_options options{};
    options.struct_size = sizeof options;
    options.max_tokens = 20;
    options.ignore_end = 1;
    options.on_token = [](void* user, int32_t token, const char*, size_t) {
      if (token >= 0) static_cast<std::vector<int32_t>*>(user)->push_back(token);
      return 0;
    };
    options.user = &tokens;
    const int32_t prompt[] = {1, 5};
    REQUIRE(greta_session_generate(o.session, prompt, 2, &options, nullptr) == GRETA_OK);
    return tokens;
  };
  const auto first = draw(42);
  CHECK(first.size() == 20);
  CHECK(draw(42) == first);
  CHECK(draw(43) != first);
  CHECK(greta_session_top_p(o.session, 1.5f) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_session_temperature(o.session, -1.0f) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_session_penalties(o.session, 0.0f, 0, 0, 64) == GRETA_ERROR_ARGUMENT);
}

TEST_CASE("api: loading reports progress and can be cancelled", "[api]") {
  Objects o;
  uint64_t calls = 0;
  greta_model_options options{};
  options.struct_size = sizeof options;
  options.source = &o.source;
  options.progress_user = &calls;
  options.progress = [](void* user, uint64_t done, uint64_t total) {
    return done > total || ++*static_cast<uint64_t*>(user) == 5 ? 1 : 0;
  };
  CHECK(greta_model_open(o.runtime, &options, &o.model) == GRETA_ERROR_CANCELLED);
  CHECK(o.model == nullptr);
  CHECK(calls == 5);
  CHECK(o.load() == GRETA_OK);
}

TEST_CASE("api: a source of callbacks gives the same model as memory", "[api]") {
  Objects o;
  REQUIRE(o.load() == GRETA_OK);
  Objects p;
  p.source.memory = nullptr;
  p.source.memory_bytes = 0;
  p.source.read_at = [](void* user, uint64_t offset, void* to, uint64_t bytes) {
    memcpy(to, static_cast<const std::string*>(user)->data() + offset, bytes);
    return 0;
  };
  p.source.user = &p.tiny.file;
  p.source.size_bytes = p.tiny.file.size();
  REQUIRE(p.load() == GRETA_OK);
  const int32_t tokens[] = {1, 4, 2, 8};
  const float *a = nullptr, *b = nullptr;
  REQUIRE(greta_session_eval(o.session, tokens, 4, GRETA_ROWS_ALL, &a) == GRETA_OK);
  REQUIRE(greta_session_eval(p.session, tokens, 4, GRETA_ROWS_ALL, &b) == GRETA_OK);
  CHECK(memcmp(a, b, 4 * 67 * sizeof(float)) == 0);
}

TEST_CASE("api: a session is saved to memory or a file, and restored from either or by a callback", "[api]") {
  Objects o, p;
  REQUIRE(o.load() == GRETA_OK);
  REQUIRE(p.load() == GRETA_OK);
  const int32_t tokens[] = {1, 4, 2, 8}, next = 5;
  REQUIRE(greta_session_eval(o.session, tokens, 4, GRETA_ROWS_NONE, nullptr) == GRETA_OK);
  std::string state;
  const auto append = [](void* user, const void* bytes, size_t count) {
    static_cast<std::string*>(user)->append(static_cast<const char*>(bytes), count);
    return 0;
  };
  CHECK(greta_session_save(o.session, nullptr, nullptr) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_session_restore(p.session, nullptr) == GRETA_ERROR_ARGUMENT);
  REQUIRE(greta_session_save(o.session, append, &state) == GRETA_OK);
  CHECK(state.size() == greta_session_state_bytes(o.session));
  const float* logits = nullptr;
  REQUIRE(greta_session_eval(o.session, &next, 1, GRETA_ROWS_LAST, &logits) == GRETA_OK);
  const std::vector<float> want(logits, logits + 67);
  const TemporaryFolder folder;
  const std::string path = folder.write("state", state), missing = folder.path() + "/missing";
  greta_source source{};
  source.struct_size = sizeof source;
  CHECK(greta_session_restore(p.session, &source) == GRETA_ERROR_ARGUMENT);
  source.path = missing.c_str();
  CHECK(greta_session_restore(p.session, &source) == GRETA_ERROR_FILE);
  CHECK_THAT(greta_error_text(), ContainsSubstring("missing"));
  for (const int way : {0, 1, 2}) {
    source = {};
    source.struct_size = sizeof source;
    if (way == 0) source.path = path.c_str();
    if (way == 1) source.memory = state.data(), source.memory_bytes = state.size();
    if (way == 2)
      source.user = &state, source.size_bytes = state.size(),
      source.read_at = [](void* user, uint64_t offset, void* to, uint64_t bytes) {
        memcpy(to, static_cast<const std::string*>(user)->data() + offset, bytes);
        return 0;
      };
    REQUIRE(greta_session_restore(p.session, &source) == GRETA_OK);
    REQUIRE(greta_session_position(p.session) == 4);
    CHECK(memcmp(greta_session_tokens(p.session), tokens, sizeof tokens) == 0);
    REQUIRE(greta_session_eval(p.session, &next, 1, GRETA_ROWS_LAST, &logits) == GRETA_OK);
    CHECK(memcmp(logits, want.data(), 67 * sizeof(float)) == 0);
  }
}

TEST_CASE("api: saving and restoring without memory is a status, and changes nothing", "[api]") {
  CountingAllocator counted;
  {
    Objects o({.layers = 4}, counted.options());
    REQUIRE(o.load() == GRETA_OK);
    std::vector<int32_t> tokens(250, 7);
    REQUIRE(greta_session_eval(o.session, tokens.data(), tokens.size(), GRETA_ROWS_NONE, nullptr) ==
            GRETA_OK);
    REQUIRE(greta_session_state_bytes(o.session) >
            80000);  // so many that the caller's allocator gives the buffer
    std::string state;
    const auto append = [](void* user, const void* bytes, size_t count) {
      static_cast<std::string*>(user)->append(static_cast<const char*>(bytes), count);
      return 0;
    };
    const auto without_memory = [&](auto&& call) {
      counted.fail_at = counted.calls + 1;
      CHECK(call() == GRETA_ERROR_MEMORY);
      CHECK(greta_session_position(o.session) == 250);
      counted.fail_at = 0;
      state.clear();
      CHECK(call() == GRETA_OK);
    };
    without_memory([&] { return greta_session_save(o.session, append, &state); });
    const std::string first = state;
    greta_source source{};
    source.struct_size = sizeof source;
    source.memory = first.data();
    source.memory_bytes = first.size();
    without_memory([&] { return greta_session_restore(o.session, &source); });
    without_memory([&] { return greta_session_save(o.session, append, &state); });
    CHECK(state == first);
  }
  CHECK(counted.live.empty());
}
