// The host's sampler: each step is compared with a plain float64 reference, draws with their distribution,
// and the device's kernel with the host where both can choose.
#include "engine/sampling/sampler.h"

#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <random>

#include "support/sampler_reference.h"
#include "support/tiny_model.h"

using namespace greta;
using namespace greta::test;

namespace {

struct Named {
  const char* name;
  SamplerSettings settings;
};

template <class Change>
Named named(const char* name, Change change) {
  Named out{name, {}};
  out.settings.temperature = 1;
  out.settings.seed = 7;
  change(out.settings);
  return out;
}

using S = SamplerSettings&;
std::vector<Named> all_settings() {
  return {
      named("plain", [](S) {}),
      named("greedy", [](S s) { s.temperature = 0; }),
      named("temperature", [](S s) { s.temperature = 0.6f; }),
      named("dynamic temperature",
            [](S s) { s.temperature = 1, s.dynamic_range = 0.8f, s.dynamic_exponent = 1.5f; }),
      named("penalties",
            [](S s) { s.repeat = 1.3f, s.frequency = 0.2f, s.presence = 0.4f, s.penalty_last_n = 5; }),
      named("rewards",
            [](S s) { s.repeat = 0.8f, s.frequency = -0.1f, s.presence = -0.3f, s.penalty_last_n = 500; }),
      named("bias", [](S s) { s.bias = {{1, 1.5f}, {3, -INFINITY}, {0, -2}}; }),
      named("dry", [](S s) { s.dry.multiplier = 0.8f, s.dry.breakers = {{2, {}}}; }),
      named(
          "dry without breakers",
          [](S s) { s.dry.multiplier = 2, s.dry.base = 1.1f, s.dry.allowed_length = 1, s.dry.last_n = 40; }),
      named("top_n_sigma", [](S s) { s.top_n_sigma = 1.2f; }),
      named("top_k", [](S s) { s.top_k = 5; }),
      named("typical", [](S s) { s.typical_p = 0.6f; }),
      named("top_p", [](S s) { s.top_p = 0.8f; }),
      named("min_p", [](S s) { s.min_p = 0.15f; }),
      named("xtc", [](S s) { s.xtc_probability = 0.5f, s.xtc_threshold = 0.12f; }),
      named("all",
            [](S s) {
              s.temperature = 0.8f, s.dynamic_range = 0.3f, s.top_k = 7, s.top_p = 0.95f, s.min_p = 0.05f;
              s.typical_p = 0.9f, s.top_n_sigma = 2, s.xtc_probability = 0.4f, s.repeat = 1.1f,
              s.frequency = 0.1f;
              s.penalty_last_n = 16, s.seed = 9;
              s.dry.multiplier = 0.5f;
            }),
      named("another order",
            [](S s) {
              s.temperature = 0.7f, s.top_k = 6, s.top_p = 0.9f, s.penalty_last_n = 9, s.presence = 0.5f;
              REQUIRE(parse_sampler_order("temp;top-p;penalties;top_k", &s.order).ok());
            }),
  };
}

std::vector<float> gaussian_logits(std::mt19937& random, size_t count) {
  std::normal_distribution<float> normal(0, 2);
  std::vector<float> out(count);
  for (float& each : out) each = normal(random);
  return out;
}

std::vector<int32_t> random_history(std::mt19937& random, size_t count, int32_t vocab) {
  std::vector<int32_t> out(count);
  for (int32_t& each : out) each = int32_t(random() % uint32_t(vocab));
  return out;
}

}  // namespace

TEST_CASE("sampler: every step chooses what float64 chooses", "[sampler]") {
  std::mt19937 random(1);
  uint32_t near = 0, draws = 0;
  for (const Named& each : all_settings())
    for (const size_t vocab : {4, 12, 400})
      for (int repeat = 0; repeat < 60; ++repeat) {
        const auto logits = gaussian_logits(random, vocab);
        const auto history = random_history(random, 1 + random() % 90, 4);
        const uint32_t position = uint32_t(history.size() - 1);
        Sampler sampler;
        sampler.set(each.settings);
        int32_t id = -1;
        INFO(each.name << ", vocab " << vocab);
        REQUIRE(sampler.choose(logits, nullptr, history, &id).ok());
        const uint64_t seed = each.settings.seed;
        ReferenceChoice want =
            reference_chain(logits, each.settings, history, philox_draw(seed, position, 1), 0);
        const int32_t expected = reference_draw(want, philox_draw(seed, position, 0), &want.margin);
        ++draws;
        if (want.margin < 1e-6)
          ++near;
        else
          REQUIRE(id == expected);
      }
  CHECK(near * 50 < draws);
}

namespace {

// Returns true if the counts may come from these probabilities: chi-square is below the limit that one
// experiment in ten thousand passes by chance (Wilson and Hilferty 1931).
bool fits(const std::vector<uint32_t>& counts, const std::vector<double>& p, double draws) {
  double sum = 0, freedom = -1;
  for (size_t i = 0; i < counts.size(); ++i) {
    if (p[i] == 0 && counts[i] != 0) return false;
    if (p[i] * draws < 10) continue;
    sum += std::pow(counts[i] - p[i] * draws, 2) / (p[i] * draws);
    ++freedom;
  }
  if (freedom < 1) return sum == 0;
  const double part = 2 / (9 * freedom);
  return sum < freedom * std::pow(1 - part + 3.719 * std::sqrt(part), 3);
}

}  // namespace

TEST_CASE("sampler: a million draws follow the reference, and not one that is 1 % off", "[sampler]") {
  constexpr uint32_t kDraws = 1000000;
  const std::vector<float> logits = {0, 1, 2, -1, 0.5f, 1.5f, -2, 0.25f};
  // Steps see the same history at every draw; only the position changes.
  std::vector<int32_t> history(kDraws + 64);
  for (size_t i = 0; i < history.size(); ++i) history[i] = 3;
  for (const Named& each : all_settings()) {
    SamplerSettings settings = each.settings;
    settings.dry.last_n = settings.dry.last_n ? 12 : 20;
    if (settings.penalty_last_n) settings.penalty_last_n = 6;
    INFO(each.name);
    if (settings.temperature == 0) continue;
    Sampler sampler;
    sampler.set(settings);
    std::vector<uint32_t> counts(logits.size());
    for (uint32_t i = 0; i < kDraws; ++i) {
      int32_t id = -1;
      if (!sampler.choose(logits, nullptr, {history.data(), 64 + i}, &id).ok()) FAIL("no token");
      ++counts.at(size_t(id));
    }
    const std::vector<int32_t> same(history.begin(), history.begin() + 64);
    const auto applied = reference_chain(logits, settings, same, 0, 0);
    const auto skipped = reference_chain(logits, settings, same, 1, 0);
    std::vector<double> p;
    for (size_t i = 0; i < logits.size(); ++i)
      p.push_back(settings.xtc_probability * applied.probability[i] +
                  (1 - settings.xtc_probability) * skipped.probability[i]);
    CHECK(fits(counts, p, kDraws));
    // The test must notice if the likeliest token is drawn 1 % more often than it should be.
    const size_t best = size_t(std::max_element(p.begin(), p.end()) - p.begin());
    if (p[best] > 0.9) continue;
    std::vector<double> biased = p;
    for (size_t i = 0; i < p.size(); ++i) biased[i] *= i == best ? 1.01 : 1 - 0.01 * p[best] / (1 - p[best]);
    CHECK_FALSE(fits(counts, biased, kDraws));
  }
}

TEST_CASE("sampler: mirostat keeps the surprise near tau, and follows a truncate", "[sampler]") {
  std::mt19937 random(3);
  SamplerSettings settings;
  settings.temperature = 1;
  settings.mirostat_tau = 3;
  Sampler sampler;
  sampler.set(settings);
  std::vector<std::vector<float>> rows;
  for (int i = 0; i < 400; ++i) rows.push_back(gaussian_logits(random, 300));
  std::vector<int32_t> history = {0};
  double mu = 2 * double(settings.mirostat_tau), surprise = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    const uint32_t position = uint32_t(history.size() - 1);
    ReferenceChoice want = reference_chain(rows[i], settings, history, 1, mu);
    const int32_t expected = reference_draw(want, philox_draw(0, position, 0), &want.margin);
    int32_t id = -1;
    REQUIRE(sampler.choose(rows[i], nullptr, history, &id).ok());
    REQUIRE(id == expected);
    const double bits = -std::log2(want.probability[size_t(id)]);
    mu = float(mu - double(settings.mirostat_eta) * (bits - 3));
    surprise += bits / double(rows.size());
    history.push_back(id);
  }
  CHECK(std::fabs(surprise - 3) < 0.3);
  sampler.truncate(200);
  for (size_t length = 200; length < 230; ++length) {
    int32_t id = -1;
    REQUIRE(sampler.choose(rows[length - 1], nullptr, {history.data(), length}, &id).ok());
    CHECK(id == history[length]);
  }
}

TEST_CASE("sampler: mirostat keeps what surprises by just mu", "[sampler]") {
  SamplerSettings settings;
  settings.temperature = 1;
  settings.mirostat_tau = 0.5f;  // mu begins at twice that, a bit
  std::vector<int> chosen(2);
  for (uint64_t seed = 0; seed < 40; ++seed) {
    settings.seed = seed;
    Sampler sampler;
    sampler.set(settings);
    int32_t id = -1;
    REQUIRE(sampler.choose(std::vector<float>{1, 1}, nullptr, std::vector<int32_t>{0}, &id).ok());
    ++chosen[size_t(id)];
  }
  CHECK(chosen[0] > 0);
  CHECK(chosen[1] > 0);
}

TEST_CASE("sampler: without tokens before it, a draw is that of position 0", "[sampler]") {
  const std::vector<float> logits(1000, 1);
  SamplerSettings settings;
  settings.temperature = 1;
  for (uint64_t seed = 0; seed < 10; ++seed) {
    settings.seed = seed;
    Sampler sampler;
    sampler.set(settings);
    int32_t first = -1, second = -1;
    REQUIRE(sampler.choose(logits, nullptr, {}, &first).ok());
    REQUIRE(sampler.choose(logits, nullptr, std::vector<int32_t>{0}, &second).ok());
    CHECK(first == second);
  }
}

TEST_CASE("sampler: what is no number, and what is forbidden", "[sampler]") {
  Sampler sampler;
  const std::vector<int32_t> history = {0};
  const float inf = INFINITY;
  for (const Named& each : all_settings()) {
    INFO(each.name);
    SamplerSettings settings = each.settings;
    settings.bias.clear();
    sampler.set(settings);
    int32_t id = -1;
    for (const auto& row :
         {std::vector<float>{NAN, NAN, NAN}, {-inf, -inf, -inf}, {NAN, inf, inf}, {inf, -inf, NAN}})
      REQUIRE(sampler.choose(row, nullptr, history, &id).code == Code::File);
    const std::vector<std::pair<std::vector<float>, int32_t>> rows = {
        {{1}, 0}, {{inf, 3, NAN}, 0}, {{NAN, -inf, -7}, 2}, {{-inf, 2, NAN}, 1}};
    for (const auto& [row, token] : rows) {
      REQUIRE(sampler.choose(row, nullptr, history, &id).ok());
      REQUIRE(id == token);
    }
    for (uint64_t allowed = 0; allowed < 8; ++allowed) {
      int32_t id = -1;
      const Status status = sampler.choose(std::vector<float>{5, 1, NAN}, &allowed, history, &id);
      REQUIRE(status.ok() == ((allowed & 3) != 0));  // the third logit is NaN and never chosen
      if (status.ok()) REQUIRE((allowed & 3 & (uint64_t(1) << id)) != 0);
    }
  }
  SamplerSettings none;
  none.bias = {{0, -inf}, {1, -inf}};
  sampler.set(none);
  int32_t id = -1;
  CHECK(sampler.choose(std::vector<float>{1, 2}, nullptr, history, &id).code == Code::Argument);
}

TEST_CASE("sampler: settings out of range are refused", "[sampler]") {
  const auto refused = [](auto change) {
    SamplerSettings settings;
    change(settings);
    return check_sampling(settings).code == Code::Argument;
  };
  for (const float wrong : {NAN, -1.0f, INFINITY, -INFINITY}) {
    CHECK(refused([=](S s) { s.temperature = wrong; }));
    CHECK(refused([=](S s) { s.top_p = wrong; }));
    CHECK(refused([=](S s) { s.min_p = wrong; }));
    CHECK(refused([=](S s) { s.typical_p = wrong; }));
    CHECK(refused([=](S s) { s.top_n_sigma = wrong; }));
    CHECK(refused([=](S s) { s.xtc_probability = wrong; }));
    CHECK(refused([=](S s) { s.xtc_threshold = wrong; }));
    CHECK(refused([=](S s) { s.repeat = wrong; }));
    CHECK(refused([=](S s) { s.mirostat_tau = wrong; }));
    CHECK(refused([=](S s) { s.dry.multiplier = wrong; }));
    CHECK(refused([=](S s) { s.dry.base = wrong; }));
    CHECK(refused([=](S s) { s.dynamic_range = wrong; }));
  }
  for (const float wrong : {NAN, INFINITY, 1.1e6f, -1.1e6f}) {
    CAPTURE(wrong);
    CHECK(refused([=](S s) { s.bias = {{0, 1}, {1, wrong}}; }));
  }
  CHECK(refused([](S s) { s.frequency = NAN; }));
  CHECK_FALSE(refused([](S s) { s.frequency = -1; }));
  CHECK_FALSE(refused([](S s) { s.bias = {{0, -INFINITY}}; }));
  std::vector<SamplerStep> order;
  CHECK(parse_sampler_order("top_k;nonsense", &order).code == Code::Argument);
  CHECK(parse_sampler_order("top_k;;temp", &order).code == Code::Argument);
  REQUIRE(
      parse_sampler_order("penalties;dry;top_n_sigma;top_k;typ_p;top_p;min_p;xtc;temperature", &order).ok());
  CHECK(order == default_sampler_order());
}

TEST_CASE("sampler: what the device's kernel cannot do is left to the host", "[sampler]") {
  const auto on_device = [](auto change) {
    SamplerSettings settings;
    change(settings);
    Sampler sampler;
    sampler.set(settings);
    return sampler.on_device();
  };
  CHECK(on_device([](S) {}));
  CHECK(on_device([](S s) { s.temperature = 0.5f, s.top_k = 40, s.top_p = 0.9f, s.min_p = 0.1f; }));
  CHECK(on_device([](S s) { s.repeat = 1.1f, s.penalty_last_n = kMaxPenalised; }));
  CHECK_FALSE(on_device([](S s) { s.repeat = 1.1f, s.penalty_last_n = kMaxPenalised + 1; }));
  CHECK_FALSE(on_device([](S s) { s.mirostat_tau = 0.5f; }));
  CHECK_FALSE(on_device([](S s) { s.dynamic_range = 0.5f; }));
  CHECK_FALSE(on_device([](S s) { s.bias = {{0, 1}}; }));
  CHECK_FALSE(on_device([](S s) { s.typical_p = 0.5f; }));
  CHECK_FALSE(on_device(
      [](S s) { s.filter.call = [](void*, float*, size_t, const int32_t*, size_t) { return 0; }; }));
  // The kernel has one order, of which steps may be absent.
  CHECK(on_device([](S s) {
    s.top_k = 5, s.min_p = 0.1f, s.order = {SamplerStep::TopK, SamplerStep::MinP, SamplerStep::Temperature};
  }));
  CHECK_FALSE(on_device([](S s) {
    s.top_k = 5, s.min_p = 0.1f, s.order = {SamplerStep::MinP, SamplerStep::TopK, SamplerStep::Temperature};
  }));
  CHECK_FALSE(on_device([](S s) {
    s.top_k = 5, s.temperature = 0.5f, s.order = {SamplerStep::Temperature, SamplerStep::TopK};
  }));
}

TEST_CASE("sampler: the device and the host choose the same tokens", "[sampler]") {
  const TinyModel tiny = make_tiny({});
  Engine engine;
  open_engine(tiny.file, {}, &engine);
  std::unique_ptr<Session> session;
  REQUIRE(Session::open(std::shared_ptr<Executor>(engine.executor.get(), [](Executor*) {}), &session).ok());
  const auto generate = [&](SamplerSettings settings, bool host) {
    // A filter that changes nothing makes the host choose.
    if (host) settings.filter.call = [](void*, float*, size_t, const int32_t*, size_t) { return 0; };
    REQUIRE(session->set_sampling(settings).ok());
    REQUIRE(session->truncate(0).ok());
    Sampler sampler;
    sampler.set(settings);
    REQUIRE(sampler.on_device() == !host);
    std::vector<int32_t> got;
    GenerateOptions options;
    options.max_tokens = 200;
    options.ignore_end = true;
    options.user = &got;
    options.on_token = [](void* user, int32_t token, const char*, size_t) {
      if (token >= 0) static_cast<std::vector<int32_t>*>(user)->push_back(token);
      return 0;
    };
    GenerateResult result;
    const int32_t prompt[] = {1, 5, 9};
    REQUIRE(session->generate(prompt, options, &result).ok());
    REQUIRE(got.size() == 200);
    return got;
  };
  const Named settings[] = {
      named("greedy", [](S s) { s.temperature = 0; }),
      named("greedy with penalties", [](S s) { s.temperature = 0, s.repeat = 1.4f, s.penalty_last_n = 64; }),
      named("plain", [](S) {}),
      named("hot", [](S s) { s.temperature = 1.7f; }),
      named("top_k", [](S s) { s.top_k = 9, s.temperature = 0.7f; }),
      named("top_p", [](S s) { s.top_p = 0.8f, s.temperature = 1.4f; }),
      named("min_p", [](S s) { s.min_p = 0.2f, s.temperature = 2; }),
      named("top_k beyond the vocabulary", [](S s) { s.top_k = 100000, s.temperature = 3; }),
      named("all",
            [](S s) {
              s.repeat = 1.2f, s.penalty_last_n = 256, s.top_k = 40, s.top_p = 0.95f, s.min_p = 0.05f,
              s.temperature = 0.8f;
            }),
  };
  for (Named each : settings)
    for (uint64_t seed = 0; seed < 3; ++seed) {
      each.settings.seed = seed * 0x123456789abcdefull;
      INFO(each.name << ", seed " << seed);
      CHECK(generate(each.settings, false) == generate(each.settings, true));
    }
}

TEST_CASE("sampler: the host does what the device's kernel cannot do, or not in that order", "[sampler]") {
  Sampler sampler;
  const auto on_device = [&](auto change) {
    SamplerSettings s;
    s.temperature = 0.5f;
    change(s);
    sampler.set(s);
    return sampler.on_device();
  };
  CHECK(on_device([](S s) { s.order = {SamplerStep::TopP, SamplerStep::TopK}, s.top_k = 3; }));
  CHECK_FALSE(
      on_device([](S s) { s.order = {SamplerStep::TopP, SamplerStep::TopK}, s.top_k = 3, s.top_p = 0.5f; }));
  CHECK(on_device([](S s) { s.presence = 1, s.frequency = -1, s.penalty_last_n = 256; }));
  CHECK_FALSE(on_device([](S s) { s.repeat = 2, s.penalty_last_n = 257; }));
  CHECK_FALSE(on_device([](S s) { s.dry.multiplier = 1; }));
  CHECK_FALSE(on_device([](S s) { s.mirostat_tau = 1; }));
}
