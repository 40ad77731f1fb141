// Vectors of texts: hidden states are those of the reference, a vector does not depend on how its text is
// cut, and a service gives what a session gives, whoever else is there.
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <cmath>

#include "engine/serve_rig.h"
#include "models/reference_transformer.h"

using namespace greta;
using namespace greta::test;

namespace {

using Vector = std::vector<float>;

std::unique_ptr<Session> session_of(Engine& engine) {
  std::unique_ptr<Session> session;
  REQUIRE(Session::open(std::shared_ptr<Executor>(engine.executor.get(), [](Executor*) {}), &session).ok());
  return session;
}

Vector embed(Session& session, std::span<const int32_t> tokens, const EmbedOptions& options) {
  REQUIRE(session.truncate(0).ok());
  std::span<const float> out;
  const Status status = session.embed(tokens, options, &out);
  INFO(error_text());
  REQUIRE(status.ok());
  CHECK(session.position() == tokens.size());
  return {out.begin(), out.end()};
}

double length(std::span<const float> vector) {
  double squares = 0;
  for (const float value : vector) squares += double(value) * value;
  return std::sqrt(squares);
}

Vector embedding_of(Request& request) {
  RequestEvent event;
  Vector embedding;
  while (request.next(0, &event)) {
    CHECK(event.kind == RequestEvent::Kind::Embedding);
    CHECK(embedding.empty());
    embedding = event.embedding;
  }
  return embedding;
}

RequestOptions asks_for(const std::vector<int32_t>& tokens, Pooling pooling) {
  RequestOptions options;
  options.tokens = tokens;
  options.embed = EmbedOptions{pooling};
  return options;
}

constexpr Pooling kPoolings[] = {Pooling::Mean, Pooling::First, Pooling::Last, Pooling::None};

}  // namespace

TEST_CASE("embed: a hidden state is that of the reference", "[embed]") {
  const TinyModel tiny = make_tiny({});
  Engine engine;
  open_engine(tiny.file, {}, &engine);
  const auto session = session_of(engine);
  const std::vector<int32_t> tokens = some_tokens(30, 1);
  const auto states = reference_hidden(tiny, tokens);
  std::vector<double> mean(states[0].size());
  for (const auto& state : states)
    for (size_t i = 0; i < mean.size(); ++i) mean[i] += state[i] / double(states.size());
  const auto check = [&](Pooling pooling, const std::vector<double>& wanted) {
    const Vector raw = embed(*session, tokens, {pooling, true}), unit = embed(*session, tokens, {pooling});
    CHECK(nmse(raw.data(), wanted) < 1e-9);
    CHECK(std::abs(length(unit) - 1) < 1e-6);
    for (size_t i = 0; i < raw.size(); ++i) CHECK(std::abs(unit[i] - raw[i] / length(raw)) < 1e-6);
  };
  check(Pooling::Mean, mean);
  check(Pooling::First, states.front());
  check(Pooling::Last, states.back());
  const Vector every = embed(*session, tokens, {Pooling::None, true});
  REQUIRE(every.size() == states.size() * mean.size());
  for (size_t i = 0; i < states.size(); ++i) CHECK(nmse(every.data() + i * mean.size(), states[i]) < 1e-9);
}

TEST_CASE("embed: a vector does not depend on the cut of its text into steps", "[embed]") {
  const TinyModel tiny = make_tiny({});
  const std::vector<int32_t> tokens = some_tokens(100, 2);
  std::vector<Vector> first;
  for (const uint32_t step : {1u, 4u, 64u})
    for (const uint32_t rows : {1u, 64u}) {
      EngineOptions options;
      options.executor.step_tokens = step;
      options.executor.output_rows = rows;
      Engine engine;
      open_engine(tiny.file, options, &engine);
      const auto session = session_of(engine);
      std::vector<Vector> vectors;
      for (const Pooling pooling : kPoolings) vectors.push_back(embed(*session, tokens, {pooling}));
      if (first.empty()) first = vectors;
      CHECK(vectors == first);
    }
  CHECK(first[0] != first[2]);
}

TEST_CASE("embed: text behind other text sees it, and a failure leaves the session as it was", "[embed]") {
  const TinyModel tiny = make_tiny({});
  Engine engine;
  open_engine(tiny.file, {}, &engine);
  const auto session = session_of(engine);
  const std::vector<int32_t> tokens = some_tokens(40, 3);
  const std::span<const int32_t> all(tokens);
  const Vector last = embed(*session, tokens, {Pooling::Last});
  embed(*session, all.first(25), {});
  std::span<const float> behind;
  REQUIRE(session->embed(all.subspan(25), {Pooling::Last}, &behind).ok());
  CHECK(Vector(behind.begin(), behind.end()) == last);
  CHECK(session->embed(std::vector<int32_t>{1, 67}, {}, &behind).code == Code::Argument);
  CHECK(session->embed(std::vector<int32_t>(220, 5), {}, &behind).code == Code::Full);
  CHECK(session->position() == 40);
}

TEST_CASE("embed: a service gives what a session gives, whoever else is there", "[embed][serve]") {
  const uint32_t cache = GENERATE(64u * 40, 64u * 6);
  const bool ahead = GENERATE(false, true);
  Rig rig({.context = 256, .sequences = 8, .cache_tokens = cache}, {.chunk_tokens = 20}, ahead);
  std::vector<RequestOptions> wanted;
  for (uint32_t i = 0; i < 9; ++i)
    wanted.push_back(asks_for(some_tokens(1 + i * 27, i), kPoolings[i % 4]));
  const std::vector<RequestOptions> others = mixed_requests(8);
  std::vector<Vector> vectors;
  std::vector<std::vector<int32_t>> answers;
  {
    const auto session = session_of(rig.engine);
    for (const RequestOptions& each : wanted) vectors.push_back(embed(*session, each.tokens, *each.embed));
  }
  for (const RequestOptions& each : others) answers.push_back(alone(rig, each));
  std::vector<std::shared_ptr<Request>> asked, beside;
  for (size_t i = 0; i < wanted.size(); ++i) {
    asked.push_back(rig.add(wanted[i]));
    if (i < others.size()) beside.push_back(rig.add(others[i]));
  }
  rig.run();
  for (size_t i = 0; i < wanted.size(); ++i) {
    INFO("embedding " << i);
    CHECK(embedding_of(*asked[i]) == vectors[i]);
    const Answer answer = answer_of(*asked[i]);
    CHECK(answer.result.status.ok());
    CHECK(answer.result.generated_tokens == 0);
  }
  for (size_t i = 0; i < others.size(); ++i) CHECK(answer_of(*beside[i]).tokens == answers[i]);
  rig.check_clean();
}

TEST_CASE("embed: the last token's vector takes pages from the prefix cache, a mean reads all",
          "[embed][serve]") {
  Rig rig({.context = 256, .sequences = 4, .cache_tokens = 64 * 16});
  const std::vector<int32_t> tokens = some_tokens(150, 4);
  for (const Pooling pooling : kPoolings) {
    const Vector vector = embed(*session_of(rig.engine), tokens, {pooling});
    for (int again = 0; again < 2; ++again) {
      const auto request = rig.add(asks_for(tokens, pooling));
      rig.run();
      CHECK(embedding_of(*request) == vector);
      const Answer answer = answer_of(*request);
      CHECK(answer.result.cached_tokens == (pooling == Pooling::Last ? 128 : 0));
    }
  }
  rig.check_clean();
}

TEST_CASE("embed: a text that is read anew counts each of its tokens once", "[embed][serve]") {
  Rig rig({.context = 256, .sequences = 2, .cache_tokens = 64 * 5}, {.chunk_tokens = 1});
  const std::vector<int32_t> tokens = some_tokens(150, 4);
  const Vector vector = embed(*session_of(rig.engine), tokens, {});
  const auto older = rig.add(request_of(some_tokens(60, 1), 180));
  const auto request = rig.add(asks_for(tokens, Pooling::Mean));
  rig.run();
  CHECK(embedding_of(*request) == vector);
  CHECK(answer_of(*request).result.set_back > 0);
  CHECK(answer_of(*older).tokens.size() == 180);
  rig.check_clean();
}

TEST_CASE("embed: a submission that fails once ends at most the request that was alone", "[embed][faults]") {
  Rig rig({.context = 256, .sequences = 4, .cache_tokens = 64 * 16}, {.prefix_cache = false});
  std::vector<RequestOptions> wanted;
  std::vector<Vector> vectors;
  for (uint32_t i = 0; i < 3; ++i) wanted.push_back(asks_for(some_tokens(20 + i, i), kPoolings[i]));
  for (const RequestOptions& each : wanted)
    vectors.push_back(embed(*session_of(rig.engine), each.tokens, *each.embed));
  bool reached = true;
  uint64_t at = 1, whole = 0;
  for (; reached; ++at) {
    std::vector<std::shared_ptr<Request>> asked;
    for (const RequestOptions& each : wanted) asked.push_back(rig.add(each));
    rig.submissions.count = 0;
    rig.submissions.fail_at = at;
    rig.run();
    reached = rig.submissions.count >= at;
    rig.submissions.fail_at = 0;
    for (size_t i = 0; i < wanted.size(); ++i) {
      const Vector vector = embedding_of(*asked[i]);
      const Answer answer = answer_of(*asked[i]);
      CHECK((answer.result.status.ok() ? vector == vectors[i] : answer.result.status.code == Code::Memory));
      whole += answer.result.status.ok();
    }
    rig.check_clean();
  }
  CHECK(at > 4);
  CHECK(whole > 3);
}
