#include "models/reference_transformer.h"

#include <cmath>

#include "selftest/reference/reference.h"

namespace greta::test {

namespace {

using Vector = std::vector<double>;

Vector norm(const Vector& x, const std::vector<float>& gain, double epsilon) {
  double squares = 0;
  for (double v : x) squares += v * v;
  const double scale = 1 / std::sqrt(squares / double(x.size()) + epsilon);
  Vector y(x.size());
  for (size_t i = 0; i < x.size(); ++i) y[i] = x[i] * scale * double(gain[i]);
  return y;
}

Vector multiply(const std::vector<float>& weight, Vector x, Operands operands) {
  Vector w(weight.begin(), weight.end()), y(weight.size() / x.size());
  if (operands == Operands::Halves) w = reference::halves(w), x = reference::halves(x);
  for (size_t n = 0; n < y.size(); ++n)
    for (size_t k = 0; k < x.size(); ++k) y[n] += w[n * x.size() + k] * x[k];
  return y;
}

void rotate(Vector* x, const TinyModel& m, uint32_t heads, uint32_t position) {
  const TinyShape& s = m.shape;
  const uint32_t width = s.rope_width ? s.rope_width : s.head();
  for (uint32_t h = 0; h < heads; ++h)
    for (uint32_t i = 0; i < width / 2; ++i) {
      double frequency = std::pow(double(s.rope_base), -2.0 * i / width) / double(s.rope_scale);
      if (!m.rope_factors.empty()) frequency /= double(m.rope_factors[i]);
      const double angle = position * frequency;
      double& a = (*x)[h * s.head() + 2 * i];
      double& b = (*x)[h * s.head() + 2 * i + 1];
      const double before = a;
      a = before * std::cos(angle) - b * std::sin(angle);
      b = before * std::sin(angle) + b * std::cos(angle);
    }
}

// Attention of one token over all keys and values so far, its own among them.
Vector attend(const TinyShape& s, const Vector& q, const std::vector<Vector>& keys,
              const std::vector<Vector>& values) {
  const uint32_t d = s.head();
  Vector y(s.heads * d);
  for (uint32_t h = 0; h < s.heads; ++h) {
    const uint32_t kv = h / (s.heads / s.kv_heads);
    Vector p(keys.size());
    double top = -INFINITY, sum = 0;
    for (size_t t = 0; t < keys.size(); ++t) {
      for (uint32_t i = 0; i < d; ++i) p[t] += q[h * d + i] * keys[t][kv * d + i];
      p[t] /= std::sqrt(double(d));
      top = std::max(top, p[t]);
    }
    for (double& v : p) sum += v = std::exp(v - top);
    for (size_t t = 0; t < keys.size(); ++t)
      for (uint32_t i = 0; i < d; ++i) y[h * d + i] += p[t] / sum * values[t][kv * d + i];
  }
  return y;
}

void add(Vector* x, const Vector& y) {
  for (size_t i = 0; i < y.size(); ++i) (*x)[i] += y[i];
}

}  // namespace

std::vector<std::vector<double>> reference_hidden(const TinyModel& m, const std::vector<int32_t>& tokens,
                                                  Operands operands) {
  const TinyShape& s = m.shape;
  const auto product = [&](const std::vector<float>& weight, const Vector& x) {
    return multiply(weight, x, operands);
  };
  std::vector<std::vector<Vector>> keys(s.layers), values(s.layers);
  std::vector<Vector> states;
  for (uint32_t position = 0; position < tokens.size(); ++position) {
    const auto row = m.embedding.begin() + size_t(tokens[position]) * s.width;
    Vector h(row, row + s.width);
    for (uint32_t l = 0; l < s.layers; ++l) {
      const TinyLayer& layer = m.layers[l];
      const Vector x = norm(h, layer.attention_norm, s.epsilon);
      Vector q = product(layer.query, x), k = product(layer.key, x);
      rotate(&q, m, s.heads, position);
      rotate(&k, m, s.kv_heads, position);
      keys[l].push_back(k);
      values[l].push_back(product(layer.value, x));
      add(&h, product(layer.output, attend(s, q, keys[l], values[l])));
      const Vector z = norm(h, layer.ffn_norm, s.epsilon);
      Vector gate = product(layer.gate, z);
      const Vector up = product(layer.up, z);
      for (size_t i = 0; i < gate.size(); ++i) gate[i] = gate[i] / (1 + std::exp(-gate[i])) * up[i];
      add(&h, product(layer.down, gate));
    }
    states.push_back(norm(h, m.output_norm, s.epsilon));
  }
  return states;
}

std::vector<std::vector<double>> reference_forward(const TinyModel& m, const std::vector<int32_t>& tokens,
                                                   Operands operands) {
  std::vector<Vector> rows = reference_hidden(m, tokens, operands);
  for (Vector& row : rows) row = multiply(m.output, row, operands);
  return rows;
}

double nmse(const float* y, const std::vector<double>& reference) {
  double error = 0, size = 0;
  for (size_t i = 0; i < reference.size(); ++i) {
    error += (y[i] - reference[i]) * (y[i] - reference[i]);
    size += reference[i] * reference[i];
  }
  return error / size;
}

}  // namespace greta::test
