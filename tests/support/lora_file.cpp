#include "support/lora_file.h"

#include <algorithm>
#include <cmath>

namespace greta::test {

static std::string bytes_of(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

static bool embeds(const Lora::Pair& pair) { return pair.target == "token_embd.weight"; }

std::string Lora::file() const {
  GgufWriter writer;
  writer.value("general.type", "adapter").value("general.architecture", architecture.c_str());
  writer.value("adapter.type", "lora").value("adapter.lora.alpha", alpha);
  for (const Pair& pair : pairs) {
    const uint64_t depth = pair.of[0], n = pair.of[1], count = pair.of.size() > 2 ? pair.of[2] : 1;
    std::vector<uint64_t> a = {depth, pair.rank}, b = {pair.rank, n};
    std::vector<float> of_a = pair.a, of_b = pair.b;
    if (embeds(pair)) {  // there the file's a has a row for each token, which is b of other matrices
      a = {pair.rank, n}, b = {pair.rank, depth};
      of_a = pair.b;
      of_b.assign(depth * pair.rank, 0);
      for (uint64_t r = 0; r < pair.rank; ++r)
        for (uint64_t k = 0; k < depth; ++k) of_b[k * pair.rank + r] = pair.a[r * depth + k];
    } else if (count > 1) {
      a.push_back(count), b.push_back(count);
    }
    writer.tensor(pair.target + ".lora_a", 0, a, bytes_of(of_a));
    writer.tensor(pair.target + ".lora_b", 0, b, bytes_of(of_b));
  }
  return writer.file();
}

void Lora::merge_into(ModelFile* model, float scale) const {
  for (const Pair& pair : pairs) {
    std::string& data = model->tensor(pair.target).data;
    std::vector<float> w(data.size() / sizeof(float));
    memcpy(w.data(), data.data(), data.size());
    const uint64_t depth = pair.of[0], n = pair.of[1], count = w.size() / depth / n;
    const double factor = double(scale) * double(alpha != 0 ? alpha / float(pair.rank) : 1);
    for (uint64_t m = 0; m < count; ++m)
      for (uint64_t r = 0; r < n; ++r)
        for (uint64_t c = 0; c < depth; ++c) {
          double sum = 0;
          for (uint64_t k = 0; k < pair.rank; ++k)
            sum +=
                double(pair.b[(m * n + r) * pair.rank + k]) * double(pair.a[(m * pair.rank + k) * depth + c]);
          float& weight = w[(m * n + r) * depth + c];
          weight = float(double(weight) + factor * sum);
        }
    memcpy(data.data(), w.data(), data.size());
  }
}

Lora make_lora(const ModelFile& model, const std::vector<std::string>& names, uint32_t rank, float alpha,
               uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  Lora lora{model.text("general.architecture"), alpha, {}};
  for (const std::string& name : names) {
    const ModelFile::Tensor& tensor = const_cast<ModelFile&>(model).tensor(name);
    std::vector<float> w(tensor.data.size() / sizeof(float));
    memcpy(w.data(), tensor.data.data(), tensor.data.size());
    double squares = 0;
    for (const float weight : w) squares += double(weight) * double(weight);
    const uint64_t depth = tensor.ne[0], n = tensor.ne[1], count = w.size() / depth / n;
    const float size = float(std::sqrt(squares / double(w.size()))) * 0.2f /
                       (std::sqrt(float(rank)) * (alpha != 0 ? alpha / float(rank) : 1));
    Lora::Pair pair{name, tensor.ne, rank, std::vector<float>(count * rank * depth),
                    std::vector<float>(count * n * rank)};
    for (float& value : pair.a) value = normal(random);
    for (float& value : pair.b) value = normal(random) * size;
    lora.pairs.push_back(std::move(pair));
  }
  return lora;
}

double worst_error(std::span<const float> y, std::span<const float> reference, size_t width) {
  double worst = 0;
  for (size_t at = 0; at < reference.size(); at += width) {
    double error = 0, squares = 0;
    for (size_t i = at; i < at + width; ++i) {
      const double difference = double(y[i]) - double(reference[i]);
      error += difference * difference;
      squares += double(reference[i]) * double(reference[i]);
    }
    worst = std::max(worst, error / squares);
  }
  return worst;
}

}  // namespace greta::test
