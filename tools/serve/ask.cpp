#include "ask.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "common/tokens.h"

namespace greta::serve {
namespace {

struct NumberField {
  const char* name;
  double Sampling::* value;
  double least, most;
};
constexpr NumberField kNumbers[] = {
    {"temperature", &Sampling::temperature, 0, 1e6},
    {"dynatemp_range", &Sampling::dynatemp_range, 0, 1e6},
    {"dynatemp_exponent", &Sampling::dynatemp_exponent, 1e-3, 1e3},
    {"top_p", &Sampling::top_p, 0, 1},
    {"min_p", &Sampling::min_p, 0, 1},
    {"typical_p", &Sampling::typical_p, 0, 1},
    {"top_n_sigma", &Sampling::top_n_sigma, -1, 1e6},
    {"xtc_probability", &Sampling::xtc_probability, 0, 1},
    {"xtc_threshold", &Sampling::xtc_threshold, 0, 1},
    {"repeat_penalty", &Sampling::repeat_penalty, 1e-3, 1e3},
    {"repetition_penalty", &Sampling::repeat_penalty, 1e-3, 1e3},  // vLLM's name
    {"frequency_penalty", &Sampling::frequency_penalty, -1e6, 1e6},
    {"presence_penalty", &Sampling::presence_penalty, -1e6, 1e6},
    {"dry_multiplier", &Sampling::dry_multiplier, 0, 1e6},
    {"dry_base", &Sampling::dry_base, 1, 1e6},
    {"mirostat_tau", &Sampling::mirostat_tau, 0, 1e3},
    {"mirostat_eta", &Sampling::mirostat_eta, 0, 1e3},
};

struct WholeField {
  const char* name;
  int64_t Sampling::* value;
  int64_t least, most;
};
constexpr WholeField kWholes[] = {
    {"top_k", &Sampling::top_k, -1, INT32_MAX},
    {"repeat_last_n", &Sampling::repeat_last_n, -1, INT32_MAX},
    {"dry_allowed_length", &Sampling::dry_allowed_length, 0, INT32_MAX},
    {"dry_penalty_last_n", &Sampling::dry_penalty_last_n, -1, INT32_MAX},
    {"mirostat", &Sampling::mirostat, 0, 2},
    {"seed", &Sampling::seed, INT64_MIN, INT64_MAX},
};

constexpr size_t kMostStops = 64, kMostBreakers = 64;
constexpr uint32_t kMostGuesses = 7;

void add_bias(const Fields& fields, const greta_tokenizer* tokenizer, const Json& given, const Json& bias,
              Sampling* sampling) {
  float value = -INFINITY;
  if (bias.is_number())
    value = bias.get<float>();
  else if (!(bias.is_boolean() && !bias.get<bool>()))
    fields.wrong("logit_bias", "an object or a list of tokens and numbers, or false for never", bias);
  if (value < -1e6F) value = -INFINITY;
  if (std::isnan(value) || value > 1e6F) fields.wrong("logit_bias", "at most 1000000 for a token", bias);
  std::vector<int32_t> tokens;
  if (given.is_number_integer()) {
    const auto token = given.get<int64_t>();
    if (token < 0 || token >= greta_tokenizer_size(tokenizer))
      fields.wrong("logit_bias", "for tokens of the vocabulary", given);
    tokens.push_back(static_cast<int32_t>(token));
  } else if (given.is_string()) {
    tokens = encode(tokenizer, given.get_ref<const std::string&>(), 0);
  } else {
    fields.wrong("logit_bias", "for ids of tokens or texts", given);
  }
  for (const int32_t token : tokens) {
    sampling->bias_tokens.push_back(token);
    sampling->biases.push_back(value);
  }
}

// OpenAI's {"15043": 1.5}, or llama.cpp's [[15043, 1.5], ["text", false]].
void read_bias(const Fields& fields, const greta_tokenizer* tokenizer, Sampling* sampling) {
  const Json* bias = fields.find("logit_bias");
  if (!bias) return;
  sampling->bias_tokens.clear(), sampling->biases.clear();
  if (bias->is_array()) {
    for (const Json& pair : *bias) {
      if (!pair.is_array() || pair.size() != 2)
        fields.wrong("logit_bias", "a list of pairs of a token and a number", pair);
      add_bias(fields, tokenizer, pair[0], pair[1], sampling);
    }
    return;
  }
  if (!bias->is_object()) fields.wrong("logit_bias", "an object", *bias);
  for (const auto& [key, value] : bias->items()) {
    if (key.empty() || key.size() > 9 || key.find_first_not_of("0123456789") != key.npos)
      fields.wrong("logit_bias", "for ids of tokens", key);
    add_bias(fields, tokenizer, Json(std::stoll(key)), value, sampling);
  }
}

void read_order(const Fields& fields, Sampling* sampling) {
  const Json* samplers = fields.find("samplers");
  if (!samplers) return;
  sampling->order.clear();
  for (const std::string& name : texts_of(fields, "samplers", 32))
    sampling->order += (sampling->order.empty() ? "" : ";") + name;
  if (sampling->order.empty()) sampling->order = ";";  // none at all
}

// The text of an answer: a grammar or a schema, of OpenAI's form or llama.cpp's.
void read_form(const Fields& fields, Sampling* sampling) {
  if (const std::string* grammar = fields.text("grammar")) sampling->grammar = *grammar;
  if (const Json* schema = fields.find("json_schema")) {
    if (!schema->is_object() && !schema->is_boolean()) fields.wrong("json_schema", "an object", *schema);
    sampling->schema = dump(*schema);
  }
  const Json* form = fields.object("response_format");
  if (!form) return;
  const Fields inner(*form, fields.path("response_format."));
  const std::string* type = inner.word("type", {"text", "json_object", "json_schema"});
  if (!type) throw Refused(400, "response_format.type is missing", "response_format.type");
  if (*type == "text") return;
  const Json* schema = inner.object("schema");  // llama.cpp's form has it here
  if (*type == "json_schema") {
    if (const Json* named = inner.object("json_schema")) {
      const Fields names(*named, inner.path("json_schema."));
      schema = names.find("schema");
      sampling->strict = names.flag("strict").value_or(false);
    }
    if (!schema)
      throw Refused(400, "response_format.json_schema.schema is missing", "response_format.json_schema");
  }
  sampling->schema = schema ? dump(*schema) : R"({"type":"object"})";
}

struct Drafter {
  const char* name;
  greta_draft_kind kind;
};
constexpr Drafter kDrafters[] = {{"none", GRETA_DRAFT_NONE},
                                 {"ngram", GRETA_DRAFT_TEXT},
                                 {"ngram-simple", GRETA_DRAFT_TEXT},
                                 {"draft-mtp", GRETA_DRAFT_HEAD},
                                 {"draft-simple", GRETA_DRAFT_MODEL}};

// Who guesses tokens, and how many. The text can always be asked, others only where the server has them.
void read_draft(const Fields& fields, Ask* ask) {
  constexpr const char* kType = "speculative.type";
  if (const auto most = fields.whole("speculative.n_max", 0, INT32_MAX))
    ask->draft_tokens = static_cast<uint32_t>(std::min<int64_t>(*most, kMostGuesses));
  std::vector<std::string_view> names;
  for (const Drafter& each : kDrafters) names.emplace_back(each.name);
  const std::string* name = fields.word(kType, names);
  if (!name) return;
  const auto at = std::find(names.begin(), names.end(), *name) - names.begin();
  const greta_draft_kind kind = kDrafters[at].kind;
  if (kind > GRETA_DRAFT_TEXT && kind != ask->draft_kind)
    throw Refused(400, "the server was not started with --spec-type " + *name, kType);
  if (ask->draft_kind == GRETA_DRAFT_NONE && !fields.has("speculative.n_max"))
    ask->draft_tokens = kMostGuesses;
  ask->draft_kind = kind;
}

}  // namespace

void read_sampling(const Fields& fields, const greta_tokenizer* tokenizer, Ask* ask) {
  Sampling& sampling = ask->sampling;
  if (const auto sampled = fields.flag("post_sampling_probs")) ask->sampled_logprobs = *sampled;
  for (const NumberField& field : kNumbers)
    if (const auto value = fields.number(field.name, field.least, field.most)) sampling.*field.value = *value;
  for (const WholeField& field : kWholes)
    if (const auto value = fields.whole(field.name, field.least, field.most)) sampling.*field.value = *value;
  if (sampling.mirostat == 1) fields.wrong("mirostat", "2, or 0 for none", Json(1));
  if (fields.has("dry_sequence_breakers")) {
    sampling.own_breakers = true;
    sampling.dry_breakers = texts_of(fields, "dry_sequence_breakers", kMostBreakers);
  }
  read_bias(fields, tokenizer, &sampling);
  read_order(fields, &sampling);
  read_form(fields, &sampling);
  if (!sampling.grammar.empty() && !sampling.schema.empty())
    throw Refused(400, "a grammar and a JSON schema exclude each other", "grammar");
  if (fields.has("stop")) ask->stops = texts_of(fields, "stop", kMostStops);
  std::erase(ask->stops, "");
  for (const std::string& stop : ask->stops)
    if (stop.find('\0') != stop.npos) fields.wrong("stop", "without U+0000", stop);
  if (const auto ignore = fields.flag("ignore_eos")) ask->ignore_end = *ignore;
  if (const auto cache = fields.flag("cache_prompt")) ask->no_cache = !*cache;
  if (const std::string* salt = fields.text("cache_salt")) {
    ask->salt = 14695981039346656037ULL;  // FNV-1a
    for (const char letter : *salt) ask->salt = (ask->salt ^ static_cast<uint8_t>(letter)) * 1099511628211ULL;
    if (salt->empty()) ask->salt = 0;
  }
  read_lora(fields, ask);
  read_draft(fields, ask);
  if (const auto slot = fields.whole("id_slot", -1, INT32_MAX)) ask->slot = *slot;
  if (const auto priority = fields.whole("priority", -2, 2)) ask->priority = static_cast<int32_t>(*priority);
  for (const char* name : {"thinking_budget_tokens", "reasoning_budget"})
    if (const auto most = fields.whole(name, -1, INT32_MAX)) ask->reasoning_tokens = *most;
}

void read_max_tokens(const Fields& fields, const std::vector<const char*>& names, bool none, Ask* ask) {
  for (const char* name : names) {
    const auto most = fields.whole(name, -2, INT32_MAX);
    if (!most) continue;
    if (*most == 0 && !none) fields.wrong(name, "at least 1, or -1 for no limit", Json(0));
    ask->max_tokens = *most == -2 ? -1 : *most;
    ask->no_answer = *most == 0;
    return;
  }
}

namespace {

// The options and what they point to.
struct Wanted {
  greta_request_options options = sized<greta_request_options>();
  greta_sampling_options sampling = sized<greta_sampling_options>();
  greta_dry_options dry = sized<greta_dry_options>();
  greta_chat_options chat = sized<greta_chat_options>();
  greta_embed_options embed = sized<greta_embed_options>();
  greta_draft_options draft = sized<greta_draft_options>();
  std::vector<greta_message> messages;
  std::vector<const char*> stops, breakers;
  std::vector<const greta_adapter*> adapters;
  std::vector<float> adapter_scales;
  std::string arguments;
};

void set_sampling(const Sampling& from, uint64_t seed, Wanted* wanted) {
  greta_sampling_options& to = wanted->sampling;
  const auto small = [](double value) { return static_cast<float>(value); };
  to.temperature = small(from.temperature);
  to.dynamic_range = small(from.dynatemp_range);
  to.dynamic_exponent = small(from.dynatemp_exponent);
  to.top_k = from.top_k < 0 ? 0 : static_cast<uint32_t>(from.top_k);
  to.top_p = std::max(small(from.top_p), 1e-6F);  // 0 keeps the best token alone
  to.min_p = small(from.min_p);
  to.typical_p = std::max(small(from.typical_p), 1e-6F);
  to.top_n_sigma = std::max(small(from.top_n_sigma), 0.0F);
  to.xtc_probability = small(from.xtc_probability);
  to.xtc_threshold = small(from.xtc_threshold);
  to.repeat_penalty = small(from.repeat_penalty);
  to.frequency_penalty = small(from.frequency_penalty);
  to.presence_penalty = small(from.presence_penalty);
  to.penalty_last_n = from.repeat_last_n < 0 ? INT32_MAX : static_cast<uint32_t>(from.repeat_last_n);
  if (from.mirostat == 2) {
    to.mirostat_tau = small(from.mirostat_tau);
    to.mirostat_eta = small(from.mirostat_eta);
  }
  if (from.dry_multiplier > 0 && from.dry_penalty_last_n != 0) {
    wanted->dry.multiplier = small(from.dry_multiplier);
    wanted->dry.base = small(from.dry_base);
    wanted->dry.allowed_length = static_cast<uint32_t>(from.dry_allowed_length);
    wanted->dry.last_n = from.dry_penalty_last_n < 0 ? 0 : static_cast<uint32_t>(from.dry_penalty_last_n);
    for (const std::string& each : from.dry_breakers) wanted->breakers.push_back(each.c_str());
    wanted->dry.breaker_count = static_cast<uint32_t>(wanted->breakers.size());
    wanted->breakers.push_back(nullptr);  // so that there is a pointer even for a list of none
    if (from.own_breakers) wanted->dry.breakers = wanted->breakers.data();
    to.dry = &wanted->dry;
  }
  to.seed = seed;
  to.bias_tokens = from.bias_tokens.data();
  to.biases = from.biases.data();
  to.bias_count = from.biases.size();
  if (!from.order.empty()) to.order = from.order == ";" ? "" : from.order.c_str();
  if (!from.grammar.empty()) to.grammar = from.grammar.c_str();
  if (!from.schema.empty()) to.json_schema = from.schema.c_str();
  to.strict_schema = from.strict ? 1 : 0;
  wanted->options.sampling = &to;
}

void set_prompt(const Ask& ask, Wanted* wanted) {
  greta_request_options& options = wanted->options;
  if (ask.messages.empty()) {
    options.tokens = ask.tokens.data();
    options.token_count = ask.tokens.size();
    return;
  }
  for (const std::string& message : ask.messages)
    wanted->messages.push_back({nullptr, nullptr, message.c_str()});
  options.messages = wanted->messages.data();
  options.message_count = wanted->messages.size();
  wanted->chat.raw = ask.raw ? 1 : 0;
  wanted->chat.join_system = 1;
  wanted->chat.continue_answer = ask.continue_answer ? 1 : 0;
  if (!ask.chat_template.empty()) wanted->chat.chat_template = ask.chat_template.c_str();
  if (!ask.tools.empty()) wanted->chat.tools = ask.tools.c_str();
  if (!ask.tool_choice.empty()) wanted->chat.tool_choice = ask.tool_choice.c_str();
  wanted->chat.one_call = ask.one_call ? 1 : 0;
  if (ask.template_arguments.is_object()) {
    wanted->arguments = dump(ask.template_arguments);
    wanted->chat.arguments = wanted->arguments.c_str();
  }
  options.chat = &wanted->chat;
  if (ask.reasoning_tokens >= 0) {
    options.limit_reasoning = 1;
    options.reasoning_tokens = static_cast<uint32_t>(ask.reasoning_tokens);
  }
}

}  // namespace

namespace {

void set_all(const Ask& ask, uint64_t seed, Wanted* wanted) {
  greta_request_options& options = wanted->options;
  set_prompt(ask, wanted);
  choose_adapters(ask, &wanted->adapters, &wanted->adapter_scales);
  options.adapters = wanted->adapters.data();
  options.adapter_scales = wanted->adapter_scales.data();
  options.adapter_count = wanted->adapters.size();
  options.prompt_events = ask.prompt_events;
  options.call_pieces = ask.call_pieces ? 1 : 0;
  options.salt = ask.salt;
  options.no_cache = ask.no_cache ? 1 : 0;
  options.priority = ask.priority;
  if (ask.embed) {
    wanted->embed.pooling = ask.pooling;
    wanted->embed.raw = ask.embed_raw ? 1 : 0;
    options.embed = &wanted->embed;
    return;
  }
  set_sampling(ask.sampling, seed, wanted);
  for (const std::string& stop : ask.stops) wanted->stops.push_back(stop.c_str());
  options.stop_strings = wanted->stops.data();
  options.stop_count = wanted->stops.size();
  options.max_tokens = ask.max_tokens > 0 ? static_cast<uint32_t>(ask.max_tokens) : 0;
  options.ignore_end = ask.ignore_end ? 1 : 0;
  options.no_answer = ask.no_answer ? 1 : 0;
  options.prompt_logprobs = ask.prompt_logprobs ? 1 : 0;
  options.logprobs = ask.logprobs >= 0 ? 1 : 0;
  options.top_logprobs = ask.logprobs > 0 ? static_cast<uint32_t>(ask.logprobs) : 0;
  options.sampled_logprobs = ask.logprobs >= 0 && ask.sampled_logprobs ? 1 : 0;
  if (ask.draft_kind != GRETA_DRAFT_NONE && ask.draft_tokens > 0) {
    wanted->draft.kind = ask.draft_kind;
    wanted->draft.depth = ask.draft_tokens;
    if (ask.draft_kind == GRETA_DRAFT_MODEL) wanted->draft.executor = ask.draft_executor;
    options.draft = &wanted->draft;
  }
  options.shift = ask.shift ? 1 : 0;
  options.keep_tokens = static_cast<uint32_t>(std::max<int64_t>(ask.keep_tokens, 0));
}

}  // namespace

greta_status add_request(greta_service* service, const Ask& ask, uint64_t seed, void* user,
                         greta_request** out) {
  Wanted wanted;
  set_all(ask, seed, &wanted);
  wanted.options.user = user;
  return greta_service_add(service, &wanted.options, out);
}

greta_status make_prompt(greta_service* service, const Ask& ask, Prompt* out) {
  Wanted wanted;
  set_all(ask, 0, &wanted);
  const auto take = [](void* user, const greta_prompt* prompt) {
    auto* to = static_cast<Prompt*>(user);
    to->text.assign(prompt->text, prompt->bytes);
    to->tokens.assign(prompt->tokens, prompt->tokens + prompt->token_count);
    to->cached_tokens = prompt->cached_tokens;
    return 0;
  };
  return greta_service_prompt(service, &wanted.options, take, out);
}

std::vector<int32_t> encode(const greta_tokenizer* tokenizer, std::string_view text, uint32_t flags) {
  std::vector<int32_t> tokens;
  if (tools::encode(tokenizer, text, flags, &tokens)) throw Refused(400, greta_error_text());
  return tokens;
}

std::string decode(const greta_tokenizer* tokenizer, const int32_t* tokens, size_t count) {
  std::string text;
  if (tools::decode(tokenizer, tokens, count, &text)) throw Refused(400, greta_error_text());
  return text;
}

std::string piece_of(const greta_tokenizer* tokenizer, int32_t token) {
  if (token < 0) return "";
  std::string text(64, '\0');
  size_t bytes = 0;
  for (int round = 0; round < 2; ++round) {
    if (greta_tokenizer_token(tokenizer, token, text.data(), text.size(), &bytes, nullptr)) return "";
    if (bytes <= text.size()) break;
    text.resize(bytes);
  }
  text.resize(bytes);
  return text;
}

uint64_t random_number() {
  static thread_local std::mt19937_64 random{std::random_device{}() * 0x9e3779b97f4a7c15ULL +
                                             std::random_device{}()};
  return random();
}

std::string random_id(const char* prefix) {
  constexpr char kLetters[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  std::string id = prefix;
  for (int i = 0; i < 24; ++i) id += kLetters[random_number() % 62];
  return id;
}

bool is_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const size_t length = lead < 0x80   ? 1
                          : lead < 0xc2 ? 0
                          : lead < 0xe0 ? 2
                          : lead < 0xf0 ? 3
                          : lead < 0xf5 ? 4
                                        : 0;
    if (length == 0 || i + length > text.size()) return false;
    for (size_t k = 1; k < length; ++k)
      if ((static_cast<unsigned char>(text[i + k]) & 0xc0) != 0x80) return false;
    i += length;
  }
  return true;
}

}  // namespace greta::serve
