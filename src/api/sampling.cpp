// The functions of greta.h for sampling.
#include "api/handles.h"

using namespace greta;

static_assert(uint32_t(SamplingDefaults::kOrder) == GRETA_SAMPLING_ORDER &&
              uint32_t(SamplingDefaults::kMirostat) == GRETA_SAMPLING_MIROSTAT &&
              uint32_t(SamplingDefaults::kTopK) == GRETA_SAMPLING_TOP_K);

// Runs change(settings) -> Status on a copy of the settings. The session takes it if all are in range.
template <class Change>
static greta_status change_sampling(greta_session* session, Change change) {
  return fenced([&]() -> Status {
    GRETA_TRY(need(session, "session"));
    SamplerSettings settings = session->session->sampling();
    GRETA_TRY(change(settings));
    return session->session->set_sampling(std::move(settings));
  });
}

greta_status greta_session_sampling_clear(greta_session* session) {
  const greta_status status = change_sampling(session, [](SamplerSettings& s) { return s = {}, Status{}; });
  return status == GRETA_OK ? greta_session_grammar(session, nullptr, nullptr) : status;
}
greta_status greta_session_temperature(greta_session* session, float temperature) {
  return change_sampling(session, [=](SamplerSettings& s) { return s.temperature = temperature, Status{}; });
}
greta_status greta_session_dynamic_temperature(greta_session* session, float range, float exponent) {
  return change_sampling(session, [=](SamplerSettings& s) {
    return s.dynamic_range = range, s.dynamic_exponent = exponent, Status{};
  });
}
greta_status greta_session_top_k(greta_session* session, uint32_t k) {
  return change_sampling(session, [=](SamplerSettings& s) { return s.top_k = k, Status{}; });
}
greta_status greta_session_top_p(greta_session* session, float p) {
  return change_sampling(session, [=](SamplerSettings& s) { return s.top_p = p, Status{}; });
}
greta_status greta_session_min_p(greta_session* session, float p) {
  return change_sampling(session, [=](SamplerSettings& s) { return s.min_p = p, Status{}; });
}
greta_status greta_session_typical_p(greta_session* session, float p) {
  return change_sampling(session, [=](SamplerSettings& s) { return s.typical_p = p, Status{}; });
}
greta_status greta_session_top_n_sigma(greta_session* session, float n) {
  return change_sampling(session, [=](SamplerSettings& s) { return s.top_n_sigma = n, Status{}; });
}
greta_status greta_session_xtc(greta_session* session, float probability, float threshold) {
  return change_sampling(session, [=](SamplerSettings& s) {
    return s.xtc_probability = probability, s.xtc_threshold = threshold, Status{};
  });
}
greta_status greta_session_penalties(greta_session* session, float repeat, float frequency, float presence,
                                     uint32_t last_n) {
  return change_sampling(session, [=](SamplerSettings& s) {
    s.repeat = repeat;
    s.frequency = frequency;
    s.presence = presence;
    s.penalty_last_n = last_n;
    return Status{};
  });
}
greta_status greta_session_mirostat(greta_session* session, float tau, float eta) {
  return change_sampling(
      session, [=](SamplerSettings& s) { return s.mirostat_tau = tau, s.mirostat_eta = eta, Status{}; });
}
greta_status greta_session_seed(greta_session* session, uint64_t seed) {
  return change_sampling(session, [=](SamplerSettings& s) { return s.seed = seed, Status{}; });
}
greta_status greta_session_logit_filter(greta_session* session, greta_logit_filter filter, void* user) {
  return change_sampling(session, [=](SamplerSettings& s) { return s.filter = {filter, user}, Status{}; });
}
greta_status greta_session_sampler_order(greta_session* session, const char* order) {
  return change_sampling(session, [=](SamplerSettings& s) {
    if (order) return parse_sampler_order(order, &s.order);
    return s.order = default_sampler_order(), Status{};
  });
}

Status greta::read_bias(const int32_t* tokens, const float* biases, size_t count, uint32_t vocab,
                        std::vector<LogitBias>* out) {
  if (count) {
    GRETA_TRY(need(tokens, "tokens"));
    GRETA_TRY(need(biases, "biases"));
    if (count > vocab) return fail(Code::Argument, "%zu biases, and the model has %u tokens", count, vocab);
  }
  out->clear();
  for (size_t i = 0; i < count; ++i) {
    if (tokens[i] < 0 || uint32_t(tokens[i]) >= vocab)
      return fail(Code::Argument, "token %zu is %d, expected 0 to %u", i, tokens[i], vocab - 1);
    out->push_back({tokens[i], biases[i]});
  }
  return {};
}

greta_status greta_session_logit_bias(greta_session* session, const int32_t* tokens, const float* biases,
                                      size_t count) {
  return change_sampling(session, [=](SamplerSettings& s) {
    return read_bias(tokens, biases, count, session->session->executor().model().shape.vocab, &s.bias);
  });
}

Status greta::read_dry(const greta_dry_options& given, const Tokenizer& tokenizer, DrySettings* out) {
  greta_dry_options o;
  GRETA_TRY(read_options(&given, &o));
  if (o.breaker_count) GRETA_TRY(need(o.breakers, "breakers"));
  if (o.breaker_count > kMaxDryBreakers)
    return fail(Code::Argument, "%u sequence breakers are given, and at most %u are allowed", o.breaker_count,
                kMaxDryBreakers);
  DrySettings dry;
  dry.multiplier = o.multiplier;
  dry.last_n = o.last_n;
  if (o.base != 0) dry.base = o.base;
  if (o.allowed_length) dry.allowed_length = o.allowed_length;
  std::vector<std::string_view> texts(kDryBreakers, std::end(kDryBreakers));
  if (o.breakers) texts.clear();
  for (uint32_t i = 0; i < o.breaker_count; ++i) {
    GRETA_TRY(need(o.breakers[i], "a sequence breaker"));
    texts.push_back(o.breakers[i]);
  }
  if (dry.multiplier > 0) GRETA_TRY(find_dry_breakers(tokenizer, texts, &dry.breakers));
  *out = std::move(dry);
  return {};
}

greta_status greta_session_dry(greta_session* session, const greta_dry_options* given) {
  return change_sampling(session, [=](SamplerSettings& s) -> Status {
    GRETA_TRY(need(given, "options"));
    return read_dry(*given, *session->session->executor().model().tokenizer, &s.dry);
  });
}

greta_status greta_session_sample(greta_session* session, const float* logits, int32_t* out_token) {
  return fenced([&]() -> Status {
    GRETA_TRY(need(session, "session"));
    GRETA_TRY(need(logits, "logits"));
    GRETA_TRY(need(out_token, "out_token"));
    int32_t token = kNoToken;
    GRETA_TRY(session->session->sample(logits, true, &token));
    *out_token = token;
    return {};
  });
}

greta_status greta_session_grammar(greta_session* session, const char* gbnf, const char* root) {
  return fenced([&]() -> Status {
    GRETA_TRY(need(session, "session"));
    std::shared_ptr<const Grammar> grammar;
    const Tokenizer& tokenizer = *session->session->executor().model().tokenizer;
    if (gbnf && *gbnf) GRETA_TRY(parse_grammar(gbnf, root ? root : "root", &tokenizer, &grammar));
    session->session->set_grammar(std::move(grammar));
    return {};
  });
}

static greta_status set_schema(greta_session* session, const char* schema, bool strict) {
  return fenced([&]() -> Status {
    GRETA_TRY(need(session, "session"));
    std::shared_ptr<const Grammar> grammar;
    const SchemaOptions options{strict, session->executor->runtime->log};
    if (schema && *schema) GRETA_TRY(parse_json_schema(schema, options, &grammar));
    session->session->set_grammar(std::move(grammar));
    return {};
  });
}
greta_status greta_session_json_schema(greta_session* session, const char* schema) {
  return set_schema(session, schema, false);
}
greta_status greta_session_strict_schema(greta_session* session, const char* schema) {
  return set_schema(session, schema, true);
}

greta_status greta_model_sampling(const greta_model* model, greta_sampling_defaults* out_defaults) {
  return fenced([&]() -> Status {
    GRETA_TRY(need(model, "model"));
    const SamplingDefaults& d = model->sampling;
    greta_sampling_defaults out = {};
    out.fields = d.fields;
    out.temperature = d.temperature;
    out.top_p = d.top_p;
    out.min_p = d.min_p;
    out.repeat_penalty = d.repeat;
    out.top_k = d.top_k;
    out.repeat_last_n = d.repeat_last_n;
    out.xtc_probability = d.xtc_probability;
    out.xtc_threshold = d.xtc_threshold;
    out.mirostat = d.mirostat;
    out.mirostat_tau = d.mirostat_tau;
    out.mirostat_eta = d.mirostat_eta;
    out.order = d.order.empty() ? nullptr : d.order.c_str();
    return write_result(out, out_defaults);
  });
}
