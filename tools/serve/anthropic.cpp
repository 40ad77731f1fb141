// Anthropic's messages and count_tokens.
#include "endpoints.h"

namespace greta::serve {
namespace {

constexpr std::string_view kBilling = "x-anthropic-billing-header";

// ---- requests ----

std::string joined_text(const Fields& fields, const char* name, const Json& content) {
  if (content.is_string()) return content.get<std::string>();
  if (!content.is_array()) fields.wrong(name, "a text or a list of blocks", content);
  std::string text;
  for (const Json& block : content) {
    const Fields inner(block, fields.path(name) + "[].");
    const std::string* type = inner.text("type");
    const std::string* words = inner.text("text");
    if (!type || *type != "text" || !words)
      throw Refused(400,
                    fields.path(name) + " has a block of the type " + (type ? *type : "\"\"") +
                        ", and only text is read",
                    fields.path(name));
    // Claude Code changes this block with each request, and would so empty the prefix cache.
    if (words->starts_with(kBilling)) continue;
    text += (text.empty() ? "" : "\n") + *words;
  }
  return text;
}

void add_blocks(const Fields& message, const std::string& role, const Json& content,
                std::vector<Json>* messages) {
  Json own = {{"role", role}, {"content", ""}};
  std::string text, thinking;
  Json calls = Json::array();
  for (size_t i = 0; i < content.size(); ++i) {
    const std::string path = message.path("content") + "[" + std::to_string(i) + "]";
    if (!content[i].is_object()) throw Refused(400, path + " must be an object", path);
    const Fields block(content[i], path + ".");
    const std::string* type = block.text("type");
    if (!type) throw Refused(400, path + ".type is missing", path + ".type");
    if (*type == "text") {
      const std::string* words = block.text("text");
      if (words) text += (text.empty() ? "" : "\n") + *words;
    } else if (*type == "thinking") {
      if (const std::string* words = block.text("thinking")) thinking += *words;
    } else if (*type == "redacted_thinking") {
      continue;
    } else if (*type == "tool_use") {
      const std::string *id = block.text("id"), *name = block.text("name");
      const Json* input = block.object("input");
      if (!id || !name) throw Refused(400, path + " needs an id and a name", path);
      calls.push_back({{"id", *id},
                       {"type", "function"},
                       {"function", {{"name", *name}, {"arguments", input ? dump(*input) : "{}"}}}});
    } else if (*type == "tool_result") {
      const std::string* id = block.text("tool_use_id");
      if (!id) throw Refused(400, path + ".tool_use_id is missing", path + ".tool_use_id");
      const Json* result = block.find("content");
      messages->push_back({{"role", "tool"},
                           {"tool_call_id", *id},
                           {"content", result ? joined_text(block, "content", *result) : ""}});
    } else {
      throw Refused(400, path + " is of the type " + *type + ", which is not read", path + ".type");
    }
  }
  own["content"] = text;
  if (!thinking.empty()) own["reasoning_content"] = thinking;
  if (!calls.empty()) own["tool_calls"] = calls;
  if (!text.empty() || !thinking.empty() || !calls.empty()) messages->push_back(std::move(own));
}

std::vector<Json> conversation_of(const Fields& fields) {
  std::vector<Json> messages;
  if (const Json* system = fields.find("system")) {
    const std::string text = joined_text(fields, "system", *system);
    if (!text.empty()) messages.push_back({{"role", "system"}, {"content", text}});
  }
  const Json* list = fields.list("messages");
  if (!list || list->empty())
    throw Refused(400, "messages must be a list of at least one message", "messages");
  for (size_t i = 0; i < list->size(); ++i) {
    const std::string path = "messages[" + std::to_string(i) + "]";
    if (!(*list)[i].is_object()) throw Refused(400, path + " must be an object", path);
    const Fields message((*list)[i], path + ".");
    const std::string* role = message.word("role", {"user", "assistant", "system"});
    const Json* content = message.find("content");
    if (!role) throw Refused(400, path + ".role is missing", path + ".role");
    if (!content) throw Refused(400, path + ".content is missing", path + ".content");
    if (content->is_array())
      add_blocks(message, *role, *content, &messages);
    else
      messages.push_back({{"role", *role}, {"content", joined_text(message, "content", *content)}});
  }
  return messages;
}

// Tools and their choice in OpenAI's form, for read_tools().
Json openai_tools(const Fields& fields) {
  Json out = Json::object();
  Json tools = Json::array();
  const Json* list = fields.list("tools");
  for (size_t i = 0; list && i < list->size(); ++i) {
    const std::string path = "tools[" + std::to_string(i) + "]";
    if (!(*list)[i].is_object()) throw Refused(400, path + " must be an object", path);
    const Fields tool((*list)[i], path + ".");
    const std::string *type = tool.text("type"), *name = tool.text("name"), *about = tool.text("description");
    const Json* schema = tool.object("input_schema");
    if (type && *type != "custom" && !schema) {
      tools.push_back({{"type", *type}});
      continue;
    }
    if (!name) throw Refused(400, path + ".name is missing", path + ".name");
    Json function = {{"name", *name}};
    if (about) function["description"] = *about;
    function["parameters"] = schema ? *schema : Json{{"type", "object"}, {"properties", Json::object()}};
    tools.push_back({{"type", "function"}, {"function", function}});
  }
  if (list) out["tools"] = tools;
  if (const Json* choice = fields.object("tool_choice")) {
    const Fields inner(*choice, "tool_choice.");
    const std::string* type = inner.word("type", {"auto", "any", "tool", "none"});
    const std::string* name = inner.text("name");
    if (!type) throw Refused(400, "tool_choice.type is missing", "tool_choice.type");
    if (*type == "tool" && !name) throw Refused(400, "tool_choice.name is missing", "tool_choice.name");
    if (*type == "tool")
      out["tool_choice"] = {{"type", "function"}, {"function", {{"name", *name}}}};
    else
      out["tool_choice"] = *type == "any" ? "required" : *type;
    if (const auto alone = inner.flag("disable_parallel_tool_use")) out["parallel_tool_calls"] = !*alone;
  }
  return out;
}

std::shared_ptr<Ask> ask_of(const Model& model, const Fields& fields, std::string* skipped) {
  auto ask = std::make_shared<Ask>(model.defaults);
  read_sampling(fields, model.tokenizer, ask.get());
  if (fields.has("stop_sequences")) ask->stops = texts_of(fields, "stop_sequences", 64);
  if (const Json* thinking = fields.object("thinking")) {
    const Fields inner(*thinking, "thinking.");
    const std::string* type = inner.word("type", {"enabled", "disabled", "adaptive"});
    if (const auto most = inner.whole("budget_tokens", 0, INT32_MAX)) ask->reasoning_tokens = *most;
    if (!ask->template_arguments.is_object()) ask->template_arguments = Json::object();
    if (type) ask->template_arguments["enable_thinking"] = *type != "disabled";
  }
  read_template_options(fields, ask.get());
  const Json tools = openai_tools(fields);
  read_tools(Fields(tools), ask.get(), skipped);
  set_messages(conversation_of(fields), ask.get());
  return ask;
}

// ---- answers ----

Json usage_of(uint32_t prompt, uint32_t cached, uint32_t output, uint32_t differs_at) {
  Json usage = {{"input_tokens", prompt - std::min(prompt, cached)},
                {"cache_creation_input_tokens", 0},
                {"cache_read_input_tokens", cached},
                {"output_tokens", output}};
  if (differs_at > 0) usage["differs_at"] = differs_at;
  return usage;
}

const char* stop_reason(const greta_request_result& result) {
  if (result.tool_calls > 0) return "tool_use";
  if (result.reason == GRETA_STOP_STRING) return "stop_sequence";
  return result.reason == GRETA_STOP_END ? "end_turn" : "max_tokens";
}

class MessageSink : public Sink {
 public:
  MessageSink(std::string model, bool stream, std::vector<std::string> stops)
      : id_(random_id("msg_")), model_(std::move(model)), stops_(std::move(stops)), stream_(stream) {}

  void begin(Reply& reply) override {
    if (stream_) reply.begin(event_stream());
  }

  void event(uint32_t, const greta_request_event& event) override {
    if (event.kind == GRETA_EVENT_START) start(event.prompt_tokens, event.cached_tokens);
    if (event.kind == GRETA_EVENT_CALL_START) return begin_call(event.id, event.name);
    if (event.kind == GRETA_EVENT_CALL_PIECE) return call_piece({event.text, event.bytes});
    if (event.kind == GRETA_EVENT_TOOL_CALL) return call(event);
    const bool thinking = event.kind == GRETA_EVENT_REASONING;
    if ((event.kind != GRETA_EVENT_TEXT && !thinking) || event.bytes == 0) return;
    const std::string text(event.text, event.bytes);
    open(thinking ? "thinking" : "text");
    Json& block = content_.back();
    auto& words = block[thinking ? "thinking" : "text"].get_ref<std::string&>();
    if (!stream_) return void(words += text);
    tell("content_block_delta", {{"index", content_.size() - 1},
                                 {"delta", thinking ? Json{{"type", "thinking_delta"}, {"thinking", text}}
                                                    : Json{{"type", "text_delta"}, {"text", text}}}});
  }

  void ended(uint32_t, const greta_request_result& result) override {
    result_ = result;
    if (!stream_) return;
    if (!started_) start(result.prompt_tokens, result.cached_tokens);
    close();
    tell("message_delta", {{"delta", {{"stop_reason", stop_reason(result)}, {"stop_sequence", sequence()}}},
                           {"usage", usage_of(result.prompt_tokens, result.cached_tokens,
                                              result.generated_tokens, differs_at)}});
    tell("message_stop", Json::object());
  }

  void failed(Reply& reply, const Refused& error) override {
    if (!stream_) return reply.send(error_response(Form::Anthropic, error));
    reply.write("event: error\ndata: " + dump(error_json(Form::Anthropic, error)) + "\n\n");
    reply.end();
  }

  void done(Reply& reply) override {
    if (stream_) return reply.end();
    Json message = head(result_.prompt_tokens, result_.cached_tokens, result_.generated_tokens);
    message["content"] = content_;
    message["stop_reason"] = stop_reason(result_);
    message["stop_sequence"] = sequence();
    reply.send({200, "application/json; charset=utf-8", dump(message), extra});
  }

  Headers extra;

 private:
  Json head(uint32_t prompt, uint32_t cached, uint32_t output) const {
    return {{"id", id_},
            {"type", "message"},
            {"role", "assistant"},
            {"model", model_},
            {"content", Json::array()},
            {"stop_reason", nullptr},
            {"stop_sequence", nullptr},
            {"usage", usage_of(prompt, cached, output, differs_at)}};
  }

  Json sequence() const {
    const auto stop = static_cast<size_t>(result_.stop_string);
    const bool stopped = result_.reason == GRETA_STOP_STRING && stop < stops_.size();
    return stopped ? Json(stops_[stop]) : Json();
  }

  void tell(const char* name, Json data) {
    Json json = {{"type", name}};
    json.update(data);
    out += std::string("event: ") + name + "\ndata: " + dump(json) + "\n\n";
  }

  void start(uint32_t prompt, uint32_t cached) {
    started_ = true;
    if (stream_) tell("message_start", {{"message", head(prompt, cached, 0)}});
  }

  // Begins a block of this type, unless one is open.
  void open(const std::string& type) {
    if (open_ == type) return;
    close();
    open_ = type;
    Json block = {{"type", type}, {type, ""}};
    if (type == "thinking") block["signature"] = "";
    content_.push_back(block);
    if (stream_) tell("content_block_start", {{"index", content_.size() - 1}, {"content_block", block}});
  }

  void close() {
    if (open_.empty()) return;
    const size_t index = content_.size() - 1;
    if (open_ == "thinking") {  // Clients give it back; it stands for nothing here.
      content_.back()["signature"] = id_;
      if (stream_)
        tell("content_block_delta",
             {{"index", index}, {"delta", {{"type", "signature_delta"}, {"signature", id_}}}});
    }
    open_.clear();
    if (stream_) tell("content_block_stop", {{"index", index}});
  }

  void begin_call(const char* id, const char* name) {
    close();
    open_ = "tool_use";
    content_.push_back({{"type", open_}, {"id", id}, {"name", name}, {"input", Json::object()}});
    if (stream_)
      tell("content_block_start", {{"index", content_.size() - 1}, {"content_block", content_.back()}});
  }

  void call_piece(const std::string& text) {
    if (stream_)
      tell("content_block_delta", {{"index", content_.size() - 1},
                                   {"delta", {{"type", "input_json_delta"}, {"partial_json", text}}}});
  }

  void call(const greta_request_event& event) {
    if (open_ != "tool_use") {  // it has not come in pieces
      begin_call(event.id, event.name);
      call_piece(event.arguments);
    }
    const Json input = Json::parse(event.arguments, nullptr, false);
    if (input.is_object()) content_.back()["input"] = input;
    close();
  }

  std::string id_, model_, open_;
  std::vector<std::string> stops_;
  const bool stream_;
  bool started_ = false;
  Json content_ = Json::array();
  greta_request_result result_ = sized<greta_request_result>();
};

}  // namespace

void messages(Context& context) {
  const Model& model = context.model();
  const Json& body = context.body();
  const Fields fields(body);
  std::string skipped;
  const std::shared_ptr<Ask> ask = ask_of(model, fields, &skipped);
  if (!fields.has("max_tokens")) throw Refused(400, "max_tokens is missing", "max_tokens");
  read_max_tokens(fields, {"max_tokens"}, false, ask.get());
  ask->prompt_events = 1;
  const bool stream = fields.flag("stream").value_or(false);
  ask->call_pieces = stream;
  const std::string* name = fields.text("model");
  auto sink = std::make_unique<MessageSink>(name ? *name : model.name, stream, ask->stops);
  if (!skipped.empty()) sink->extra = {{"X-Greta-Skipped-Tools", skipped}};
  context.start(std::move(sink), repeat(ask, 1));
}

void count_tokens(Context& context) {
  const Model& model = context.model();
  const Json& body = context.body();
  std::string skipped;
  const std::shared_ptr<Ask> ask = ask_of(model, Fields(body), &skipped);
  context.send({{"input_tokens", count_prompt(model, *ask)}});
}

}  // namespace greta::serve
