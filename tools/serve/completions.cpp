// OpenAI's completions: texts that go on, whole and as a stream.
#include "endpoints.h"

namespace greta::serve {
namespace {

constexpr size_t kMostPrompts = 2048;

struct TextChoice {
  std::string text;
  size_t offset = 0;  // in characters of the text so far, for text_offset
  Json tokens = Json::array(), logprobs = Json::array(), tops = Json::array(), offsets = Json::array();
  const char* finish = "length";
};

class TextSink : public Sink {
 public:
  TextSink(const greta_tokenizer* tokenizer, const std::string& model, size_t choices, bool stream,
           bool usage, bool logprobs)
      : tokenizer_(tokenizer), stream_(stream), usage_(usage), logprobs_(logprobs), choices_(choices) {
    head_ = "{\"id\":" + json_string(random_id("cmpl-")) +
            ",\"object\":\"text_completion\",\"created\":" + std::to_string(now_s()) +
            ",\"model\":" + dump(model);
    sum_ = sized<greta_request_result>();
  }

  // The prompt stands before its answers, each of `n`.
  void echo(size_t index, const std::vector<int32_t>& prompt) {
    TextChoice& choice = choices_[index];
    const std::string text = decode(tokenizer_, prompt.data(), prompt.size());
    if (logprobs_) token(choice, prompt[0], nullptr, nullptr);
    choice.text = text;
  }

  void begin(Reply& reply) override {
    if (!stream_) return;
    reply.begin(event_stream());
    for (size_t i = 0; i < choices_.size(); ++i)
      if (!choices_[i].text.empty()) chunk(i, std::exchange(choices_[i].text, ""), nullptr);
  }

  void event(uint32_t index, const greta_request_event& event) override {
    TextChoice& choice = choices_[index];
    const bool text = event.kind == GRETA_EVENT_TEXT || event.kind == GRETA_EVENT_REASONING;
    if (logprobs_ && event.token >= 0 && (text || event.kind == GRETA_EVENT_PROMPT))
      token(choice, event.token, &event.logprob, &event);
    if (!text) return;
    if (!stream_) return void(choice.text.append(event.text, event.bytes));
    if (event.bytes > 0) chunk(index, {event.text, event.bytes}, nullptr);
  }

  void ended(uint32_t index, const greta_request_result& result) override {
    choices_[index].finish = finish_reason(result);
    sum_.prompt_tokens += result.prompt_tokens;
    sum_.cached_tokens += result.cached_tokens;
    sum_.generated_tokens += result.generated_tokens;
    sum_.prompt_ns += result.prompt_ns;
    sum_.generate_ns += result.generate_ns;
    sum_.drafted_tokens += result.drafted_tokens;
    sum_.accepted_tokens += result.accepted_tokens;
    sum_.draw_steps += result.draw_steps;
    if (stream_) chunk(index, "", choices_[index].finish);
  }

  void failed(Reply& reply, const Refused& error) override {
    if (!stream_) return reply.send(error_response(Form::OpenAi, error));
    reply.write("data: " + dump(error_json(Form::OpenAi, error)) + "\n\n");
    reply.end();
  }

  void done(Reply& reply) override {
    const std::string usage = ",\"usage\":" + dump(usage_json(sum_, differs_at)) +
                              ",\"timings\":" + dump(timings_json(sum_, differs_at)) + "}";
    if (stream_) {
      if (usage_) reply.write("data: " + head_ + ",\"choices\":[]" + usage + "\n\n");
      reply.write("data: [DONE]\n\n");
      return reply.end();
    }
    Json choices = Json::array();
    for (size_t i = 0; i < choices_.size(); ++i)
      choices.push_back({{"index", i},
                         {"text", choices_[i].text},
                         {"logprobs", logprobs_json(choices_[i])},
                         {"finish_reason", choices_[i].finish}});
    reply.send({200, "application/json; charset=utf-8", head_ + ",\"choices\":" + dump(choices) + usage, {}});
  }

 private:
  void token(TextChoice& choice, int32_t token, const float* logprob, const greta_request_event* event) {
    const std::string piece = piece_of(tokenizer_, token);
    choice.tokens.push_back(piece);
    choice.logprobs.push_back(logprob ? Json(*logprob) : Json());
    choice.offsets.push_back(choice.offset);
    for (const char each : piece) choice.offset += (static_cast<unsigned char>(each) & 0xc0) != 0x80 ? 1 : 0;
    Json tops;
    for (size_t i = 0; event && i < event->top_count; ++i)
      tops[piece_of(tokenizer_, event->top[i].token)] = event->top[i].logprob;
    if (logprob && tops.is_null()) tops[piece] = *logprob;
    choice.tops.push_back(std::move(tops));
  }

  Json logprobs_json(TextChoice& choice) const {
    if (!logprobs_) return nullptr;
    Json json = {{"tokens", std::move(choice.tokens)},
                 {"token_logprobs", std::move(choice.logprobs)},
                 {"top_logprobs", std::move(choice.tops)},
                 {"text_offset", std::move(choice.offsets)}};
    choice.tokens = choice.logprobs = choice.tops = choice.offsets = Json::array();
    return json;
  }

  void chunk(size_t index, std::string_view text, const char* finish) {
    const std::string probabilities = logprobs_ ? dump(logprobs_json(choices_[index])) : "null";
    (out += "data: ") += head_;
    (out += ",\"choices\":[{\"index\":") += std::to_string(index);
    (out += ",\"text\":") += json_string(text);
    (out += ",\"logprobs\":") += probabilities;
    out += finish ? std::string(",\"finish_reason\":\"") + finish + "\"}]}\n\n"
                  : ",\"finish_reason\":null}]}\n\n";
  }

  const greta_tokenizer* tokenizer_;
  const bool stream_, usage_, logprobs_;
  std::vector<TextChoice> choices_;
  std::string head_;
  greta_request_result sum_;
};

}  // namespace

void completions(Context& context) {
  const Model& model = context.model();
  const Json& body = context.body();
  const Fields fields(body);
  Ask base = model.defaults;
  if (base.max_tokens < 0) base.max_tokens = 16;  // OpenAI's default
  read_sampling(fields, model.tokenizer, &base);
  read_max_tokens(fields, {"max_tokens", "max_completion_tokens", "n_predict"}, true, &base);
  const std::string* suffix = fields.text("suffix");
  const bool gap = suffix && !suffix->empty();
  const auto n = static_cast<size_t>(fields.whole("n", 1, 128).value_or(1));
  if (const auto best = fields.whole("best_of", 1, 128); best && static_cast<size_t>(*best) != n)
    fields.wrong("best_of", "as many as n", Json(*best));
  const bool echo = fields.flag("echo").value_or(false);
  const Json* probabilities = fields.find("logprobs");
  if (probabilities && probabilities->is_boolean()) {
    if (probabilities->get<bool>()) base.logprobs = 0;
  } else if (const auto top = fields.whole("logprobs", 0, 20)) {
    base.logprobs = *top;
  }
  const bool logprobs = base.logprobs >= 0;
  base.prompt_logprobs = echo && logprobs;
  const bool stream = fields.flag("stream").value_or(false);
  const Json* options = fields.object("stream_options");
  const bool usage = options && Fields(*options, "stream_options.").flag("include_usage").value_or(false);
  const std::string* name = fields.text("model");
  std::vector<std::vector<int32_t>> prompts =
      prompts_of(fields, "prompt", model.tokenizer, kMostPrompts, gap ? 0 : kPromptFlags);
  if (gap)
    for (std::vector<int32_t>& prompt : prompts)
      prompt = fill_prompt(model, {prompt, encode(model.tokenizer, *suffix, 0), {}, {}},
                           static_cast<uint32_t>(std::max<int64_t>(base.max_tokens, 0)));
  auto sink = std::make_unique<TextSink>(model.tokenizer, name ? *name : model.name, prompts.size() * n,
                                         stream, usage, logprobs);
  std::vector<JobItem> items;
  for (const std::vector<int32_t>& prompt : prompts) {
    auto ask = std::make_shared<Ask>(base);
    ask->tokens = prompt;
    for (JobItem& item : repeat(std::move(ask), n)) {
      if (echo) sink->echo(items.size(), prompt);
      items.push_back(std::move(item));
    }
  }
  context.start(std::move(sink), std::move(items));
}

}  // namespace greta::serve
