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

// (1, 1) times c + is gives (c - s, c + s), which are to be two neighbours of a position's values.
void fill_values(double first, double second, float* pair) {
  pair[0] = float((first + second) / 2);
  pair[1] = float((second - first) / 2);
}

// The slopes of heads, as Press, Smith, Lewis, "Train Short, Test Long", arXiv 2108.12409, choose them:
// powers of 2^(-8 / n) for n heads, and where n is no power of two, odd ones of the root of that for the
// rest.
double slope_of(uint32_t head, uint32_t heads) {
  uint32_t whole = 1;
  while (2 * whole <= heads) whole *= 2;
  if (head < whole) return std::exp2(-8.0 * (head + 1) / whole);
  return std::exp2(-4.0 * (2 * (head - whole) + 1) / whole);
}

// Three numbers that float16 holds add up to x.
void split_in_halves(double x, double (&parts)[4]) {
  for (double& part : parts) part = 0;
  for (uint32_t i = 0; i < 3 && x != 0; ++i) {
    const double step = std::exp2(std::max(std::floor(std::log2(std::abs(x))), -14.0) - 10);
    parts[i] = std::round(x / step) * step;
    x -= parts[i];
  }
}

// A score is the product of a query's and a key's marks times the scale, so queries have the unit over the
// scale. By the scale and log2(e), which some kernels multiply queries with before they round them to
// float16, that is a power of two.
constexpr double kSlopeUnit = 512 * M_LN2;

void fill_slopes(const RopeTable& rope, const LayerShape& layer, uint32_t position, float* table) {
  std::fill_n(table, rope.width, 0.0f);
  for (uint32_t h = 0; h < layer.kv_heads; ++h) {
    double parts[4];
    split_in_halves(slope_of(h, layer.kv_heads) * position / kSlopeUnit, parts);
    for (uint32_t i = 0; i < 4; i += 2) fill_values(parts[i], parts[i + 1], table + h * layer.marks + i);
  }
}

// Scores of two positions of one chunk get this, and of two neighbouring chunks less than nothing by as much,
// which no exponential of float32 shows. A window sees to chunks that are further apart.
constexpr double kSameChunk = 64;

void fill_marks(const Shape& shape, const RopeTable& rope, uint32_t position, float* table) {
  using Kind = RopeTable::Kind;
  const LayerShape& layer =
      *std::ranges::find_if(shape.each, [](const LayerShape& l) { return l.marks != 0; });
  if (rope.kind == Kind::Slopes) return fill_slopes(rope, layer, position, table);
  const double scale = double(shape.attention_scale);
  double value = kSlopeUnit / scale;
  if (rope.kind == Kind::Chunks) {
    value = std::sqrt(kSameChunk / (layer.marks * scale));
    if (position / rope.chunk % 2) value = -value;
  }
  for (uint32_t i = 0; i < rope.width; i += 2) fill_values(value, value, table + i);
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
  const std::vector<float>& embedding = weights.position_embedding;
  using Kind = RopeTable::Kind;
  if (rope.kind == Kind::Positions) {
    for (uint64_t i = 0; i < uint64_t(context) * width; i += 2)
      fill_values(double(embedding[i]), double(embedding[i + 1]), table + i);
    return;
  }
  if (rope.kind != Kind::Turns && rope.kind != Kind::Still) {
    for (uint32_t p = 0; p < context; ++p) fill_marks(shape, rope, p, table + uint64_t(p) * width);
    return;
  }
  const std::vector<float>& factors = factors_of(shape, weights, context);
  std::vector<double> frequency(pairs);
  for (uint32_t i = 0; i < pairs; ++i) {
    frequency[i] = std::pow(double(rope.base), -2.0 * i / width);
    if (rope.scaling.kind == RopeScaling::Kind::Linear) frequency[i] /= double(rope.scaling.factor);
    if (rope.scaling.kind == RopeScaling::Kind::Yarn)
      frequency[i] = yarn_frequency(rope, width, i, frequency[i]);
    if (rope.factors && !factors.empty()) frequency[i] /= double(factors[i]);
    if (rope.kind == Kind::Still) frequency[i] = 0;
  }
  const double size = double(rope.scaling.attention_factor);
  for (uint32_t position = 0; position < context; ++position) {
    double grown = size;
    if (rope.temperature > 0)
      grown *= 1 + double(rope.temperature) * std::log1p(std::floor((double(position) + rope.offset) /
                                                                    double(rope.scaling.original_context)));
    for (uint32_t i = 0; i < pairs; ++i) {
      const double angle = position * frequency[i];
      *table++ = float(std::cos(angle) * grown);
      *table++ = float(std::sin(angle) * grown);
    }
  }
}

}  // namespace greta
