// Layers that draft tokens against a reference in float64 (tests/golden/make_heads.py), and texts that are
// written with their guesses.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include "engine/serve_rig.h"
#include "support/model_file.h"
#include "support/saved_session.h"

using namespace greta;
using namespace greta::test;

namespace {

using Tokens = std::vector<int32_t>;
using From = Executor::HeadRow::From;

constexpr const char* kHeads[] = {"qwen35-head", "qwen35moe-head", "qwen3next-head", "glm4moe-head",
                                  "nemotron_h_moe-head"};
constexpr uint32_t kDepth = 7;

ModelFile read_head(const char* name) { return read_model(std::string("../heads/") + name); }

void open_head(const std::string& file, Engine* engine, uint32_t sequences = 2, bool checked = on_cpu()) {
  EngineOptions options;
  options.threads = 1;
  options.checked = checked;
  options.head = true;
  options.split = {};
  options.executor.sequences = sequences;
  open_engine(file, options, engine);
}

void require_ok(Status status) {
  INFO(error_text());
  REQUIRE(status.ok());
}

// Reads tokens from a position on in one step.
void read(Engine& engine, uint32_t sequence, const Tokens& tokens, uint32_t begin, uint32_t end) {
  std::vector<Executor::Row> rows;
  for (uint32_t p = begin; p < end; ++p)
    rows.push_back({uint32_t(tokens[p]), p, sequence, Executor::Output::None});
  require_ok(engine.executor->step(rows));
}

double nmse(const float* got, const float* expected, size_t count) {
  double error = 0, all = 0;
  for (size_t i = 0; i < count; ++i) {
    error += (double(got[i]) - expected[i]) * (double(got[i]) - expected[i]);
    all += double(expected[i]) * expected[i];
  }
  return error / all;
}

}  // namespace

TEST_CASE("heads: logits equal those of the reference at every depth and position", "[models][draft]") {
  const char* name = kHeads[GENERATE(0, 1, 2, 3, 4)];
  INFO(name);
  const ModelFile golden = read_head(name);
  const auto tokens = golden.numbers<int32_t>("golden.tokens");
  const std::string file = write_model(golden);
  const auto expected = golden.numbers<float>("golden.draft_logits");
  Engine engine;
  open_head(file, &engine);
  Executor& executor = *engine.executor;
  const uint32_t vocab = engine.model->shape.vocab, positions = uint32_t(tokens.size()) - kDepth;
  REQUIRE(expected.size() == size_t(positions) * kDepth * vocab);
  uint32_t sequence = 0;
  require_ok(executor.acquire_sequence(&sequence));
  read(engine, sequence, tokens, 0, uint32_t(tokens.size()));
  double worst = 0;
  for (uint32_t p = 0; p < positions; ++p)
    for (uint32_t depth = 0; depth < kDepth; ++depth) {
      const Executor::HeadRow row{uint32_t(tokens[p + 1 + depth]), p + depth,     sequence,
                                  depth ? From::Head : From::Step, depth ? 0 : p, true};
      require_ok(executor.head_step({&row, 1}));
      worst = std::max(worst,
                       nmse(executor.logits(), expected.data() + size_t(p * kDepth + depth) * vocab, vocab));
    }
  INFO("the worst NMSE is " << worst);
  CHECK(worst < 1e-8);
}

TEST_CASE("heads: guesses do not depend on the pieces in which a text was read", "[models][draft]") {
  const char* name = kHeads[GENERATE(0, 1, 2, 3, 4)];
  INFO(name);
  const std::string file = write_model(read_head(name));
  Engine engine;
  open_head(file, &engine);
  Executor& executor = *engine.executor;
  const Tokens tokens = some_tokens(90, 4);
  std::vector<Tokens> made;
  const std::vector<std::vector<uint32_t>> cuts = {{89}, {1}, {7}, {64}, {12, 77}, {3, 20, 5}};
  for (const std::vector<uint32_t>& pieces : cuts) {
    INFO("pieces of " << pieces[0] << " of " << pieces.size());
    uint32_t sequence = 0;
    require_ok(executor.acquire_sequence(&sequence));
    std::vector<std::vector<int32_t>> guesses;
    uint32_t end = 0;
    for (size_t i = 0; end < 89; ++i) {
      const uint32_t begin = end;
      end = std::min(begin + pieces[i % pieces.size()], 89u);
      const uint32_t known = end + (end == 89);
      Executor::HeadPart part{sequence, begin, 0, 0, std::span(tokens).first(known), 0};
      if (end - begin > Executor::kWaitingStates) require_ok(executor.feed_head(~0ull, {&part, 1}, nullptr));
      read(engine, sequence, tokens, begin, end);
      part.count = end - begin;
      part.depth = end == 89 ? kDepth : 0;
      require_ok(executor.feed_head(executor.submitted(), {&part, 1}, &guesses));
      CHECK(guesses[0].size() == (end == 89 ? kDepth : 0));
    }
    made.push_back(guesses[0]);
    executor.release_sequence(sequence);
  }
  for (const Tokens& other : made) CHECK(other == made[0]);
}

namespace {

int32_t best_of(const float* logits, uint32_t count) {
  return int32_t(std::max_element(logits, logits + count) - logits);
}

// What the head guesses behind a text of which the last step has read all but the last token, one by one.
Tokens guessed_by_logits(Executor& executor, uint32_t sequence, uint32_t row, const Tokens& tokens,
                         uint32_t depth) {
  const uint32_t last = uint32_t(tokens.size()) - 2, vocab = executor.model().shape.vocab;
  Tokens guesses;
  for (uint32_t i = 0; i < depth; ++i) {
    const uint32_t token = uint32_t(i ? guesses.back() : tokens.back());
    const Executor::HeadRow next{token, last + i, sequence, i ? From::Head : From::Step, i ? 0 : row, true};
    require_ok(executor.head_step({&next, 1}));
    guesses.push_back(best_of(executor.logits(), vocab));
  }
  return guesses;
}

}  // namespace

TEST_CASE("heads: guesses are drawn on the device, the likeliest ones, in two submissions",
          "[models][draft]") {
  const char* name = kHeads[GENERATE(0, 1, 2, 3, 4)];
  INFO(name);
  const std::string file = write_model(read_head(name));
  Submissions submissions;
  Engine engine;
  EngineOptions options;
  options.threads = 1;
  options.head = true;
  options.split = {};
  options.executor.sequences = 2;
  options.executor.cache_tokens = 512;
  options.wrap = [&](Device& inner) { return std::make_unique<FaultyDevice>(inner, false, submissions); };
  open_engine(file, options, &engine);
  Executor& executor = *engine.executor;
  const uint32_t context = executor.plan().context;
  struct Texts {
    std::vector<uint32_t> lengths, depths, counts;
  };
  // In the last ones the second text has a position for a single guess behind the first one.
  const Texts cases[] = {{{40}, {7}, {7}}, {{40, 22}, {7, 2}, {7, 2}}, {{40, context}, {7, 3}, {2, 2}}};
  for (const Texts& texts : cases) {
    INFO(texts.lengths.size() << " texts, the last one of " << texts.lengths.back());
    std::vector<Tokens> tokens;
    for (const uint32_t length : texts.lengths) tokens.push_back(some_tokens(length, length));
    std::vector<Executor::Row> rows;
    std::vector<Executor::HeadPart> parts;
    for (size_t i = 0; i < tokens.size(); ++i) {
      uint32_t sequence = 0;
      require_ok(executor.acquire_sequence(&sequence));
      DeviceSampling sampling = {};  // of the text, not of its guesses
      sampling.params.temperature = 1.5f;
      executor.set_sampling(sequence, sampling);
      const uint32_t fed = texts.lengths[i] - 1;
      parts.push_back({sequence, 0, fed, uint32_t(rows.size()), tokens[i], texts.depths[i]});
      for (uint32_t p = 0; p < fed; ++p)
        rows.push_back({uint32_t(tokens[i][p]), p, sequence, Executor::Output::None});
    }
    REQUIRE(rows.size() <= executor.plan().step_tokens);
    require_ok(executor.step(rows));
    std::vector<Tokens> guesses;
    const uint64_t submitted = submissions.count;
    require_ok(executor.feed_head(executor.submitted(), parts, &guesses));
    CHECK(submissions.count - submitted == 2);  // the first guesses, and all others
    for (size_t i = 0; i < tokens.size(); ++i)
      CHECK(guesses[i] == guessed_by_logits(executor, parts[i].sequence, parts[i].row + parts[i].count - 1,
                                            tokens[i], texts.counts[i]));
    for (const Executor::HeadPart& part : parts) executor.release_sequence(part.sequence);
  }
}

namespace {

struct Written {
  Tokens tokens;
  std::string state;
  GenerateResult first, result;
};

Written write(Engine& engine, const RequestOptions& request, const DraftSettings& draft) {
  std::unique_ptr<Session> session;
  require_ok(Session::open(std::shared_ptr<Executor>(engine.executor.get(), [](Executor*) {}), &session));
  require_ok(session->set_sampling(request.sampling));
  require_ok(session->set_draft(draft));
  Written out;
  GenerateOptions options;
  options.max_tokens = request.max_tokens;
  options.ignore_end = true;
  options.user = &out.tokens;
  options.on_token = [](void* user, int32_t token, const char*, size_t) {
    if (token != kNoToken) static_cast<Tokens*>(user)->push_back(token);
    return 0;
  };
  require_ok(session->generate(request.tokens, options, &out.first));
  require_ok(session->generate(some_tokens(3, 9), options, &out.result));
  require_ok(save(*session, &out.state));
  return out;
}

}  // namespace

TEST_CASE("heads: sessions write the same text with their guesses", "[models][draft]") {
  const char* name = kHeads[GENERATE(0, 1, 2, 3, 4)];
  const uint32_t kind = GENERATE(0u, 1u, 2u);  // greedy, drawn on the device, chosen on the host
  INFO(name << ", kind " << kind);
  const std::string file = write_model(read_head(name));
  Engine engine;
  open_head(file, &engine);
  RequestOptions request = request_of(some_tokens(21, 3), 60, kind == 1 ? 11 : 0);
  if (kind == 2) request.sampling.typical_p = 0.9f;
  const Written plain = write(engine, request, {});
  for (const uint32_t depth : {1u, 7u}) {
    const Written drafted = write(engine, request, {DraftKind::Head, depth});
    CHECK(drafted.tokens == plain.tokens);
    CHECK(drafted.state == plain.state);
    CHECK(drafted.result.drafted_tokens > 0);
  }
}

TEST_CASE("heads: 1,000 prompts have the same text and state with their guesses", "[.long]") {
  const char* name = kHeads[GENERATE(0, 1, 2, 3, 4)];
  INFO(name);
  const std::string file = write_model(read_head(name));
  Engine engine;
  open_head(file, &engine, 2, false);
  uint32_t differ = 0, drafted = 0;
  for (uint32_t i = 0; i < 200; ++i) {
    const RequestOptions request = request_of(some_tokens(5 + i % 60, i), 30, i % 4 == 3 ? i : 0);
    const Written plain = write(engine, request, {}),
                  guessed = write(engine, request, {DraftKind::Head, 1 + i % 7});
    differ += guessed.tokens != plain.tokens || guessed.state != plain.state;
    drafted += guessed.first.drafted_tokens + guessed.result.drafted_tokens;
  }
  CHECK(differ == 0);
  CHECK(drafted > 200);
}

TEST_CASE("heads: a model on two devices writes the same text with their guesses",
          "[models][draft][devices]") {
  const char* name = kHeads[GENERATE(0, 1, 2, 3, 4)];
  INFO(name);
  const std::string file = write_model(read_head(name));
  const RequestOptions request = request_of(some_tokens(21, 3), 40, 0);
  Written whole;
  uint32_t guessed = 0;
  for (const char* split : {"", "middle", "turns", "output"}) {
    INFO("split: " << split);
    EngineOptions options;
    options.threads = 1;
    options.checked = on_cpu();
    options.head = true;
    options.split = split;
    Engine engine;
    open_engine(file, options, &engine);
    const Written drafted = write(engine, request, {DraftKind::Head, 3});
    const uint32_t right = drafted.first.accepted_tokens + drafted.result.accepted_tokens;
    if (!*split) whole = drafted, guessed = right;
    if (!on_cpu()) continue;
    CHECK(drafted.tokens == whole.tokens);
    CHECK(drafted.state == whole.state);
    CHECK(drafted.first.drafted_tokens == whole.first.drafted_tokens);  // the same guesses
    CHECK(right == guessed);
  }
}

TEST_CASE("heads: a function that knows the text can make all guesses right, or all wrong",
          "[models][draft]") {
  const char* name = kHeads[GENERATE(0, 3)];
  INFO(name);
  const std::string file = write_model(read_head(name));
  Engine engine;
  open_head(file, &engine);
  const RequestOptions request = request_of(some_tokens(21, 3), 60, 0);
  const Written plain = write(engine, request, {});
  Tokens known(request.tokens.begin(), request.tokens.end());
  known.insert(known.end(), plain.tokens.begin(), plain.tokens.begin() + request.max_tokens);
  const int32_t wrong = GENERATE(0, 1);
  DraftSettings draft{DraftKind::Head, 3};
  draft.guess_tokens = [&](std::span<const int32_t> text, int32_t* out, size_t most) {
    for (size_t i = 0; i < most && text.size() + i < known.size(); ++i)
      out[i] = known[text.size() + i] ^ wrong;
    return most;
  };
  const Written drafted = write(engine, request, draft);
  CHECK(drafted.tokens == plain.tokens);
  CHECK(drafted.state == plain.state);
  CHECK(drafted.first.drafted_tokens > 0);
  CHECK(drafted.first.accepted_tokens == (wrong ? 0 : drafted.first.drafted_tokens));
}

TEST_CASE("heads: requests share steps and give the same answers", "[serve][draft]") {
  const char* name = kHeads[GENERATE(0, 3)];
  const uint32_t pages = GENERATE(24u, 6u);
  const bool ahead = GENERATE(false, true);
  INFO(name << ", pages " << pages << (ahead ? ", ahead" : ""));
  const std::string file = write_model(read_head(name));
  Rig rig({.context = 256, .sequences = 4, .cache_tokens = 64 * pages}, {}, ahead, file, true);
  std::vector<RequestOptions> requests;
  std::vector<Tokens> expected;
  for (uint32_t i = 0; i < 6; ++i) {
    requests.push_back(request_of(some_tokens(30 + 17 * i, i % 2), 60, i == 4 ? 7 : 0));
    expected.push_back(alone(rig, requests[i]));
    if (i != 5) requests[i].draft = {DraftKind::Head, 1 + i};
  }
  std::vector<std::shared_ptr<Request>> handles;
  for (const RequestOptions& request : requests) handles.push_back(rig.add(request));
  rig.run();
  uint32_t drafted = 0;
  for (size_t i = 0; i < requests.size(); ++i) {
    const Answer answer = answer_of(*handles[i]);
    INFO("request " << i << " " << answer.result.error);
    CHECK(answer.result.status.ok());
    CHECK(answer.tokens == expected[i]);
    drafted += answer.result.drafted_tokens;
  }
  CHECK(drafted > 10);
  rig.check_clean();
}

namespace {

// What comes of opening the file with its head.
Status open_status(const ModelFile& file) {
  const std::string bytes = write_model(file);
  Device* device = nullptr;
  require_ok(open_device("cpu", {}, &device));
  const std::unique_ptr<Device> owned(device);
  DeviceKernels kernels(*device);
  Source source;
  require_ok(source.open_memory(bytes.data(), bytes.size()));
  Model model;
  GRETA_TRY(describe_model(std::move(source), kernels, true, Log{}, &model));
  return use_head(&model);
}

}  // namespace

TEST_CASE("heads: a file whose head cannot be used is refused in words", "[models][draft]") {
  struct Wrong {
    const char* what;
    std::function<void(ModelFile&)> change;
    const char* words;
  };
  const Wrong wrongs[] = {
      {"no matrix", [](ModelFile& f) { f.drop_tensor("blk.4.nextn.eh_proj.weight"); },
       "blk.4.nextn.eh_proj.weight"},
      {"no norm", [](ModelFile& f) { f.drop_tensor("blk.4.nextn.hnorm.weight"); },
       "blk.4.nextn.hnorm.weight"},
      {"no queries", [](ModelFile& f) { f.drop_tensor("blk.4.attn_q.weight"); }, "blk.4.attn_q.weight"},
      {"another width",
       [](ModelFile& f) {
         ModelFile::Tensor& tensor = f.tensor("blk.4.nextn.eh_proj.weight");
         tensor.ne[0] /= 2;
         tensor.data.resize(tensor.data.size() / 2);
       },
       "blk.4.nextn.eh_proj.weight"},
      {"no such layer", [](ModelFile& f) { f.set_u32("qwen35.nextn_predict_layers", 0); },
       "blk.4.nextn.eh_proj.weight"},
      {"as many as layers", [](ModelFile& f) { f.set_u32("qwen35.nextn_predict_layers", 5); },
       "nextn_predict_layers"},
  };
  for (const Wrong& wrong : wrongs) {
    ModelFile file = read_head("qwen35-head");
    wrong.change(file);
    INFO(wrong.what);
    CHECK(!open_status(file).ok());
    INFO(error_text());
    CHECK(std::string(error_text()).find(wrong.words) != std::string::npos);
  }
  for (const char* norm : {"blk.4.nextn.shared_head_norm.weight", "blk.4.post_attention_norm.weight"}) {
    ModelFile file = read_head("nemotron_h_moe-head");
    file.drop_tensor(norm);
    CHECK(!open_status(file).ok());
    CHECK(std::string(error_text()).find(norm) != std::string::npos);
  }
  CHECK(open_status(read_model("glm4moe-converted")).code == Code::Unsupported);
  CHECK(std::string(error_text()).find("no layer that drafts tokens (glm4moe.nextn_predict_layers)") !=
        std::string::npos);
}

TEST_CASE("heads: a session of a model that was opened without its head has no guesses of it", "[draft]") {
  const std::string file = make_tiny({}).file;
  Engine engine;
  open_engine(file, {}, &engine);
  std::unique_ptr<Session> session;
  require_ok(Session::open(std::shared_ptr<Executor>(engine.executor.get(), [](Executor*) {}), &session));
  CHECK(session->set_draft({DraftKind::Head, 3}).code == Code::Argument);
  CHECK(std::string(error_text()).find("opened without it") != std::string::npos);
}
