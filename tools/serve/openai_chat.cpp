// OpenAI's chat completions, whole and as a stream.
#include "endpoints.h"

namespace greta::serve {
namespace {

struct Choice {
  std::string content, reasoning;
  Json calls = Json::array();
  Json logprobs = Json::array();
  const char* finish = "stop";
  bool has_role = false;
  bool in_call = false;  // a call comes in pieces
};

class ChatSink : public Sink {
 public:
  ChatSink(const Model& model, const Ask& ask, std::string name, size_t n, bool stream, bool usage)
      : tokenizer_(model.tokenizer),
        stream_(stream),
        usage_wanted_(usage),
        logprobs_(ask.logprobs >= 0),
        sampled_(ask.sampled_logprobs),
        choices_(n) {
    const char* object = stream ? "chat.completion.chunk" : "chat.completion";
    head_ = "{\"id\":" + json_string(random_id("chatcmpl-")) + ",\"object\":\"" + object +
            "\",\"created\":" + std::to_string(now_s()) + ",\"model\":" + dump(name) +
            ",\"system_fingerprint\":\"greta\"";
    sum_ = sized<greta_request_result>();
  }

  void begin(Reply& reply) override {
    if (!stream_) return;
    Response head = event_stream();
    head.headers.insert(head.headers.end(), extra.begin(), extra.end());
    reply.begin(std::move(head));
  }

  void event(uint32_t index, const greta_request_event& event) override {
    Choice& choice = choices_[index];
    const bool reasoning = event.kind == GRETA_EVENT_REASONING;
    Json logprobs = Json::array();
    const bool in_call = event.kind == GRETA_EVENT_CALL_START || event.kind == GRETA_EVENT_CALL_PIECE;
    if (logprobs_ && event.token >= 0 && (event.kind == GRETA_EVENT_TEXT || in_call))
      logprobs.push_back(logprob_json(tokenizer_, event, sampled_));
    if (in_call) return call_part(index, event, logprobs);
    if (event.kind == GRETA_EVENT_TOOL_CALL) return call(index, event);
    if (event.kind == GRETA_EVENT_PROGRESS || event.kind == GRETA_EVENT_START) return progress(event);
    if (event.kind != GRETA_EVENT_TEXT && !reasoning) return;
    if (!stream_) {
      (reasoning ? choice.reasoning : choice.content).append(event.text, event.bytes);
      for (Json& each : logprobs) choice.logprobs.push_back(std::move(each));
      return;
    }
    if (event.bytes == 0 && logprobs.empty()) return;
    std::string delta = reasoning ? "\"reasoning_content\":" : "\"content\":";
    delta += json_string({event.text, event.bytes});
    chunk(index, delta, nullptr, logprobs);
  }

  void ended(uint32_t index, const greta_request_result& result) override {
    Choice& choice = choices_[index];
    choice.finish = finish_reason(result);
    if (index == 0) {
      const uint32_t others = sum_.generated_tokens, thought = sum_.reasoning_tokens;
      sum_ = result;
      sum_.generated_tokens += others;
      sum_.reasoning_tokens += thought;
    } else {
      sum_.generated_tokens += result.generated_tokens;
      sum_.reasoning_tokens += result.reasoning_tokens;
    }
    if (stream_) chunk(index, "", choice.finish, Json::array());
  }

  void failed(Reply& reply, const Refused& error) override {
    if (!stream_) return reply.send(error_response(Form::OpenAi, error));
    reply.write("data: " + dump(error_json(Form::OpenAi, error)) + "\n\n");
    reply.end();
  }

  void done(Reply& reply) override {
    if (!stream_) return whole(reply);
    if (usage_wanted_)
      reply.write("data: " + head_ + ",\"choices\":[],\"usage\":" + dump(usage_json(sum_, differs_at)) +
                  ",\"timings\":" + dump(timings_json(sum_, differs_at)) + "}\n\n");
    reply.write("data: [DONE]\n\n");
    reply.end();
  }

 private:
  void progress(const greta_request_event& event) {
    out += "data: " + head_ + ",\"choices\":[],\"prompt_progress\":" + dump(progress_json(event)) + "}\n\n";
  }

  // Its id and name, then pieces of its arguments.
  void call_part(uint32_t index, const greta_request_event& event, const Json& logprobs) {
    Choice& choice = choices_[index];
    Json one;
    if (event.kind == GRETA_EVENT_CALL_START) {
      one = {{"id", event.id}, {"type", "function"}, {"function", {{"name", event.name}, {"arguments", ""}}}};
      choice.calls.push_back(one);
    } else {
      one = {{"function", {{"arguments", std::string(event.text, event.bytes)}}}};
    }
    choice.in_call = true;
    one["index"] = choice.calls.size() - 1;
    chunk(index, "\"tool_calls\":" + dump(Json::array({one})), nullptr, logprobs);
  }

  void call(uint32_t index, const greta_request_event& event) {
    Choice& choice = choices_[index];
    if (std::exchange(choice.in_call, false)) return;  // it has come in pieces
    const Json function = {{"name", event.name}, {"arguments", event.arguments}};
    Json one = {{"id", event.id}, {"type", "function"}, {"function", function}};
    if (stream_) {
      one["index"] = choice.calls.size();
      chunk(index, "\"tool_calls\":" + dump(Json::array({one})), nullptr, Json::array());
    }
    choice.calls.push_back(std::move(one));
  }

  void chunk(uint32_t index, const std::string& delta, const char* finish, const Json& logprobs) {
    Choice& choice = choices_[index];
    (out += "data: ") += head_;
    ((out += ",\"choices\":[{\"index\":") += std::to_string(index)) += ",\"delta\":{";
    if (!choice.has_role)
      out += delta.empty() ? R"("role":"assistant","content":"")" : R"("role":"assistant",)";
    choice.has_role = true;
    out += delta + "}";
    if (!logprobs.empty()) out += ",\"logprobs\":{\"content\":" + dump(logprobs) + "}";
    out += finish ? std::string(",\"finish_reason\":\"") + finish + "\"}]" : ",\"finish_reason\":null}]";
    if (finish && usage_wanted_ == false && choices_.size() == 1)
      out += ",\"timings\":" + dump(timings_json(sum_, differs_at));
    out += "}\n\n";
  }

  void whole(Reply& reply) {
    std::string body = head_ + ",\"choices\":[";
    for (size_t i = 0; i < choices_.size(); ++i) {
      Choice& choice = choices_[i];
      Json message = {{"role", "assistant"}, {"content", choice.content}};
      if (!choice.reasoning.empty()) message["reasoning_content"] = choice.reasoning;
      if (!choice.calls.empty()) {
        message["tool_calls"] = choice.calls;
        if (choice.content.empty()) message["content"] = nullptr;
      }
      Json one = {
          {"index", i}, {"message", message}, {"logprobs", nullptr}, {"finish_reason", choice.finish}};
      if (logprobs_) one["logprobs"] = {{"content", choice.logprobs}, {"refusal", nullptr}};
      body += (i > 0 ? "," : "") + dump(one);
    }
    body += "],\"usage\":" + dump(usage_json(sum_, differs_at)) +
            ",\"timings\":" + dump(timings_json(sum_, differs_at)) + "}";
    reply.send({200, "application/json; charset=utf-8", std::move(body), extra});
  }

 public:
  Headers extra;

 private:
  const greta_tokenizer* tokenizer_;
  const bool stream_, usage_wanted_, logprobs_, sampled_;
  std::vector<Choice> choices_;
  std::string head_;
  greta_request_result sum_;
};

}  // namespace

void chat_completions(Context& context) {
  const Model& model = context.model();
  const Json& body = context.body();
  const Fields fields(body);
  auto ask = std::make_shared<Ask>(model.defaults);
  read_sampling(fields, model.tokenizer, ask.get());
  read_max_tokens(fields, {"max_completion_tokens", "max_tokens", "n_predict"}, false, ask.get());
  std::string skipped;
  read_conversation(fields, ask.get(), &skipped);
  const bool logprobs = fields.flag("logprobs").value_or(false);
  const int64_t top = fields.whole("top_logprobs", 0, 20).value_or(0);
  if (top > 0 && !logprobs) throw Refused(400, "top_logprobs needs logprobs to be true", "top_logprobs");
  if (logprobs) ask->logprobs = top;
  const auto n = static_cast<size_t>(fields.whole("n", 1, 128).value_or(1));
  const bool stream = fields.flag("stream").value_or(false);
  ask->call_pieces = stream;
  if (stream && fields.flag("return_progress").value_or(false)) ask->prompt_events = 2;
  const Json* options = fields.object("stream_options");
  const bool usage = options && Fields(*options, "stream_options.").flag("include_usage").value_or(false);
  const std::string* name = fields.text("model");
  auto sink = std::make_unique<ChatSink>(model, *ask, name ? *name : model.name, n, stream, usage);
  if (!skipped.empty()) sink->extra = {{"X-Greta-Skipped-Tools", skipped}};
  context.start(std::move(sink), repeat(std::move(ask), n));
}

}  // namespace greta::serve
