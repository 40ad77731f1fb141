#include <algorithm>

#include "ask.h"
#include "serve.h"

namespace greta::serve {

Ask default_ask(const Options& options, const greta_model* model, const greta_tokenizer* tokenizer) {
  Json fields = options.sampling.empty() ? Json::object() : parse_object(options.sampling);
  auto file = sized<greta_sampling_defaults>();
  if (greta_model_sampling(model, &file)) file.fields = 0;
  const auto take = [&](greta_sampling_field field, const char* name, const Json& value) {
    const bool given = std::find(options.given.begin(), options.given.end(), name) != options.given.end();
    if ((file.fields & static_cast<uint32_t>(field)) && !given) fields[name] = value;
  };
  take(GRETA_SAMPLING_TEMPERATURE, "temperature", file.temperature);
  take(GRETA_SAMPLING_TOP_K, "top_k", file.top_k);
  take(GRETA_SAMPLING_TOP_P, "top_p", file.top_p);
  take(GRETA_SAMPLING_MIN_P, "min_p", file.min_p);
  take(GRETA_SAMPLING_REPEAT_PENALTY, "repeat_penalty", file.repeat_penalty);
  take(GRETA_SAMPLING_REPEAT_LAST_N, "repeat_last_n", file.repeat_last_n);
  take(GRETA_SAMPLING_XTC_PROBABILITY, "xtc_probability", file.xtc_probability);
  take(GRETA_SAMPLING_XTC_THRESHOLD, "xtc_threshold", file.xtc_threshold);
  if (file.mirostat != 1) take(GRETA_SAMPLING_MIROSTAT, "mirostat", file.mirostat);
  take(GRETA_SAMPLING_MIROSTAT_TAU, "mirostat_tau", file.mirostat_tau);
  take(GRETA_SAMPLING_MIROSTAT_ETA, "mirostat_eta", file.mirostat_eta);
  Ask ask;
  read_sampling(Fields(fields), tokenizer, &ask);
  const bool ordered =
      std::find(options.given.begin(), options.given.end(), "samplers") != options.given.end();
  if (file.order && !ordered) ask.sampling.order = file.order;
  ask.max_tokens = options.max_tokens;
  ask.reasoning_tokens = options.reasoning_tokens;
  ask.shift = options.shift;
  ask.raw = options.raw_reasoning;
  ask.draft_kind = options.draft_kind;
  ask.draft_tokens = options.draft_tokens;
  ask.chat_template = options.chat_template;
  ask.pooling = options.pooling;
  if (!options.template_arguments.empty()) ask.template_arguments = parse_object(options.template_arguments);
  return ask;
}

}  // namespace greta::serve
