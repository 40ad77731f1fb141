// The definition of right for whole models: a llama's forward pass in float64, written to be read.
#pragma once
#include "support/tiny_model.h"

namespace greta::test {

// Weights and x of products, logits too: as they are, or rounded to float16, as the tiles on matrix units
// take them.
enum class Operands { Exact, Halves };

// What the last norm gives for each token: [tokens][width].
std::vector<std::vector<double>> reference_hidden(const TinyModel& model, const std::vector<int32_t>& tokens,
                                                  Operands operands = Operands::Exact);

// Logits after each token: [tokens][vocab].
std::vector<std::vector<double>> reference_forward(const TinyModel& model, const std::vector<int32_t>& tokens,
                                                   Operands operands = Operands::Exact);

// sum((y - ref)^2) / sum(ref^2)
double nmse(const float* y, const std::vector<double>& reference);

}  // namespace greta::test
