// OpenAI's responses, without a state on the server: whole, and as a stream of typed events.
#include "responses.h"

namespace greta::serve {
namespace {

class ResponseSink : public Sink {
 public:
  explicit ResponseSink(ResponseCall call)
      : call_(std::move(call)), id_(random_id("resp_")), created_(now_s()) {}

  void begin(Reply& reply) override {
    if (!call_.stream) return;
    Response head = event_stream();
    if (!call_.skipped.empty()) head.headers.emplace_back("X-Greta-Skipped-Tools", call_.skipped);
    reply.begin(std::move(head));
    tell("response.created", {{"response", response("in_progress")}});
    tell("response.in_progress", {{"response", response("in_progress")}});
    reply.write(std::move(out));
    out.clear();
  }

  void event(uint32_t, const greta_request_event& event) override {
    if (event.kind == GRETA_EVENT_CALL_START) return begin_call(event.id, event.name, false);
    if (event.kind == GRETA_EVENT_CALL_PIECE) return call_piece({event.text, event.bytes});
    if (event.kind == GRETA_EVENT_TOOL_CALL) return call(event);
    const bool thinking = event.kind == GRETA_EVENT_REASONING;
    if ((event.kind != GRETA_EVENT_TEXT && !thinking) || event.bytes == 0) return;
    open(thinking ? "reasoning" : "message");
    const std::string text(event.text, event.bytes);
    text_ += text;
    tell(thinking ? "response.reasoning_text.delta" : "response.output_text.delta", place({{"delta", text}}));
  }

  void ended(uint32_t, const greta_request_result& result) override {
    result_ = result;
    close();
  }

  void failed(Reply& reply, const Refused& error) override {
    if (!call_.stream) return reply.send(error_response(Form::OpenAi, error));
    Json failed = response("failed");
    const bool full = error.type == "exceed_context_size_error";
    failed["error"] = {{"code", full ? "context_length_exceeded" : "server_error"},
                       {"message", error.message}};
    tell("response.failed", {{"response", failed}});
    reply.write(std::move(out));
    reply.end();
  }

  void done(Reply& reply) override {
    const bool cut = std::string_view(finish_reason(result_)) == "length";
    Json whole = response(cut ? "incomplete" : "completed");
    if (cut) whole["incomplete_details"] = {{"reason", "max_output_tokens"}};
    Json of_prompt = {{"cached_tokens", result_.cached_tokens}};
    if (differs_at > 0) of_prompt["differs_at"] = differs_at;
    whole["usage"] = {{"input_tokens", result_.prompt_tokens},
                      {"input_tokens_details", std::move(of_prompt)},
                      {"output_tokens", result_.generated_tokens},
                      {"output_tokens_details", {{"reasoning_tokens", result_.reasoning_tokens}}},
                      {"total_tokens", result_.prompt_tokens + result_.generated_tokens}};
    if (!call_.stream) {
      Headers headers;
      if (!call_.skipped.empty()) headers.emplace_back("X-Greta-Skipped-Tools", call_.skipped);
      return reply.send({200, "application/json; charset=utf-8", dump(whole), std::move(headers)});
    }
    tell(cut ? "response.incomplete" : "response.completed", {{"response", whole}});
    reply.write(std::move(out));
    reply.end();
  }

 private:
  Json response(const char* status) const {
    return {{"id", id_},
            {"object", "response"},
            {"created_at", created_},
            {"status", status},
            {"error", nullptr},
            {"incomplete_details", nullptr},
            {"instructions", nullptr},
            {"model", call_.model},
            {"output", output_},
            {"parallel_tool_calls", true},
            {"previous_response_id", nullptr},
            {"store", false},
            {"text", {{"format", {{"type", "text"}}}}},
            {"tool_choice", "auto"},
            {"tools", Json::array()},
            {"truncation", "disabled"},
            {"usage", nullptr},
            {"metadata", Json::object()}};
  }

  void tell(const char* name, Json data) {
    if (!call_.stream) return;
    Json json = {{"type", name}, {"sequence_number", sequence_++}};
    json.update(data);
    out += std::string("event: ") + name + "\ndata: " + dump(json) + "\n\n";
  }

  // The fields that say which part of which item an event is of.
  Json place(Json data) const {
    Json json = {{"item_id", item_["id"]}, {"output_index", output_.size()}, {"content_index", 0}};
    json.update(data);
    return json;
  }

  Json part() const {
    if (open_ == "reasoning") return {{"type", "reasoning_text"}, {"text", text_}};
    return {{"type", "output_text"},
            {"text", text_},
            {"annotations", Json::array()},
            {"logprobs", Json::array()}};
  }

  void open(const std::string& type) {
    if (open_ == type) return;
    close();
    open_ = type;
    item_ = {
        {"id", random_id(type == "message" ? "msg_" : "rs_")}, {"type", type}, {"status", "in_progress"}};
    if (type == "message") item_["role"] = "assistant";
    if (type == "reasoning") item_["summary"] = Json::array();
    item_["content"] = Json::array();
    tell("response.output_item.added", {{"output_index", output_.size()}, {"item", item_}});
    tell("response.content_part.added", place({{"part", part()}}));
  }

  void close() {
    if (open_.empty()) return;
    if (open_ == "call")
      return end_call(std::string(text_), "incomplete");  // it is none after all, or was cut
    tell(open_ == "reasoning" ? "response.reasoning_text.done" : "response.output_text.done",
         place({{"text", text_}}));
    tell("response.content_part.done", place({{"part", part()}}));
    item_["content"].push_back(part());
    finish_item("completed");
    open_.clear();
    text_.clear();
  }

  void finish_item(const char* status) {
    item_["status"] = status;
    tell("response.output_item.done", {{"output_index", output_.size()}, {"item", item_}});
    output_.push_back(std::move(item_));
    item_ = Json::object();
  }

  bool is_custom(const std::string& name) const { return call_.custom.count(name) > 0; }

  // A custom tool is a function of one text, which is known when its arguments are whole.
  void begin_call(const std::string& id, const std::string& name, bool whole) {
    close();
    const bool custom = is_custom(name);
    if (custom && !whole) return;
    open_ = "call";
    item_ = {{"id", random_id(custom ? "ctc_" : "fc_")},
             {"type", custom ? "custom_tool_call" : "function_call"},
             {"status", "in_progress"},
             {"call_id", id},
             {"name", name},
             {custom ? "input" : "arguments", ""}};
    tell("response.output_item.added", {{"output_index", output_.size()}, {"item", item_}});
  }

  void tell_call(const char* what, const char* key, const std::string& value) {
    const bool custom = item_["type"] == "custom_tool_call";
    const std::string stem = custom ? "response.custom_tool_call_input" : "response.function_call_arguments";
    tell((stem + what).c_str(), {{"item_id", item_["id"]}, {"output_index", output_.size()}, {key, value}});
  }

  void call_piece(const std::string& text) {
    if (open_ != "call") return;
    text_ += text;
    tell_call(".delta", "delta", text);
  }

  void end_call(const std::string& value, const char* status) {
    const char* field = item_["type"] == "custom_tool_call" ? "input" : "arguments";
    tell_call(".done", field, value);
    item_[field] = value;
    finish_item(status);
    open_.clear();
    text_.clear();
  }

  void call(const greta_request_event& event) {
    std::string value = event.arguments;
    if (is_custom(event.name)) {
      const Json arguments = Json::parse(value, nullptr, false);
      if (arguments.is_object() && arguments.contains("input") && arguments["input"].is_string())
        value = arguments["input"].get<std::string>();
    }
    if (open_ != "call") {  // it has not come in pieces
      begin_call(event.id, event.name, true);
      call_piece(value);
    }
    end_call(std::string(value), "completed");
  }

  ResponseCall call_;
  std::string id_, open_, text_;
  const int64_t created_;
  uint64_t sequence_ = 0;
  Json output_ = Json::array(), item_ = Json::object();
  greta_request_result result_ = sized<greta_request_result>();
};

}  // namespace

void responses(Context& context) {
  const Model& model = context.model();
  const Json& body = context.body();
  const Fields fields(body);
  if (fields.has("previous_response_id"))
    throw Refused(400, "no response is kept here: send all of the conversation in input",
                  "previous_response_id");
  if (fields.flag("background").value_or(false))
    throw Refused(400, "nothing runs in the background: leave it out", "background");
  auto ask = std::make_shared<Ask>(model.defaults);
  ResponseCall call;
  const std::string* name = fields.text("model");
  call.model = name ? *name : model.name;
  call.stream = fields.flag("stream").value_or(false);
  ask->call_pieces = call.stream;
  read_sampling(fields, model.tokenizer, ask.get());
  read_max_tokens(fields, {"max_output_tokens"}, false, ask.get());
  read_template_options(fields, ask.get());
  read_response_text(fields, model.tokenizer, ask.get());
  read_response_tools(fields, ask.get(), &call);
  std::vector<Json> messages = response_messages(fields);
  auto sink = std::make_unique<ResponseSink>(std::move(call));
  if (messages.empty()) {  // a probe: it gets an answer that is empty
    greta_request_result nothing = sized<greta_request_result>();
    nothing.reason = GRETA_STOP_END;
    sink->begin(*context.reply);
    sink->ended(0, nothing);
    return sink->done(*context.reply);
  }
  set_messages(std::move(messages), ask.get());
  context.start(std::move(sink), repeat(std::move(ask), 1));
}

}  // namespace greta::serve
