#include <cmath>

#include "selftest/reference/reference.h"

namespace greta::reference {

Values conv1d(const Values& x, const Values& weight, const Values& bias, uint32_t width, bool silu,
              Values* state) {
  const size_t channels = weight.size() / width, rows = x.size() / channels;
  Values all = *state;  // the rows before, then those of x
  all.insert(all.end(), x.begin(), x.end());
  Values y;
  for (size_t t = 0; t < rows; ++t)
    for (size_t c = 0; c < channels; ++c) {
      double sum = bias.empty() ? 0 : bias[c];
      for (size_t j = 0; j < width; ++j) sum += weight[c * width + j] * all[(t + j) * channels + c];
      y.push_back(silu ? sum / (1 + std::exp(-sum)) : sum);
    }
  state->assign(all.end() - ptrdiff_t((width - 1) * channels), all.end());
  return y;
}

}  // namespace greta::reference
