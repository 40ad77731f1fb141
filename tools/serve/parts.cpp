#include <algorithm>
#include <chrono>
#include <cmath>

#include "endpoints.h"

namespace greta::serve {

Json usage_json(const greta_request_result& result, uint32_t differs_at) {
  Json of_prompt = {{"cached_tokens", result.cached_tokens}};
  if (differs_at > 0) of_prompt["differs_at"] = differs_at;
  return {{"prompt_tokens", result.prompt_tokens},
          {"completion_tokens", result.generated_tokens},
          {"total_tokens", result.prompt_tokens + result.generated_tokens},
          {"prompt_tokens_details", std::move(of_prompt)},
          {"completion_tokens_details", {{"reasoning_tokens", result.reasoning_tokens}}}};
}

Json timings_json(const greta_request_result& result, uint32_t differs_at) {
  const auto ms = [](uint64_t ns) { return static_cast<double>(ns) / 1e6; };
  const auto each = [](double time, uint32_t count) { return count > 0 ? time / count : 0.0; };
  const auto speed = [](double time, uint32_t count) { return time > 0 ? 1e3 * count / time : 0.0; };
  const uint32_t computed = result.prompt_tokens - std::min(result.cached_tokens, result.prompt_tokens);
  const double prompt = ms(result.prompt_ns), generate = ms(result.generate_ns);
  Json timings = {{"cache_n", result.cached_tokens},
                  {"prompt_n", computed},
                  {"prompt_ms", prompt},
                  {"prompt_per_token_ms", each(prompt, computed)},
                  {"prompt_per_second", speed(prompt, computed)},
                  {"predicted_n", result.generated_tokens},
                  {"predicted_ms", generate},
                  {"predicted_per_token_ms", each(generate, result.generated_tokens)},
                  {"predicted_per_second", speed(generate, result.generated_tokens)},
                  {"queued_ms", ms(result.queued_ns)}};
  if (differs_at > 0) timings["differs_at"] = differs_at;
  if (result.drafted_tokens > 0) {
    timings["draft_n"] = result.drafted_tokens;
    timings["draft_n_accepted"] = result.accepted_tokens;
    timings["draft_tokens_per_step"] = each(result.generated_tokens, result.draw_steps);
  }
  return timings;
}

Json progress_json(const greta_request_event& event) {
  return {{"total", event.prompt_tokens},
          {"cache", event.cached_tokens},
          {"processed", event.kind == GRETA_EVENT_START ? event.prompt_tokens : event.read_tokens}};
}

const char* finish_reason(const greta_request_result& result) {
  switch (result.reason) {
    case GRETA_STOP_LENGTH:
    case GRETA_STOP_CONTEXT:
      return "length";
    case GRETA_STOP_END:
    case GRETA_STOP_STRING:
      return result.tool_calls > 0 ? "tool_calls" : "stop";
    default:
      return "abort";
  }
}

static Json one_logprob(const greta_tokenizer* tokenizer, int32_t token, float logprob, bool sampled) {
  const std::string text = piece_of(tokenizer, token);
  Json bytes = Json::array();
  for (const char each : text) bytes.push_back(static_cast<unsigned char>(each));
  Json json = {{"id", token}, {"token", text}, {"bytes", bytes}};
  if (sampled)
    json["prob"] = std::exp(logprob);
  else
    json["logprob"] = logprob;
  return json;
}

Json logprob_json(const greta_tokenizer* tokenizer, const greta_request_event& event, bool sampled) {
  Json json = one_logprob(tokenizer, event.token, event.logprob, sampled), list = Json::array();
  for (size_t i = 0; i < event.top_count; ++i)
    list.push_back(one_logprob(tokenizer, event.top[i].token, event.top[i].logprob, sampled));
  json[sampled ? "top_probs" : "top_logprobs"] = std::move(list);
  return json;
}

std::vector<JobItem> repeat(std::shared_ptr<const Ask> ask, size_t n) {
  std::vector<JobItem> items;
  const uint64_t seed =
      ask->sampling.seed == -1 ? random_number() : static_cast<uint64_t>(ask->sampling.seed);
  for (size_t i = 0; i < n; ++i) items.push_back({ask, seed + i});
  return items;
}

uint64_t count_prompt(const Model& model, const Ask& ask) {
  Prompt prompt;
  const greta_status status = make_prompt(model.service, ask, &prompt);
  if (status != GRETA_OK) throw refusal_of(status);
  return prompt.tokens.size();
}

void input_tokens(Context& context) {
  const Model& model = context.model();
  const Json& body = context.body();
  Ask ask = model.defaults;
  std::string skipped;
  read_conversation(Fields(body), &ask, &skipped);
  context.send({{"object", "response.input_tokens"}, {"input_tokens", count_prompt(model, ask)}});
}

int64_t now_s() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

Response event_stream() {
  return {200, "text/event-stream", "", {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}}};
}

}  // namespace greta::serve
