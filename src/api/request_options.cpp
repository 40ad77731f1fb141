#include "api/request_options.h"

namespace greta {

namespace {

void set_if(float given, float* to) {
  if (given != 0) *to = given;
}

Status read_grammar(const greta_sampling_options& o, const greta_model& model, RequestOptions* out) {
  const Tokenizer& tokenizer = *model.model.tokenizer;
  SchemaOptions schema{.log = model.runtime->log};
  GRETA_TRY(read_flag(o.strict_schema, "strict_schema", &schema.strict));
  if (o.grammar && o.json_schema)
    return fail(Code::Argument, "grammar and json_schema are both set: set at most one of them");
  if (o.json_schema && *o.json_schema) return parse_json_schema(o.json_schema, schema, &out->grammar);
  if (!o.grammar || !*o.grammar) return {};
  return parse_grammar(o.grammar, o.grammar_root ? o.grammar_root : "root", &tokenizer, &out->grammar);
}

Status read_sampling(const greta_model& model, const greta_sampling_options* given, RequestOptions* out) {
  greta_sampling_options o;
  GRETA_TRY(read_options(given, &o));
  SamplerSettings& s = out->sampling;
  s.temperature = o.temperature;
  s.dynamic_range = o.dynamic_range;
  set_if(o.dynamic_exponent, &s.dynamic_exponent);
  s.top_k = o.top_k;
  set_if(o.top_p, &s.top_p);
  s.min_p = o.min_p;
  set_if(o.typical_p, &s.typical_p);
  s.top_n_sigma = o.top_n_sigma;
  s.xtc_probability = o.xtc_probability;
  set_if(o.xtc_threshold, &s.xtc_threshold);
  set_if(o.repeat_penalty, &s.repeat);
  s.frequency = o.frequency_penalty;
  s.presence = o.presence_penalty;
  s.penalty_last_n = o.penalty_last_n;
  s.mirostat_tau = o.mirostat_tau;
  set_if(o.mirostat_eta, &s.mirostat_eta);
  s.seed = o.seed;
  const Tokenizer& tokenizer = *model.model.tokenizer;
  if (o.dry) GRETA_TRY(read_dry(*o.dry, tokenizer, &s.dry));
  GRETA_TRY(read_bias(o.bias_tokens, o.biases, o.bias_count, model.model.shape.vocab, &s.bias));
  if (o.order) GRETA_TRY(parse_sampler_order(o.order, &s.order));
  return read_grammar(o, model, out);
}

Status read_conversation(const greta_model& model, const greta_request_options& o, RequestOptions* out) {
  greta_chat_options chat;
  GRETA_TRY(within(read_options(o.chat, &chat), "chat"));
  ChatOptions options;
  GRETA_TRY(read_chat_options(chat, &options));
  if (options.forget_oldest)
    return fail(Code::Unsupported, "forget_oldest: a request reads its whole conversation or is refused");
  auto dialect = std::make_shared<Dialect>();
  std::shared_ptr<const ChatManner> manner;
  GRETA_TRY(model.manners.find(model.model, options.chat_template, model.runtime->log, &manner));
  GRETA_TRY(dialect->open(model.model, options, std::move(manner)));
  GRETA_TRY(check_message_count(o.message_count));
  std::vector<jinja::Value> messages(o.message_count);
  for (size_t i = 0; i < messages.size(); ++i) {
    GRETA_TRY(within(read_message(o.messages[i], &messages[i]), "message %zu", i));
    GRETA_TRY(within(Dialect::check(messages[i]), "message %zu", i));
    out->earlier_calls += messages[i]["tool_calls"].size();
  }
  GRETA_TRY(dialect->check_answerable(messages));
  const Tokenizer& tokenizer = *model.model.tokenizer;
  GRETA_TRY(dialect->prompt(tokenizer, messages, &out->prompt_text, &out->tokens));
  out->places = dialect->message_places(out->tokens);
  GRETA_TRY(within(dialect->hold_request(tokenizer, out->prompt_text, out->reasoning_tokens != 0,
                                         model.runtime->log, &out->grammar, &out->held),
                   "tools"));
  out->dialect = std::move(dialect);
  return {};
}

Status read_flags(const greta_request_options& o, RequestOptions* out) {
  bool no_cache = false;
  GRETA_TRY(read_flag(o.ignore_end, "ignore_end", &out->ignore_end));
  GRETA_TRY(read_flag(o.no_cache, "no_cache", &no_cache));
  GRETA_TRY(read_flag(o.no_answer, "no_answer", &out->no_answer));
  GRETA_TRY(read_flag(o.logprobs, "logprobs", &out->logprobs));
  GRETA_TRY(read_flag(o.prompt_logprobs, "prompt_logprobs", &out->prompt_logprobs));
  GRETA_TRY(read_flag(o.keep_state, "keep_state", &out->keep_state));
  GRETA_TRY(read_flag(o.call_pieces, "call_pieces", &out->call_pieces));
  GRETA_TRY(read_flag(o.share_state, "share_state", &out->share_state));
  GRETA_TRY(read_flag(o.sampled_logprobs, "sampled_logprobs", &out->sampled));
  out->use_cache = !no_cache;
  if (o.prompt_events > 2)
    return fail(Code::Argument, "prompt_events is %u, expected 0 to 2", o.prompt_events);
  out->start_event = o.prompt_events > 0;
  out->progress_events = o.prompt_events > 1;
  return {};
}

// Reads how the answer is written beyond its tokens' choice.
Status read_writing(const greta_request_options& o, RequestOptions* out) {
  bool shift = false, limited = false;
  out->max_tokens = o.max_tokens;
  if (o.draft_tokens && o.draft)
    return fail(Code::Argument, "draft_tokens and draft are both set: give one of them");
  if (o.draft_tokens) out->draft = {DraftKind::Text, o.draft_tokens};
  if (o.draft) GRETA_TRY(within(read_draft(o.draft, &out->draft), "draft"));
  if (out->draft.kind == DraftKind::Caller || out->draft.guess_tokens)
    return fail(Code::Unsupported,
                "a request has no callback that guesses: it would hold up every other one");
  GRETA_TRY(read_flag(o.shift, "shift", &shift));
  if (shift) out->on_full = forgets_half(o.keep_tokens);
  GRETA_TRY(read_flag(o.limit_reasoning, "limit_reasoning", &limited));
  if (limited && !o.message_count)
    return fail(Code::Argument, "limit_reasoning is for messages, whose answers are taken apart");
  if (limited) out->reasoning_tokens = o.reasoning_tokens;
  return {};
}

Status read_prompt(const greta_model& model, const greta_request_options& o, RequestOptions* out) {
  if (o.token_count && o.message_count)
    return fail(Code::Argument, "tokens and messages are both set: give one of them");
  if (o.message_count) {
    GRETA_TRY(need(o.messages, "messages"));
    return read_conversation(model, o, out);
  }
  if (o.token_count) GRETA_TRY(need(o.tokens, "tokens"));
  // No context is longer, and a wrong count may be larger than the caller's array.
  if (o.token_count > kMaxContext)
    return with_numbers(fail(Code::Full, "%zu tokens do not fit any context", o.token_count),
                        {o.token_count, kMaxContext});
  out->tokens.assign(o.tokens, o.tokens + o.token_count);
  return {};
}

// Reads a saved state, with which the prompt must begin.
Status read_saved(const greta_source* given, const Executor& executor, RequestOptions* out) {
  StoredSource stored;
  GRETA_TRY(stored.store(given));
  Source opened;
  GRETA_TRY(stored.open(&opened));
  auto state = std::make_shared<SavedState>();
  GRETA_TRY(read_state(opened, executor, state.get(), identity_of(out->adapters)));
  const std::vector<int32_t>&held = state->tokens, &asked = out->tokens;
  if (asked.empty()) out->tokens = held;
  const size_t same = size_t(std::ranges::mismatch(held, asked).in1 - held.begin());
  if (same < held.size())
    return fail(Code::Argument,
                "the prompt of %zu tokens must begin with the %zu of the state, and only the first %zu are "
                "the same",
                asked.size(), held.size(), same);
  out->state = std::move(state);
  return {};
}

}  // namespace

Status read_request_options(const greta_model& model, const Executor& executor,
                            const greta_request_options* given, RequestOptions* out) {
  greta_request_options o;
  GRETA_TRY(read_options(given, &o));
  GRETA_TRY(check_reserved(o.reserved));
  GRETA_TRY(check_reserved(o.reserved2));
  GRETA_TRY(check_reserved(o.reserved3));
  GRETA_TRY(check_reserved(o.reserved4));
  GRETA_TRY(check_reserved(o.reserved5));
  GRETA_TRY(read_flags(o, out));
  GRETA_TRY(read_writing(o, out));
  out->priority = o.priority;
  out->wake.request_user = o.user;
  out->salt = o.salt;
  out->top = o.top_logprobs;
  std::vector<std::string_view> stops;
  GRETA_TRY(read_stops(o.stop_strings, o.stop_count, &stops));
  out->stops.assign(stops.begin(), stops.end());
  GRETA_TRY(within(read_sampling(model, o.sampling, out), "sampling"));
  GRETA_TRY(read_adapters(model, o.adapters, o.adapter_scales, o.adapter_count, &out->adapters));
  if (o.embed) GRETA_TRY(within(read_embed(model.model, o.embed, &out->embed.emplace()), "embed"));
  GRETA_TRY(read_prompt(model, o, out));
  if (out->share_state && !o.state) return fail(Code::Argument, "share_state is set, and there is no state");
  return o.state ? within(read_saved(o.state, executor, out), "state") : Status{};
}

}  // namespace greta
