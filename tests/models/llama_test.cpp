// The llama architecture against the float64 oracle, however its tokens are cut into steps.
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <cstring>
#include <map>
#include <numeric>
#include <string>
#include <thread>

#include "models/reference_transformer.h"
#include "support/test_device.h"

using namespace greta;
using namespace greta::test;

namespace {

std::vector<int32_t> some_tokens(uint32_t count, uint32_t vocab, uint32_t seed = 7) {
  std::vector<int32_t> tokens(count);
  for (int32_t& token : tokens) token = int32_t((seed = seed * 1664525u + 1013904223u) >> 8) % int32_t(vocab);
  for (int32_t& token : tokens) token = std::abs(token);
  return tokens;
}

std::unique_ptr<Session> open_session(Engine& engine) {
  std::unique_ptr<Session> session;
  REQUIRE(Session::open(std::shared_ptr<Executor>(engine.executor.get(), [](Executor*) {}), &session).ok());
  return session;
}

// Logits of all tokens, fed in pieces of `piece` tokens.
std::vector<float> all_logits(Engine& engine, const std::vector<int32_t>& tokens, size_t piece) {
  const auto session = open_session(engine);
  const uint32_t vocab = engine.model->shape.vocab;
  std::vector<float> all;
  for (size_t at = 0; at < tokens.size(); at += piece) {
    const size_t count = std::min(piece, tokens.size() - at);
    const float* logits = nullptr;
    INFO(error_text());
    REQUIRE(session->eval({tokens.data() + at, count}, OutputRows::All, &logits).ok());
    all.insert(all.end(), logits, logits + count * vocab);
  }
  return all;
}

// NMSE of each token's logits.
std::vector<double> errors_of(const std::vector<float>& got, const std::vector<std::vector<double>>& want) {
  std::vector<double> errors;
  for (size_t t = 0; t < want.size(); ++t) errors.push_back(nmse(got.data() + t * want[t].size(), want[t]));
  return errors;
}

double mean_of(const std::vector<double>& errors) {
  return std::accumulate(errors.begin(), errors.end(), 0.0) / double(errors.size());
}

// The tiles on matrix units take weights and x as float16, from steps of 2 tokens on, and so does the oracle
// here. Where no x lies so close to the middle between two halves that float32 rounds it the other way,
// nothing but float32's error is left, 1e-14. That other way is taken by 1 of 4000 to 15000: x is off by 6e-8
// to 2e-7 of itself, halves are 7e-4 apart in the mean. A token has 640 values that are rounded, and reads
// keys and values of those before it.
void check_on_matrix_units(const TinyModel& tiny, Engine& engine, const std::vector<int32_t>& tokens) {
  // Of the tokens of pairs 8 of 10 have no such x. Weights or x that are not rounded, or not to the nearest,
  // cost each of them 5e-8 and more. The first and the second of a pair apart, as they lie in different
  // columns of a tile.
  std::vector<double> of_pairs;
  size_t close[2] = {};
  for (size_t t = 0; t < tokens.size(); t += 2) {
    const std::vector<int32_t> pair(tokens.begin() + t, tokens.begin() + t + 2);
    const auto errors =
        errors_of(all_logits(engine, pair, 2), reference_forward(tiny, pair, Operands::Halves));
    for (const size_t i : {0, 1}) close[i] += errors[i] < 1e-10;
    of_pairs.insert(of_pairs.end(), errors.begin(), errors.end());
  }
  for (const size_t count : close) CHECK(count * 4 > of_pairs.size() / 2);
  // Among many tokens some have one, and all behind them are off a little, so most round some x of the second
  // layer the other way. At worst the device's and the oracle's are as if independent: two roundings of 4e-8
  // each in 7 products and the logits, 6.4e-7; two oracles whose x are off by 5e-7 before they are rounded
  // are up to 3.5e-7 apart. The exact oracle is further away: 15 products of two operands, each 4e-8 off,
  // make 1.2e-6. It is 1.3e-6 in the mean of these tokens, and 7e-6 in one whose best keys score alike.
  const auto want = reference_forward(tiny, tokens, Operands::Halves);
  const auto errors = errors_of(all_logits(engine, tokens, tokens.size()), want);
  CHECK(mean_of(errors) < 6e-7);
  for (size_t t = 0; t < errors.size(); ++t) {
    INFO("token " << t);
    CHECK(errors[t] < 2e-6);
  }
  CHECK(mean_of(of_pairs) < 6e-7);
}

void check_against_reference(const TinyShape& shape, double limit, EngineOptions options = {}) {
  const TinyModel tiny = make_tiny(shape);
  const auto tokens = some_tokens(150, shape.vocab);  // three pages
  Engine engine;
  open_engine(tiny.file, options, &engine);
  const bool matrix_units = !on_cpu() && (engine.device->info().features & kVulkanMatrices);
  if (!options.exact && matrix_units) return check_on_matrix_units(tiny, engine, tokens);
  const auto errors = errors_of(all_logits(engine, tokens, 150), reference_forward(tiny, tokens));
  for (size_t t = 0; t < tokens.size(); ++t) {
    INFO("token " << t);
    REQUIRE(errors[t] < limit);
  }
}

}  // namespace

TEST_CASE("llama: logits equal the float64 oracle's", "[models]") {
  SECTION("grouped queries, tied") { check_against_reference({}, 1e-10); }
  SECTION("one key-value head for each query head, untied") {
    check_against_reference({.heads = 4, .kv_heads = 4, .tied = false}, 1e-10);
  }
  SECTION("one key-value head, odd sizes") {
    check_against_reference({.layers = 3, .width = 50, .heads = 5, .kv_heads = 1, .ffn = 33, .vocab = 41},
                            1e-10);
  }
  SECTION("a head width that is not width / heads, rotated in part") {
    check_against_reference({.head_width = 20, .rope_width = 8}, 1e-10);
  }
  SECTION("linear rope scaling") { check_against_reference({.rope_base = 5000, .rope_scale = 4}, 1e-10); }
  SECTION("rope factors, as Llama 3.1 has") {
    check_against_reference({.rope_base = 500000, .rope_factors = true}, 1e-10);
  }
  SECTION("an f16 cache") {
    EngineOptions options;
    options.executor.key_type = options.executor.value_type = 1;
    check_against_reference({}, 1e-5, options);  // keys and values are rounded to 11 bits
  }
  SECTION("the fastest kernels") {
    EngineOptions options;
    options.exact = false;
    check_against_reference({.width = 64, .ffn = 96}, 1e-9, options);  // f32 weights: nothing is quantised
  }
}

TEST_CASE("llama: plain kernels give the same bits however the prompt is cut", "[models]") {
  const TinyModel tiny = make_tiny({});
  const auto tokens = some_tokens(150, tiny.shape.vocab);
  std::vector<float> first;
  for (const uint32_t threads : {1u, 2u, 3u}) {
    EngineOptions options;
    options.threads = threads;
    Engine engine;
    open_engine(tiny.file, options, &engine);
    for (const size_t piece : {150, 1, 2, 7, 16, 33, 64, 128}) {
      const auto logits = all_logits(engine, tokens, piece);
      if (first.empty()) first = logits;
      INFO(threads << " threads, pieces of " << piece);
      REQUIRE(memcmp(first.data(), logits.data(), first.size() * sizeof(float)) == 0);
    }
  }
}

TEST_CASE("llama: the same bits over 100 runs", "[models]") {
  const TinyModel tiny = make_tiny({.width = 64, .ffn = 96});
  const auto tokens = some_tokens(20, tiny.shape.vocab);
  EngineOptions options;
  options.exact = false;
  Engine engine;
  open_engine(tiny.file, options, &engine);
  const auto first = all_logits(engine, tokens, 13);
  for (int run = 0; run < 100; ++run) REQUIRE(all_logits(engine, tokens, 13) == first);
}

TEST_CASE("llama: sequences in one step are as if alone", "[models]") {
  const TinyModel tiny = make_tiny({});
  const uint32_t vocab = tiny.shape.vocab;
  Engine engine;
  open_engine(tiny.file, {}, &engine);
  const auto a = some_tokens(70, vocab, 1), b = some_tokens(9, vocab, 2);
  const auto alone_a = all_logits(engine, a, 70), alone_b = all_logits(engine, b, 9);
  const auto session_a = open_session(engine), session_b = open_session(engine);
  Session::Item items[] = {{session_a.get(), a, nullptr}, {session_b.get(), b, nullptr}};
  REQUIRE(Session::eval_batch(items).ok());
  CHECK(memcmp(items[0].logits, alone_a.data() + 69 * vocab, vocab * sizeof(float)) == 0);
  CHECK(memcmp(items[1].logits, alone_b.data() + 8 * vocab, vocab * sizeof(float)) == 0);
}

TEST_CASE("profiles: what only the output rows need is counted for them alone", "[models]") {
  using Bytes = std::map<std::string, uint64_t>;  // by kernel
  const auto profile = [](uint32_t vocab, uint32_t tokens) {
    const TinyModel tiny = make_tiny({.vocab = vocab});
    Engine engine;
    open_engine(tiny.file, {}, &engine);
    uint32_t sequence = 0;
    REQUIRE(engine.executor->acquire_sequence(&sequence).ok());
    std::vector<Executor::Row> rows;
    for (uint32_t t = 0; t < tokens; ++t) rows.push_back({t, t, sequence, Executor::Output::None});
    rows.back().output = Executor::Output::Draw;
    const auto note = [](void* user, const Executor::Stage& stage) {
      (*static_cast<Bytes*>(user))[stage.kernel] += stage.bytes;
    };
    Bytes bytes;
    REQUIRE(engine.executor->profile(rows, note, &bytes).ok());
    return bytes;
  };
  Bytes one = profile(67, 1), many = profile(67, 30), one_of_more = profile(670, 1),
        many_of_more = profile(670, 30);
  CHECK(one["sample_plain"] == 67 * sizeof(float));
  CHECK(many["sample_plain"] == 67 * sizeof(float));
  CHECK(many["embed_plain_f32"] == 30 * one["embed_plain_f32"]);
  // What more tokens add to the products does not depend on how many logits a row has.
  const uint64_t added = many["matmul_plain_f32"] - one["matmul_plain_f32"];
  CHECK(added > 0);
  CHECK(many_of_more["matmul_plain_f32"] - one_of_more["matmul_plain_f32"] == added);
}

TEST_CASE("executors of one model run on their own threads", "[models]") {
  const TinyModel tiny = make_tiny({});
  const uint32_t vocab = tiny.shape.vocab;
  Engine engine;
  open_engine(tiny.file, {}, &engine);
  const auto a = some_tokens(70, vocab, 1), b = some_tokens(70, vocab, 2);
  const auto want_a = all_logits(engine, a, 70), want_b = all_logits(engine, b, 70);
  std::atomic<int> wrong = 0;
  const auto work = [&](const std::vector<int32_t>& tokens, const std::vector<float>& want) {
    std::unique_ptr<Executor> executor;
    std::unique_ptr<Session> session;
    if (!Executor::open(*engine.model, EngineOptions{}.executor, uint64_t(1) << 32, &executor).ok()) ++wrong;
    if (!Session::open(std::shared_ptr<Executor>(std::move(executor)), &session).ok()) ++wrong;
    for (int run = 0; run < 20; ++run) {
      const float* logits = nullptr;
      if (!session->truncate(0).ok() || !session->eval(tokens, OutputRows::All, &logits).ok() ||
          memcmp(logits, want.data(), want.size() * sizeof(float)) != 0)
        ++wrong;
    }
  };
  std::thread first(work, a, want_a), second(work, b, want_b);
  first.join();
  second.join();
  CHECK(wrong == 0);
}

TEST_CASE("sessions: a fork goes its own way, truncation forgets", "[models]") {
  const TinyModel tiny = make_tiny({});
  const uint32_t vocab = tiny.shape.vocab;
  EngineOptions options;
  options.executor.cache_tokens = 512;
  Engine engine;
  open_engine(tiny.file, options, &engine);
  auto common = some_tokens(70, vocab, 1);  // ends within a page, which the fork shares
  const auto left = some_tokens(30, vocab, 2), right = some_tokens(30, vocab, 3);
  const auto joined = [&](const std::vector<int32_t>& tail) {
    std::vector<int32_t> all = common;
    all.insert(all.end(), tail.begin(), tail.end());
    return all_logits(engine, all, 100);
  };
  const auto want_left = joined(left), want_right = joined(right);
  const auto last = [&](const std::vector<float>& logits) { return logits.data() + 99 * vocab; };

  const auto session = open_session(engine);
  const float* logits = nullptr;
  REQUIRE(session->eval(common, OutputRows::None, nullptr).ok());
  std::unique_ptr<Session> child;
  REQUIRE(session->fork(&child).ok());
  // In turns, so that each would read what the other wrote if the page were still shared.
  REQUIRE(session->eval({left.data(), 12}, OutputRows::None, nullptr).ok());
  REQUIRE(child->eval({right.data(), 15}, OutputRows::None, nullptr).ok());
  REQUIRE(session->eval({left.data() + 12, 18}, OutputRows::Last, &logits).ok());
  CHECK(memcmp(logits, last(want_left), vocab * sizeof(float)) == 0);
  REQUIRE(child->eval({right.data() + 15, 15}, OutputRows::Last, &logits).ok());
  CHECK(memcmp(logits, last(want_right), vocab * sizeof(float)) == 0);
  REQUIRE(session->truncate(70).ok());
  REQUIRE(session->eval(right, OutputRows::Last, &logits).ok());
  CHECK(memcmp(logits, last(want_right), vocab * sizeof(float)) == 0);
  CHECK(session->position() == 100);
  CHECK(session->truncate(101).code == Code::Argument);
}

TEST_CASE("sessions: what does not fit is refused and nothing is lost", "[models]") {
  const TinyModel tiny = make_tiny({});
  EngineOptions options;
  options.executor.context = 64;
  Engine engine;
  open_engine(tiny.file, options, &engine);
  const auto session = open_session(engine);
  const auto tokens = some_tokens(60, tiny.shape.vocab);
  REQUIRE(session->eval(tokens, OutputRows::None, nullptr).ok());
  const float* logits = nullptr;
  CHECK(session->eval({tokens.data(), 5}, OutputRows::Last, &logits).code == Code::Full);
  CHECK(session->position() == 60);
  CHECK(session->eval({tokens.data(), 4}, OutputRows::Last, &logits).ok());
  const auto other = open_session(engine);  // the pool's one page is taken
  CHECK(other->eval({tokens.data(), 1}, OutputRows::Last, &logits).code == Code::Full);
  const int32_t wrong = int32_t(tiny.shape.vocab);
  CHECK(other->eval({&wrong, 1}, OutputRows::Last, &logits).code == Code::Argument);
}
