// llama.cpp's completion.
#include "endpoints.h"

namespace greta::serve {
namespace {

class NativeSink : public Sink {
 public:
  NativeSink(const Model& model, const Ask& ask, bool stream, bool tokens)
      : tokenizer_(model.tokenizer),
        name_(model.name),
        prompt_(decode(tokenizer_, ask.tokens.data(), ask.tokens.size())),
        stops_(ask.stops),
        stream_(stream),
        probabilities_(ask.logprobs > 0),
        sampled_(ask.sampled_logprobs),
        return_tokens_(tokens) {}

  void begin(Reply& reply) override {
    if (stream_) reply.begin(event_stream());
  }

  void event(uint32_t, const greta_request_event& event) override {
    if (event.kind == GRETA_EVENT_PROGRESS || event.kind == GRETA_EVENT_START) {
      const Json json = {{"content", ""}, {"stop", false}, {"prompt_progress", progress_json(event)}};
      out += "data: " + dump(json) + "\n\n";
    }
    if (event.kind != GRETA_EVENT_TEXT && event.kind != GRETA_EVENT_REASONING) return;
    if (event.token >= 0) tokens_.push_back(event.token);
    if (probabilities_ && event.token >= 0) listed_.push_back(logprob_json(tokenizer_, event, sampled_));
    if (!stream_) return void(content_.append(event.text, event.bytes));
    if (event.bytes == 0) return;
    Json json = {{"index", 0},
                 {"content", std::string(event.text, event.bytes)},
                 {"tokens", tokens_},
                 {"stop", false},
                 {"id_slot", slot}};
    if (probabilities_) json["completion_probabilities"] = listed_;
    tokens_ = Json::array(), listed_ = Json::array();
    out += "data: " + dump(json) + "\n\n";
  }

  void ended(uint32_t, const greta_request_result& result) override { result_ = result; }

  void failed(Reply& reply, const Refused& error) override {
    if (!stream_) return reply.send(error_response(Form::OpenAi, error));
    reply.write("data: " + dump(error_json(Form::OpenAi, error)) + "\n\n");
    reply.end();
  }

  void done(Reply& reply) override {
    const bool word = result_.reason == GRETA_STOP_STRING;
    const char* type = word ? "word" : result_.reason == GRETA_STOP_END ? "eos" : "limit";
    const auto stop = static_cast<size_t>(result_.stop_string);
    Json json = {{"index", 0},
                 {"content", content_},
                 {"tokens", return_tokens_ || stream_ ? tokens_ : Json::array()},
                 {"id_slot", slot},
                 {"stop", true},
                 {"model", name_},
                 {"tokens_predicted", result_.generated_tokens},
                 {"tokens_evaluated", result_.prompt_tokens},
                 {"tokens_cached", result_.prompt_tokens + result_.generated_tokens},
                 {"prompt", prompt_},
                 {"has_new_line", content_.find('\n') != content_.npos},
                 {"truncated", result_.reason == GRETA_STOP_CONTEXT},
                 {"stop_type", type},
                 {"stopping_word", word && stop < stops_.size() ? stops_[stop] : ""},
                 {"timings", timings_json(result_, differs_at)}};
    if (probabilities_) json["completion_probabilities"] = listed_;
    if (!stream_) return reply.send({200, "application/json; charset=utf-8", dump(json), {}});
    reply.write("data: " + dump(json) + "\n\n");
    reply.end();
  }

 private:
  const greta_tokenizer* tokenizer_;
  std::string name_, prompt_, content_;
  std::vector<std::string> stops_;
  const bool stream_, probabilities_, sampled_, return_tokens_;
  Json tokens_ = Json::array(), listed_ = Json::array();
  greta_request_result result_ = sized<greta_request_result>();
};

}  // namespace

void start_native(Context& context, const Fields& fields,
                  const std::function<std::vector<int32_t>(const Ask&)>& prompt_of) {
  const Model& model = context.model();
  auto ask = std::make_shared<Ask>(model.defaults);
  read_sampling(fields, model.tokenizer, ask.get());
  read_max_tokens(fields, {"n_predict", "max_tokens"}, true, ask.get());
  const auto probabilities = fields.whole("n_probs", 0, 1000).value_or(0);
  if (probabilities > 0) ask->logprobs = probabilities;
  if (const auto keep = fields.whole("n_keep", -1, INT32_MAX)) ask->keep_tokens = *keep;
  const bool stream = fields.flag("stream").value_or(false);
  if (stream && fields.flag("return_progress").value_or(false)) ask->prompt_events = 2;
  ask->tokens = prompt_of(*ask);
  auto sink = std::make_unique<NativeSink>(model, *ask, stream, fields.flag("return_tokens").value_or(false));
  context.start(std::move(sink), repeat(std::move(ask), 1));
}

void native_completion(Context& context) {
  const Json& body = context.body();
  const Fields fields(body);
  start_native(context, fields, [&](const Ask&) {
    return std::move(prompts_of(fields, "prompt", context.model().tokenizer, 1)[0]);
  });
}

}  // namespace greta::serve
