// Saved sessions: they go on to the bit, and what is no saved session of this model changes nothing.
#include <cstring>
#include <fstream>
#include <random>

#include "models/reference_transformer.h"
#include "places.h"
#include "support/saved_session.h"
#include "support/test_device.h"
#include "support/tiny_model.h"
#include "support/vulkan_faults.h"

using namespace greta;
using namespace greta::test;

namespace {

std::unique_ptr<Session> open_session(Engine& engine) {
  std::unique_ptr<Session> session;
  REQUIRE(Session::open(std::shared_ptr<Executor>(engine.executor.get(), [](Executor*) {}), &session).ok());
  return session;
}

std::vector<int32_t> some_tokens(size_t count, uint32_t vocab, uint32_t seed = 1) {
  std::mt19937 random(seed);
  std::vector<int32_t> tokens(count);
  for (int32_t& token : tokens) token = int32_t(random() % vocab);
  return tokens;
}

void feed(Session& session, const std::vector<int32_t>& tokens) {
  INFO(error_text());
  REQUIRE(session.eval(tokens, OutputRows::None, nullptr).ok());
}

std::vector<float> logits_after(Session& session, const std::vector<int32_t>& tokens) {
  const float* logits = nullptr;
  const Status status = session.eval(tokens, OutputRows::Last, &logits);
  INFO(error_text());
  REQUIRE(status.ok());
  return {logits, logits + session.executor().model().shape.vocab};
}

std::string saved(Session& session) {
  std::string bytes;
  const Status status = save(session, &bytes);
  INFO(error_text());
  REQUIRE(status.ok());
  REQUIRE(bytes.size() == session.state_bytes());
  return bytes;
}

void require_restored(Session& session, const std::string& bytes) {
  const Status status = restore(session, bytes);
  INFO(error_text());
  REQUIRE(status.ok());
}

std::string golden_file(const std::string& name) {
  std::ifstream stream(GRETA_SOURCE_DIR "/tests/golden/architectures/" + name + ".gguf", std::ios::binary);
  REQUIRE(stream);
  return {std::istreambuf_iterator<char>(stream), {}};
}

// Wide enough for several pieces of the buffer that a state passes through.
TinyShape wide_shape() {
  TinyShape shape;
  shape.layers = 10, shape.kv_heads = 4, shape.head_width = 128;
  return shape;
}

// What a session holds, to be found the same after something was refused.
struct Kept {
  Session& session;
  std::string bytes = saved(session);
  void check() {
    CHECK(session.position() == session.tokens().size());
    CHECK(saved(session) == bytes);
  }
};

}  // namespace

TEST_CASE("state: a restored session goes on to the bit", "[models][state]") {
  TinyShape narrow;
  narrow.head_width = 32;
  for (const uint32_t type : {0u, 1u, 2u}) {
    const TinyModel tiny = make_tiny(type == 0 ? wide_shape() : narrow);
    const uint32_t vocab = tiny.shape.vocab;
    EngineOptions options;
    options.executor.key_type = type, options.executor.value_type = type == 2 ? 1 : type;
    Engine first, second;
    open_engine(tiny.file, options, &first);
    options.executor.context = 512, options.checked = on_cpu();
    open_engine(tiny.file, options, &second);
    const auto before = open_session(second), to = open_session(second);
    feed(*before, some_tokens(70, vocab, 9));  // so that pages are others than those that were saved
    const std::string others = saved(*before);
    for (const size_t count : {0, 1, 64, 65, 250}) {
      INFO("cache type " << type << ", " << count << " tokens");
      const auto tokens = some_tokens(count, vocab), more = some_tokens(6, vocab, 2);
      const auto from = open_session(first);
      if (count) feed(*from, tokens);
      const std::string bytes = saved(*from);
      if (type == 0 && count == 250) REQUIRE(bytes.size() > 2 * kCachePieceBytes);
      require_restored(*to, bytes);
      CHECK(to->position() == count);
      CHECK(std::equal(to->tokens().begin(), to->tokens().end(), tokens.begin(), tokens.end()));
      CHECK(saved(*to) == bytes);
      CHECK(logits_after(*to, more) == logits_after(*from, more));
      REQUIRE(to->truncate(0).ok());
    }
    CHECK(saved(*before) == others);
  }
}

// Windows, experts, latent attention, sinks, two rope tables, factors for long contexts.
TEST_CASE("state: architectures go on to the bit", "[models][state]") {
  for (const char* name : {"gemma2-head24", "gemma3-pattern3", "gpt-oss-mxfp4", "deepseek2-lite",
                           "llama-window", "qwen3moe-plain", "phi3-longrope-long"}) {
    DYNAMIC_SECTION(name) {
      const std::string file = golden_file(name);
      EngineOptions options;
      options.exact = false;
      options.executor = {.context = 2048};
      Engine first, second;
      open_engine(file, options, &first);
      open_engine(file, options, &second);
      const auto from = open_session(first), to = open_session(second);
      const uint32_t vocab = first.model->shape.vocab;
      feed(*from, some_tokens(75, vocab));
      require_restored(*to, saved(*from));
      const auto more = some_tokens(9, vocab, 2);
      CHECK(logits_after(*to, more) == logits_after(*from, more));
      CHECK(saved(*to) == saved(*from));
    }
  }
}

TEST_CASE("state: positions that turn otherwise are refused", "[models][state]") {
  const std::string file = golden_file("phi3-longrope-long");
  Engine engines[2];
  uint32_t original = 0;
  for (const bool is_long : {false, true}) {
    EngineOptions options;
    if (is_long)
      options.executor.context = original + 1;
    else
      options.executor.context = 8;  // known once the file is open
    open_engine(file, options, &engines[is_long]);
    original = engines[is_long].model->shape.rope[0].scaling.original_context;
  }
  const auto of_short = open_session(engines[0]), of_long = open_session(engines[1]);
  feed(*of_short, {1, 2, 3});
  feed(*of_long, {1, 2, 3});
  CHECK(restore(*of_short, saved(*of_long)).code == Code::Unsupported);
  CHECK(restore(*of_long, saved(*of_short)).code == Code::Unsupported);
  CHECK(std::string(error_text()).find("within") != std::string::npos);
}

TEST_CASE("state: only what is held is saved", "[models][state]") {
  const TinyModel tiny = make_tiny({});
  const uint32_t vocab = tiny.shape.vocab;
  Engine engine, fresh;
  open_engine(tiny.file, {}, &engine);
  open_engine(tiny.file, {}, &fresh);
  const auto tokens = some_tokens(90, vocab), other = some_tokens(60, vocab, 2);
  const auto plain = open_session(fresh), session = open_session(engine);
  feed(*plain, tokens);
  const std::string want = saved(*plain);
  feed(*session, tokens);
  feed(*session, other);
  REQUIRE(session->truncate(90).ok());
  CHECK(saved(*session) == want);
  std::unique_ptr<Session> child;
  REQUIRE(session->fork(&child).ok());
  CHECK(saved(*child) == want);
  feed(*session, other);
  CHECK(saved(*child) == want);
}

TEST_CASE("state: pages that are shared stay the others'", "[models][state]") {
  const TinyModel tiny = make_tiny({});
  const uint32_t vocab = tiny.shape.vocab;
  EngineOptions options;
  options.executor.cache_tokens = 640;
  Engine engine;
  open_engine(tiny.file, options, &engine);
  const auto session = open_session(engine), other = open_session(engine);
  feed(*session, some_tokens(100, vocab, 1));
  feed(*other, some_tokens(120, vocab, 2));
  const std::string bytes = saved(*other), kept = saved(*session);
  std::unique_ptr<Session> child;
  REQUIRE(session->fork(&child).ok());
  require_restored(*child, bytes);
  CHECK(saved(*child) == bytes);
  CHECK(saved(*session) == kept);

  // Together in one step, each with its own past.
  const auto more = some_tokens(5, vocab, 3);
  Session::Item items[] = {
      {session.get(), more, nullptr}, {child.get(), more, nullptr}, {other.get(), more, nullptr}};
  REQUIRE(Session::eval_batch(items).ok());
  const auto row = [&](int i) { return std::vector<float>(items[i].logits, items[i].logits + vocab); };
  CHECK(row(1) == row(2));
  CHECK(row(0) != row(2));

  // A fork of what was restored; and all pages are there again at the end.
  std::unique_ptr<Session> grandchild;
  REQUIRE(child->fork(&grandchild).ok());
  CHECK(logits_after(*grandchild, more) == logits_after(*child, more));
  for (Session* each : {session.get(), child.get(), other.get(), grandchild.get()})
    REQUIRE(each->truncate(0).ok());
  feed(*session, some_tokens(256, vocab));
  feed(*child, some_tokens(256, vocab));
  feed(*other, some_tokens(128, vocab));
}

TEST_CASE("state: draws go on, with penalties for tokens from before", "[models][state]") {
  const TinyModel tiny = make_tiny({});
  Engine engine, second;
  open_engine(tiny.file, {}, &engine);
  open_engine(tiny.file, {}, &second);
  const auto generate = [](Session& session, const std::vector<int32_t>& tokens, uint32_t count) {
    std::vector<int32_t> out;
    GenerateOptions options;
    options.max_tokens = count, options.ignore_end = true, options.user = &out;
    options.on_token = [](void* user, int32_t token, const char*, size_t) {
      if (token >= 0) static_cast<std::vector<int32_t>*>(user)->push_back(token);
      return 0;
    };
    GenerateResult result;
    REQUIRE(session.generate(tokens, options, &result).ok());
    return out;
  };
  for (const bool on_device : {true, false}) {
    SamplerSettings settings;
    settings.temperature = 0.7f, settings.seed = 7, settings.repeat = 8, settings.penalty_last_n = 200;
    if (!on_device) settings.typical_p = 0.9f;
    const auto session = open_session(engine), to = open_session(second);
    REQUIRE(session->set_sampling(settings).ok());
    REQUIRE(to->set_sampling(settings).ok());
    auto drawn = generate(*session, some_tokens(80, tiny.shape.vocab), 20);
    const std::string bytes = saved(*session);
    const auto want = generate(*session, {drawn.back()}, 40);
    require_restored(*to, bytes);
    CHECK(to->position() == 99);
    CHECK(generate(*to, {drawn.back()}, 40) == want);
  }
}

TEST_CASE("state: damage anywhere is seen, and changes nothing", "[models][state]") {
  TinyShape shape;
  shape.layers = 1;
  const TinyModel tiny = make_tiny(shape);
  Engine engine;
  open_engine(tiny.file, {}, &engine);
  const auto session = open_session(engine), other = open_session(engine);
  feed(*session, {5, 6, 7});
  const std::string bytes = saved(*session);
  feed(*other, {9, 8});
  Kept kept{*other};
  for (size_t i = 0; i < bytes.size(); ++i) {
    INFO("byte " << i << " of " << bytes.size());
    std::string damaged = bytes;
    damaged[i] = char(damaged[i] ^ 1 << i % 8);
    const Code code = restore(*other, damaged).code;
    REQUIRE((code == Code::File || (code == Code::Unsupported && i < sizeof(StateHeader))));
    REQUIRE(restore(*other, bytes.substr(0, i)).code == Code::File);
    REQUIRE(other->position() == 2);
  }
  CHECK(restore(*other, bytes + '\0').code == Code::File);
  kept.check();
  require_restored(*other, bytes);
  CHECK(saved(*other) == bytes);
}

TEST_CASE("state: numbers that are wrong under a right checksum", "[models][state]") {
  const TinyModel tiny = make_tiny({});
  Engine engine;
  open_engine(tiny.file, {}, &engine);
  const auto session = open_session(engine);
  feed(*session, {5, 6, 7});
  const std::string bytes = saved(*session);
  REQUIRE(with_sums(bytes) == bytes);
  Kept kept{*session};
  const auto code_with = [&](size_t at, uint32_t value) {
    std::string changed = bytes;
    memcpy(changed.data() + at, &value, sizeof value);
    return restore(*session, with_sums(changed)).code;
  };
  for (const uint32_t token : {tiny.shape.vocab, 0x7fffffffu, 0x80000000u, 0xffffffffu})
    for (const size_t i : {0, 2}) {
      CHECK(code_with(sizeof(StateHeader) + 4 * i, token) == Code::File);
      CHECK(std::string(error_text()).find("expected 0 to " + std::to_string(tiny.shape.vocab - 1)) !=
            std::string::npos);
    }
  for (const uint32_t tokens : {0u, 2u, 4u, 256u})
    CHECK(code_with(offsetof(StateHeader, tokens), tokens) == Code::File);
  for (const uint32_t tokens : {257u, 0x80000000u, 0xffffffffu})
    CHECK(code_with(offsetof(StateHeader, tokens), tokens) == Code::Full);
  for (const uint32_t other : {0u, 2u, 64u, 0xffffffffu}) {
    for (const size_t at :
         {offsetof(StateHeader, version), offsetof(StateHeader, vocab), offsetof(StateHeader, kv_heads),
          offsetof(StateHeader, key_width), offsetof(StateHeader, value_width)})
      if (memcmp(bytes.data() + at, &other, sizeof other) != 0)
        CHECK(code_with(at, other) == Code::Unsupported);
    CHECK(code_with(offsetof(StateHeader, header_bytes), other) == Code::File);
    CHECK(code_with(offsetof(StateHeader, total_bytes), other) == Code::File);
  }
  kept.check();

  // Keys and values may be anything, NaN too.
  std::string strange = bytes;
  for (size_t i = sizeof(StateHeader) + 12; i < strange.size() - 8; ++i) strange[i] = char(0xff);
  require_restored(*session, with_sums(strange));
  logits_after(*session, {1});
}

TEST_CASE("state: of another model, cache or context it is refused in words", "[models][state]") {
  const auto code_from = [](const TinyShape& shape, const EngineOptions& options, uint32_t tokens, Engine& to,
                            const char* word) {
    const TinyModel tiny = make_tiny(shape);
    Engine from;
    open_engine(tiny.file, options, &from);
    const auto session = open_session(from), target = open_session(to);
    feed(*session, some_tokens(tokens, 60));
    feed(*target, {3, 4});
    Kept kept{*target};
    const Code code = restore(*target, saved(*session)).code;
    const std::string text = error_text();
    INFO(text);
    CHECK(text.find(word) != text.npos);
    kept.check();
    return code;
  };
  const TinyModel tiny = make_tiny({});
  Engine engine;
  open_engine(tiny.file, {}, &engine);
  CHECK(code_from({.seed = 2}, {}, 10, engine, "another model") == Code::Unsupported);
  CHECK(code_from({.layers = 3}, {}, 10, engine, "layers") == Code::Unsupported);
  CHECK(code_from({.vocab = 68}, {}, 10, engine, "vocabulary") == Code::Unsupported);
  EngineOptions half;
  half.executor.value_type = 1;
  CHECK(code_from({}, half, 10, engine, "f16") == Code::Unsupported);
  EngineOptions longer;
  longer.executor.context = 512;
  CHECK(code_from({}, longer, 257, engine, "context") == Code::Full);
}

TEST_CASE("state: what a session holds counts until it is replaced", "[models][state]") {
  const TinyModel tiny = make_tiny({});
  Engine engine;
  open_engine(tiny.file, {}, &engine);  // four pages
  const auto session = open_session(engine);
  feed(*session, some_tokens(129, 60));
  const std::string bytes = saved(*session);
  Kept kept{*session};
  CHECK(restore(*session, bytes).code == Code::Full);
  kept.check();
  REQUIRE(session->truncate(64).ok());
  require_restored(*session, bytes);
  kept.check();
}

TEST_CASE("state: callbacks that fail, and a request to stop", "[models][state]") {
  const TinyModel tiny = make_tiny(wide_shape());
  EngineOptions options;
  options.executor.cache_tokens = 512;
  Engine engine;
  open_engine(tiny.file, options, &engine);
  const auto session = open_session(engine);
  feed(*session, some_tokens(120, 60));
  const std::string bytes = saved(*session);  // in five pieces: header, tokens, twice the cache, checksum
  struct Use {
    Session& session;
    const std::string& bytes;
    int calls = 0, fail_at = 0;
    bool cancel = false;
    int next() {
      if (++calls != fail_at) return 0;
      if (cancel) session.cancel();
      return cancel ? 0 : 1;
    }
  };
  for (const bool cancel : {false, true})
    for (int fail_at = 1; fail_at <= 4; ++fail_at) {
      INFO("call " << fail_at << ", cancel " << cancel);
      Use use{*session, bytes, 0, fail_at, cancel};
      CHECK(
          session->save([](void* user, const void*, size_t) { return static_cast<Use*>(user)->next(); }, &use)
              .code == Code::Cancelled);
      CHECK(saved(*session) == bytes);
      const auto to = open_session(engine);
      feed(*to, {1, 2, 3});
      Use read{*to, bytes, 0, fail_at, cancel};
      Source source;
      REQUIRE(source
                  .open_callback(
                      [](void* user, uint64_t offset, void* out, uint64_t count) {
                        Use& self = *static_cast<Use*>(user);
                        memcpy(out, self.bytes.data() + offset, count);
                        return self.next();
                      },
                      &read, bytes.size())
                  .ok());
      const Status status = to->restore(source);
      const std::string text = status.ok() ? "" : error_text(), name = source.name(0);
      const size_t named = text.find(name);
      if (status.code == Code::File)  // once
        CHECK((named != text.npos && text.find(name, named + 1) == text.npos));
      CHECK(status.code == (cancel && fail_at < 4 ? Code::Cancelled : cancel ? Code::Ok : Code::File));
      CHECK(to->position() == (status.ok() ? 120 : 3));
    }
}

namespace {

// A tiny model on a device that is named or given.
struct OnDevice {
  std::unique_ptr<Device> device;
  DeviceKernels kernels;
  Model model;
  std::shared_ptr<Executor> executor;
  std::unique_ptr<Session> session;
  OnDevice(std::unique_ptr<Device> on, const TinyModel& tiny, const ExecutorOptions& options)
      : device(std::move(on)), kernels(*device) {
    Source source;
    REQUIRE(source.open_memory(tiny.file.data(), tiny.file.size()).ok());
    REQUIRE(describe_model(std::move(source), kernels, true, Log{}, &model).ok());
    REQUIRE(load_model(&model, {}).ok());
    std::unique_ptr<Executor> opened;
    REQUIRE(Executor::open(model, options, uint64_t(1) << 32, &opened).ok());
    executor = std::move(opened);
    REQUIRE(Session::open(executor, &session).ok());
  }
};

}  // namespace

TEST_CASE("state: from the CPU to another device, and back", "[models][state]") {
  if (on_cpu()) SKIP("GRETA_TEST_DEVICE is the CPU");
  TinyShape shape;
  shape.head_width = 32;
  const TinyModel tiny = make_tiny(shape);
  for (const uint32_t type : {0u, 1u, 2u}) {
    INFO("cache type " << type);
    const ExecutorOptions options{.context = 256, .key_type = type, .value_type = type};
    OnDevice cpu(std::move(open_named("cpu", 2).device), tiny, options);
    OnDevice other(std::move(open_named(test_device(), 2).device), tiny, options);
    const auto tokens = some_tokens(100, shape.vocab), more = some_tokens(5, shape.vocab, 2);
    feed(*cpu.session, tokens);
    const std::string bytes = saved(*cpu.session);
    require_restored(*other.session, bytes);
    CHECK(saved(*other.session) == bytes);
    const auto want = logits_after(*cpu.session, more), got = logits_after(*other.session, more);
    CHECK(nmse(got.data(), {want.begin(), want.end()}) < 1e-8);
    require_restored(*cpu.session, saved(*other.session));
    const auto on_cpu = logits_after(*cpu.session, more), on_other = logits_after(*other.session, more);
    CHECK(nmse(on_other.data(), {on_cpu.begin(), on_cpu.end()}) < 1e-8);
  }
}

TEST_CASE("state: a device that is lost is a status", "[models][state]") {
  if (on_cpu()) SKIP("GRETA_TEST_DEVICE is the CPU");
  Faults faults;
  const TinyModel tiny = make_tiny({});
  OnDevice on(std::move(faults.opened().device), tiny, EngineOptions{}.executor);
  Session* const session = on.session.get();
  feed(*session, {1, 2, 3});
  const std::string bytes = saved(*session);
  faults.fail("vkQueueSubmit2", 0, kDeviceLost);
  CHECK(restore(*session, bytes).code == Code::Device);
  CHECK(session->position() == 3);
  const auto ignore = [](void*, const void*, size_t) { return 0; };
  CHECK(session->save(ignore, nullptr).code == Code::Device);
  faults.none();
}
