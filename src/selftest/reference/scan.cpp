#include <algorithm>
#include <cmath>

#include "selftest/reference/reference.h"

namespace greta::reference {

using Row = std::vector<double>::const_iterator;

static Values unit_length(Row x, uint32_t width, double epsilon) {
  Values y(x, x + width);
  if (epsilon < 0) return y;
  double squares = 0;
  for (const double value : y) squares += value * value;
  for (double& value : y) value /= std::sqrt(squares + epsilon);
  return y;
}

Values scan(const ScanRows& rows, const Scan& shape, Values* state) {
  const uint32_t keys = shape.key_width, values = shape.value_width, heads = shape.heads;
  const size_t count = rows.dt.size() / heads;
  Values y;
  for (size_t t = 0; t < count; ++t)
    for (uint32_t h = 0; h < heads; ++h) {
      const uint32_t group = shape.tiled ? h % shape.groups : h / (heads / shape.groups);
      const size_t key_at = (t * shape.groups + group) * keys;
      const Values k = unit_length(rows.key.begin() + ptrdiff_t(key_at), keys, shape.epsilon);
      const Values q = unit_length(rows.query.begin() + ptrdiff_t(key_at), keys, shape.epsilon);
      const double dt = rows.dt[t * heads + h] + (rows.dt_bias.empty() ? 0 : rows.dt_bias[h]);
      const double rate = std::max(dt, 0.0) + std::log1p(std::exp(-std::fabs(dt)));
      for (uint32_t i = 0; i < values; ++i) {
        const auto s = [&](uint32_t j) -> double& { return (*state)[(size_t(h) * keys + j) * values + i]; };
        const double v = rows.value[(t * heads + h) * values + i];
        double from_key = 0, sum = 0;
        for (uint32_t j = 0; j < keys; ++j) {
          s(j) *= std::exp(rate * rows.a[shape.form == ScanForm::Selective ? size_t(h) * keys + j : h]);
          from_key += s(j) * k[j];
        }
        double change = rate * v;
        if (shape.form == ScanForm::Delta)
          change = (v - from_key) / (1 + std::exp(-rows.strength[t * heads + h]));
        for (uint32_t j = 0; j < keys; ++j) {
          s(j) += change * k[j];
          sum += s(j) * q[j];
        }
        if (shape.form == ScanForm::Delta) sum /= std::sqrt(double(keys));
        if (!rows.skip.empty()) sum += rows.skip[h] * v;
        y.push_back(sum);
      }
    }
  return y;
}

}  // namespace greta::reference
