// Settings of sampling and logits, both made of any bytes. What must hold: settings out of range are refused;
// with the others, a token is drawn whose logit is a number and which the grammar's mask allows, or the
// failure says why; and the same twice.
//
// Input: 40 bytes of settings, a byte n and n steps of the order, a byte m and m pairs of token and bias,
// then logits of 2 bytes each, the upper half of a float32.
#include <cmath>
#include <cstring>

#include "engine/engine.h"

using namespace greta;

namespace {

constexpr size_t kMostLogits = 400;

struct Bytes {
  const uint8_t* at;
  size_t left;
  uint8_t byte() { return left ? (--left, *at++) : 0; }
  // Mostly a number within the ranges of settings, at times any float32.
  float number(float least, float most) {
    const uint8_t kind = byte();
    if (kind > 8) return least + (most - least) * float(kind - 9) / 246;
    uint32_t bits = 0;
    for (int i = 0; i < 4; ++i) bits = bits << 8 | byte();
    float value;
    memcpy(&value, &bits, 4);
    return value;
  }
};

SamplerSettings any_settings(Bytes* bytes) {
  SamplerSettings s;
  s.temperature = bytes->number(0, 2);
  s.dynamic_range = bytes->number(0, 1);
  s.dynamic_exponent = bytes->number(0, 3);
  s.top_k = bytes->byte();
  s.top_p = bytes->number(0, 1);
  s.min_p = bytes->number(0, 1);
  s.typical_p = bytes->number(0, 1);
  s.top_n_sigma = bytes->number(0, 4);
  s.xtc_probability = bytes->number(0, 1);
  s.xtc_threshold = bytes->number(0, 1);
  s.repeat = bytes->number(0.1f, 2);
  s.frequency = bytes->number(-2, 2);
  s.presence = bytes->number(-2, 2);
  s.penalty_last_n = bytes->byte();
  s.mirostat_tau = bytes->byte() % 4 ? 0 : bytes->number(0, 10);
  s.mirostat_eta = bytes->number(0, 1);
  s.seed = bytes->byte();
  s.dry.multiplier = bytes->number(0, 2);
  s.dry.base = bytes->number(1, 3);
  s.dry.allowed_length = bytes->byte() % 8;
  s.dry.last_n = bytes->byte();
  s.dry.breakers = {{3, {}}, {5, {1, 2}}};
  s.order.clear();
  for (uint8_t left = bytes->byte() % (kMaxSamplerSteps + 2); left; --left)
    s.order.push_back(SamplerStep(bytes->byte() % (uint8_t(SamplerStep::Temperature) + 1)));
  for (uint8_t left = bytes->byte() % 16; left; --left) {
    const int32_t token = bytes->byte();
    s.bias.push_back({token, bytes->number(-5, 5)});
  }
  return s;
}

void check(const Status& status, int32_t token, const std::vector<float>& logits, const uint64_t* allowed) {
  if (!status.ok()) {
    if (status.code != Code::File && status.code != Code::Argument) __builtin_trap();
    return;
  }
  if (token < 0 || size_t(token) >= logits.size()) __builtin_trap();
  if (std::isnan(logits[size_t(token)]) || logits[size_t(token)] == -INFINITY) __builtin_trap();
  if (allowed && !(allowed[token / 64] >> (token % 64) & 1)) __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Bytes bytes{data, size};
  SamplerSettings settings = any_settings(&bytes);
  if (!check_sampling(settings).ok()) return 0;
  const bool masked = bytes.byte() & 1;
  std::vector<float> logits;
  while (bytes.left >= 2 && logits.size() < kMostLogits) {
    const uint32_t low = bytes.byte(), bits = (low | uint32_t(bytes.byte()) << 8) << 16;
    logits.emplace_back();
    memcpy(&logits.back(), &bits, 4);
  }
  if (logits.empty()) return 0;
  std::erase_if(settings.bias, [&](const LogitBias& bias) { return size_t(bias.token) >= logits.size(); });
  std::vector<uint64_t> mask((logits.size() + 63) / 64, 0xF0F0F0F0F0F0F0F1u);
  const uint64_t* const allowed = masked ? mask.data() : nullptr;
  Sampler first, second;
  first.set(settings);
  second.set(settings);
  std::vector<int32_t> history = {1, 2, 3, 1, 2};
  for (int32_t& token : history) token = int32_t(size_t(token) % logits.size());
  for (int draw = 0; draw < 4; ++draw) {
    int32_t a = -1, b = -1;
    const Status one = first.choose(logits, allowed, history, &a);
    const Status two = second.choose(logits, allowed, history, &b);
    check(one, a, logits, allowed);
    if (one.code != two.code || a != b) __builtin_trap();
    if (!one.ok()) return 0;
    history.push_back(a);
  }
  return 0;
}
