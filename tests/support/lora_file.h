// Makes LoRA files for small models, and the same models with the adapter merged into their weights.
#pragma once
#include <random>

#include "support/gguf_writer.h"
#include "support/model_file.h"

namespace greta::test {

struct Lora {
  struct Pair {
    std::string target;
    std::vector<uint64_t> of;  // the shape of the model's tensor
    uint32_t rank = 0;
    std::vector<float> a, b;  // a [matrices][rank][depth], b [matrices][n][rank]
  };
  std::string architecture;
  float alpha = 0;
  std::vector<Pair> pairs;

  std::string file() const;
  // Adds scale * alpha / rank * b a to the model's weights.
  void merge_into(ModelFile* model, float scale) const;
};

// Random matrices for the f32 tensors of these names. What they add is about a fifth of the weights.
Lora make_lora(const ModelFile& model, const std::vector<std::string>& names, uint32_t rank, float alpha,
               uint32_t seed);

// The relative squared error of y at any position of [positions][width].
double worst_error(std::span<const float> y, std::span<const float> reference, size_t width);

}  // namespace greta::test
