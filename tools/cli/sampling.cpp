// The options of sampling, with llama.cpp's names and defaults, and how they set up a session.
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <random>

#include "console.h"
#include "model.h"
#include "slips.h"

namespace greta::cli {
namespace {

// An option that notes that it was given, so that the setting of the model's file does not replace it.
template <class T>
CLI::Option* add(CLI::App& app, SamplingOptions& options, const char* names, T& value, const char* about) {
  CLI::Option* option = app.add_option(names, value, about)->type_name("X");
  option->each(
      [&options, option](const std::string&) { options.given.insert(option->get_lnames().front()); });
  return option;
}

template <class T>
void add_number(CLI::App& app, SamplingOptions& options, const char* names, T& value, const char* about,
                double least, double most) {
  CLI::Option* const option = add(app, options, names, value, about)->capture_default_str();
  if constexpr (std::is_integral_v<T>)
    option->check(in_range(static_cast<int64_t>(least), static_cast<int64_t>(most)));
  else
    option->check(in_range(least, most));
}

void add_steps(CLI::App& app, SamplingOptions& o) {
  add_number(app, o, "--temp", o.temperature, "temperature; 0: always the most likely token", 0, 1e6);
  add_number(app, o, "--top-k", o.top_k, "keep the K most likely tokens; 0: all", 0, INT32_MAX);
  add_number(app, o, "--top-p", o.top_p, "keep the best tokens that together reach this probability; 1: all",
             0, 1);
  add_number(app, o, "--min-p", o.min_p, "keep tokens with this part of the probability of the best; 0: all",
             0, 1);
  add_number(app, o, "--typical", o.typical_p,
             "keep the most typical tokens that together reach this probability; 1: all", 0, 1);
  add_number(app, o, "--top-nsigma,--top-n-sigma", o.top_n_sigma,
             "keep tokens within N standard deviations of the best logit; -1: all", -1, 1e6);
  add_number(app, o, "--xtc-probability", o.xtc_probability,
             "probability that XTC drops the best tokens; 0: never", 0, 1);
  add_number(app, o, "--xtc-threshold", o.xtc_threshold,
             "probability from which XTC takes a token for a good choice", 0, 1);
  add_number(app, o, "--dynatemp-range", o.dynamic_range,
             "let the temperature move so far up and down; 0: not at all", 0, 1e6);
  add_number(app, o, "--dynatemp-exp", o.dynamic_exponent, "exponent of the moving temperature", 1e-3, 1e3);
  add_number(app, o, "--mirostat", o.mirostat, "2: use mirostat 2 in place of the other samplers; 0: do not",
             0, 2);
  add_number(app, o, "--mirostat-lr", o.mirostat_rate, "learning rate of mirostat, eta", 0, 1e3);
  add_number(app, o, "--mirostat-ent", o.mirostat_entropy, "surprise that mirostat aims at, tau, in bits", 0,
             1e3);
}

void add_penalties(CLI::App& app, SamplingOptions& o) {
  add_number(app, o, "--repeat-penalty", o.repeat_penalty, "penalty for tokens among the last ones; 1: off",
             1e-3, 1e3);
  add_number(app, o, "--presence-penalty", o.presence_penalty,
             "penalty that is taken off their logits once; 0: off", -1e6, 1e6);
  add_number(app, o, "--frequency-penalty", o.frequency_penalty,
             "penalty that is taken off their logits for each time; 0: off", -1e6, 1e6);
  add_number(app, o, "--repeat-last-n", o.repeat_last_n, "how many tokens count as the last ones; -1: all",
             -1, INT32_MAX);
  add_number(app, o, "--dry-multiplier", o.dry_multiplier,
             "strength of DRY, the penalty for longer repeats; 0: off", 0, 1e6);
  add_number(app, o, "--dry-base", o.dry_base, "how fast DRY grows with the length of the repeat", 1, 1e6);
  add_number(app, o, "--dry-allowed-length", o.dry_allowed_length,
             "longest repeat that DRY does not penalise", 1, INT32_MAX);
  add_number(app, o, "--dry-penalty-last-n", o.dry_last_n, "how many tokens DRY looks at; -1: all", -1,
             INT32_MAX);
  app.add_option("--dry-sequence-breaker", o.dry_breakers,
                 "text that no repeat reaches across; may be given several times; none: no such text")
      ->type_name("TEXT")
      ->allow_extra_args(false)
      ->take_all();
  app.add_option(
         "-l,--logit-bias", o.logit_bias,
         "change the logit of a token: ID+BIAS, ID-BIAS, or ID-inf for never; may be given several times")
      ->type_name("ID+X")
      ->allow_extra_args(false)
      ->take_all();
}

// Turns llama.cpp's letters of --sampling-seq into names.
std::string order_of_letters(const std::string& letters) {
  constexpr std::pair<char, const char*> kLetters[] = {
      {'e', "penalties"}, {'d', "dry"},   {'s', "top_n_sigma"}, {'k', "top_k"},      {'y', "typ_p"},
      {'p', "top_p"},     {'m', "min_p"}, {'x', "xtc"},         {'t', "temperature"}};
  std::string order;
  for (const char letter : letters) {
    const auto* found =
        std::find_if(std::begin(kLetters), std::end(kLetters), [=](auto& l) { return l.first == letter; });
    if (found == std::end(kLetters))
      throw Misused(format("--sampling-seq: no sampler has the letter %c", letter));
    if (!order.empty()) order += ';';
    order += found->second;
  }
  return order;
}

void set_logit_bias(greta_session* session, const std::vector<std::string>& texts) {
  std::vector<int32_t> tokens;
  std::vector<float> biases;
  for (const std::string& text : texts) {
    int32_t token = 0;
    float bias = 0;
    const char* const end = text.data() + text.size();
    const auto [sign, error] = std::from_chars(text.data(), end, token);
    const bool signed_ = error == std::errc() && sign != end && (*sign == '+' || *sign == '-');
    const auto [rest, wrong] = signed_ ? std::from_chars(sign + 1, end, bias)
                                       : std::from_chars_result{end, std::errc::invalid_argument};
    if (wrong != std::errc() || rest != end || std::isnan(bias))
      throw Misused("-l takes the id of a token, + or -, and a number, such as 15043+1 or 2-inf, not \"" +
                    text + "\"");
    tokens.push_back(token);
    biases.push_back(*sign == '-' ? -bias : bias);
  }
  check(greta_session_logit_bias(session, tokens.data(), biases.data(), tokens.size()));
}

void set_dry(greta_session* session, const SamplingOptions& options) {
  auto dry = sized<greta_dry_options>();
  std::vector<std::string> texts;
  for (const std::string& text : options.dry_breakers)
    if (text != "none") texts.push_back(unescape(text));
  std::vector<const char*> pointers;
  for (const std::string& text : texts) pointers.push_back(text.c_str());
  pointers.push_back(nullptr);  // so that there is a pointer even for a list of none
  if (!options.dry_breakers.empty()) dry.breakers = pointers.data();
  dry.breaker_count = static_cast<uint32_t>(texts.size());
  dry.multiplier = options.dry_multiplier;
  dry.base = options.dry_base;
  dry.allowed_length = options.dry_allowed_length;
  dry.last_n = options.dry_last_n < 0 ? 0 : static_cast<uint32_t>(options.dry_last_n);
  if (options.dry_last_n == 0) dry.multiplier = 0;
  check(greta_session_dry(session, &dry));
}

void set_grammar(greta_session* session, const SamplingOptions& options) {
  const std::string grammar =
      options.grammar_file.empty() ? options.grammar : read_file(options.grammar_file);
  const std::string schema = options.schema_file.empty() ? options.schema : read_file(options.schema_file);
  if (!grammar.empty() && !schema.empty()) throw Misused("a grammar and a JSON schema exclude each other");
  if (!schema.empty())
    check((options.strict_schema ? greta_session_strict_schema : greta_session_json_schema)(session,
                                                                                            schema.c_str()));
  else
    check(greta_session_grammar(session, grammar.c_str(), nullptr));
}

}  // namespace

void add_options(CLI::App& app, SamplingOptions& options) {
  add_steps(app, options);
  add_penalties(app, options);
  add(app, options, "--samplers", options.samplers, "run these samplers in this order, with ; between them")
      ->type_name("NAMES");
  add(app, options, "--sampling-seq", options.sampler_letters,
      "the same as a letter for each sampler: edskypmxt")
      ->type_name("LETTERS");
  app.add_option("--grammar", options.grammar, "hold the text to this GBNF grammar")->type_name("GBNF");
  app.add_option("--grammar-file", options.grammar_file, "take the grammar from a file")->type_name("FILE");
  app.add_option("-j,--json-schema", options.schema, "hold the text to this JSON schema; {} is any JSON")
      ->type_name("JSON");
  app.add_option("--json-schema-file", options.schema_file, "take the schema from a file")->type_name("FILE");
  app.add_flag("--strict-schema", options.strict_schema,
               "refuse a schema of which something cannot be held, rather than warn");
  app.add_option("-r,--reverse-prompt,--stop", options.stops,
                 "stop before this text; may be given several times")
      ->type_name("TEXT")
      ->allow_extra_args(false)
      ->take_all();
  add_options(app, options.draft);
  app.add_option("-s,--seed", options.seed, "seed of the draws; -1: a new one each time")
      ->type_name("S")
      ->check(in_range(int64_t{-1}, INT64_MAX))
      ->capture_default_str();
}

void use_model_sampling(const greta_model* model, SamplingOptions* options) {
  auto d = sized<greta_sampling_defaults>();
  check(greta_model_sampling(model, &d));
  std::string used;
  const auto take = [&](greta_sampling_field field, const char* name, auto& to, auto value) {
    if (!(d.fields & static_cast<uint32_t>(field)) || options->given.count(name)) return;
    to = value;
    used += format(" --%s %g", name, static_cast<double>(value));
  };
  take(GRETA_SAMPLING_TEMPERATURE, "temp", options->temperature, d.temperature);
  take(GRETA_SAMPLING_TOP_K, "top-k", options->top_k, d.top_k);
  take(GRETA_SAMPLING_TOP_P, "top-p", options->top_p, d.top_p);
  take(GRETA_SAMPLING_MIN_P, "min-p", options->min_p, d.min_p);
  take(GRETA_SAMPLING_REPEAT_PENALTY, "repeat-penalty", options->repeat_penalty, d.repeat_penalty);
  take(GRETA_SAMPLING_REPEAT_LAST_N, "repeat-last-n", options->repeat_last_n, d.repeat_last_n);
  take(GRETA_SAMPLING_XTC_PROBABILITY, "xtc-probability", options->xtc_probability, d.xtc_probability);
  take(GRETA_SAMPLING_XTC_THRESHOLD, "xtc-threshold", options->xtc_threshold, d.xtc_threshold);
  if (d.mirostat != 1) take(GRETA_SAMPLING_MIROSTAT, "mirostat", options->mirostat, d.mirostat);
  take(GRETA_SAMPLING_MIROSTAT_TAU, "mirostat-ent", options->mirostat_entropy, d.mirostat_tau);
  take(GRETA_SAMPLING_MIROSTAT_ETA, "mirostat-lr", options->mirostat_rate, d.mirostat_eta);
  if (d.order && !options->given.count("samplers") && !options->given.count("sampling-seq")) {
    options->samplers = d.order;
    used += std::string(" --samplers \"") + d.order + "\"";
  }
  if (!used.empty()) detail("the model's own settings:" + used);
}

void set_sampling(greta_session* session, const SamplingOptions& options) {
  if (options.mirostat == 1) throw Misused("--mirostat takes 2, or 0 for none");
  check(greta_session_sampling_clear(session));
  const greta_draft_options draft = draft_options(options.draft);
  check(greta_session_draft(session, &draft));
  const std::string order =
      options.sampler_letters.empty() ? options.samplers : order_of_letters(options.sampler_letters);
  if (!order.empty()) check(greta_session_sampler_order(session, order.c_str()));
  const uint32_t last_n = options.repeat_last_n < 0 ? greta_session_context(session)
                                                    : static_cast<uint32_t>(options.repeat_last_n);
  check(greta_session_penalties(session, options.repeat_penalty, options.frequency_penalty,
                                options.presence_penalty, last_n));
  if (!options.logit_bias.empty()) set_logit_bias(session, options.logit_bias);
  if (options.dry_multiplier > 0) set_dry(session, options);
  check(greta_session_top_n_sigma(session, std::max(options.top_n_sigma, 0.0f)));
  check(greta_session_top_k(session, options.top_k));
  check(greta_session_typical_p(session, std::max(options.typical_p, 1e-6f)));
  check(greta_session_top_p(session, std::max(options.top_p, 1e-6f)));  // 0 keeps the best token alone
  check(greta_session_min_p(session, options.min_p));
  check(greta_session_xtc(session, options.xtc_probability, options.xtc_threshold));
  check(greta_session_temperature(session, options.temperature));
  check(greta_session_dynamic_temperature(session, options.dynamic_range, options.dynamic_exponent));
  if (options.mirostat == 2)
    check(greta_session_mirostat(session, options.mirostat_entropy, options.mirostat_rate));
  set_grammar(session, options);
  if (options.temperature <= 0) return;  // nothing is drawn
  std::random_device random;
  const uint64_t seed = options.seed < 0 ? random() : static_cast<uint64_t>(options.seed);
  check(greta_session_seed(session, seed));
  detail(format("seed %llu", static_cast<unsigned long long>(seed)));
}

}  // namespace greta::cli
