// Reads the sampling settings that a model's file recommends: llama.cpp's keys general.sampling.*.
#include <cmath>

#include "engine/sampling/sampler.h"

namespace greta {

SamplingDefaults sampling_defaults(const Gguf& gguf) {
  SamplingDefaults d;
  struct Number {
    const char* key;
    SamplingDefaults::Field field;
    float* to;
    float least, most;
  };
  float top_k = 0, last_n = 0, mirostat = 0;
  const Number numbers[] = {
      {"temp", SamplingDefaults::kTemperature, &d.temperature, 0, 1e6f},
      {"top_k", SamplingDefaults::kTopK, &top_k, 0, 1 << 24},
      {"top_p", SamplingDefaults::kTopP, &d.top_p, 1e-6f, 1},
      {"min_p", SamplingDefaults::kMinP, &d.min_p, 0, 1},
      {"penalty_repeat", SamplingDefaults::kRepeat, &d.repeat, 1e-3f, 1e3f},
      {"penalty_last_n", SamplingDefaults::kRepeatLastN, &last_n, -1, 1 << 24},
      {"xtc_probability", SamplingDefaults::kXtcProbability, &d.xtc_probability, 0, 1},
      {"xtc_threshold", SamplingDefaults::kXtcThreshold, &d.xtc_threshold, 0, 1},
      {"mirostat", SamplingDefaults::kMirostat, &mirostat, 0, 2},
      {"mirostat_tau", SamplingDefaults::kMirostatTau, &d.mirostat_tau, 0, 1e3f},
      {"mirostat_eta", SamplingDefaults::kMirostatEta, &d.mirostat_eta, 0, 1e3f},
  };
  const std::string prefix = "general.sampling.";
  for (const Number& number : numbers) {
    float value = NAN;
    if (!gguf.get_f32(prefix + number.key, &value).ok() || !(value >= number.least && value <= number.most))
      continue;
    *number.to = value;
    d.fields |= number.field;
  }
  d.top_k = uint32_t(top_k);
  d.repeat_last_n = int32_t(last_n);
  d.mirostat = uint32_t(mirostat);
  std::string_view order;
  std::vector<SamplerStep> steps;
  if (gguf.get_string(prefix + "sequence", &order).ok() && !order.empty() &&
      parse_sampler_order(order, &steps).ok()) {
    d.order = order;
    d.fields |= SamplingDefaults::kOrder;
  }
  clear_error_text();
  return d;
}

}  // namespace greta
