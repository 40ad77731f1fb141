#include "engine/model/rope.h"

#include <algorithm>
#include <cmath>

namespace greta {

namespace {

// The (fractional) index of the pair that rotates `turns` times within the original context.
double pair_of_turns(const RopeTable& rope, uint32_t width, double turns) {
  const double length = rope.scaling.original_context / (turns * 2 * M_PI);
  return width * std::log(length) / (2 * std::log(double(rope.base)));
}

// Interpolates between the plain frequency, for pairs that rotate often, and the slowed one.
double yarn_frequency(const RopeTable& rope, uint32_t width, uint32_t pair, double plain) {
  const RopeScaling& scaling = rope.scaling;
  double low = pair_of_turns(rope, width, scaling.beta_fast),
         high = pair_of_turns(rope, width, scaling.beta_slow);
  if (scaling.whole_range) low = std::floor(low), high = std::ceil(high);
  low = std::max(low, 0.0);
  high = std::min(high, width - 1.0);
  const double ramp = std::clamp((pair - low) / std::max(0.001, high - low), 0.0, 1.0);
  const double kept = (1 - ramp) * double(scaling.extrapolation);
  return plain / double(scaling.factor) * (1 - kept) + plain * kept;
}

const std::vector<float>& factors_of(const Shape& shape, const Weights& weights, uint32_t context) {
  if (shape.rope[0].scaling.kind != RopeScaling::Kind::Long) return weights.rope_factors;
  return long_rope(shape, context) ? weights.long_factors : weights.short_factors;
}

// (1, 1) times c + is gives (c - s, c + s), which are to be two neighbours of a position's embedding.
void fill_learned(const std::vector<float>& embedding, uint64_t values, float* table) {
  for (uint64_t i = 0; i < values; i += 2) {
    const double first = double(embedding[i]), second = double(embedding[i + 1]);
    *table++ = float((first + second) / 2);
    *table++ = float((second - first) / 2);
  }
}

}  // namespace

bool long_rope(const Shape& shape, uint32_t context) {
  const RopeScaling& scaling = shape.rope[0].scaling;
  return scaling.kind == RopeScaling::Kind::Long && context > scaling.original_context;
}

uint64_t rope_tables_bytes(const Shape& shape, uint32_t context) {
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < shape.rope_tables; ++i) bytes += rope_table_bytes(shape.rope[i], context);
  return bytes;
}

void fill_rope_table(const Shape& shape, const Weights& weights, uint32_t index, uint32_t context,
                     float* table) {
  const RopeTable& rope = shape.rope[index];
  const uint32_t width = rope.width, pairs = width / 2;
  if (rope.learned) return fill_learned(weights.position_embedding, uint64_t(context) * width, table);
  const std::vector<float>& factors = factors_of(shape, weights, context);
  std::vector<double> frequency(pairs);
  for (uint32_t i = 0; i < pairs; ++i) {
    frequency[i] = std::pow(double(rope.base), -2.0 * i / width);
    if (rope.scaling.kind == RopeScaling::Kind::Linear) frequency[i] /= double(rope.scaling.factor);
    if (rope.scaling.kind == RopeScaling::Kind::Yarn)
      frequency[i] = yarn_frequency(rope, width, i, frequency[i]);
    if (rope.factors && !factors.empty()) frequency[i] /= double(factors[i]);
  }
  const double size = double(rope.scaling.attention_factor);
  for (uint32_t position = 0; position < context; ++position) {
    double grown = size;
    if (rope.temperature > 0)
      grown *= 1 + double(rope.temperature) *
                       std::log1p(std::floor(position / double(rope.scaling.original_context)));
    for (uint32_t i = 0; i < pairs; ++i) {
      const double angle = position * frequency[i];
      *table++ = float(std::cos(angle) * grown);
      *table++ = float(std::sin(angle) * grown);
    }
  }
}

}  // namespace greta
