// The part of Ollama's API that editors and homes look for.
#include <ctime>

#include "endpoints.h"

namespace greta::serve {
namespace {

std::string date_text(int64_t seconds) {
  const auto time = static_cast<time_t>(seconds);
  struct tm parts{};
  gmtime_r(&time, &parts);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

std::string size_name(uint64_t parameters) {
  char text[32];
  const auto count = static_cast<double>(parameters);
  if (count >= 1e9)
    std::snprintf(text, sizeof text, "%.1fB", count / 1e9);
  else
    std::snprintf(text, sizeof text, "%.1fM", count / 1e6);
  return text;
}

Json details_of(const Model& model) {
  return {{"parent_model", ""},
          {"format", "gguf"},
          {"family", model.info.architecture},
          {"families", Json::array({model.info.architecture})},
          {"parameter_size", size_name(model.info.parameters)},
          {"quantization_level", model.info.type}};
}

Json entry_of(const Model& model) {
  char digest[17];
  std::snprintf(digest, sizeof digest, "%016llx", static_cast<unsigned long long>(model.info.identity));
  return {{"name", model.name},
          {"model", model.name},
          {"modified_at", date_text(model.created_s)},
          {"size", model.info.weights_bytes},
          {"digest", digest},
          {"details", details_of(model)}};
}

// One line of JSON for each piece.
class LineSink : public Sink {
 public:
  LineSink(std::string model, bool chat, bool stream)
      : model_(std::move(model)), chat_(chat), stream_(stream) {}

  void begin(Reply& reply) override {
    if (stream_) reply.begin({200, "application/x-ndjson", "", {}});
  }

  void event(uint32_t, const greta_request_event& event) override {
    if (event.kind == GRETA_EVENT_TOOL_CALL) {
      Json arguments = Json::parse(event.arguments, nullptr, false);
      if (!arguments.is_object()) arguments = Json::object();
      Json call = {{"id", event.id}, {"function", {{"name", event.name}, {"arguments", arguments}}}};
      if (stream_) return line("", "", Json::array({call}));
      return calls_.push_back(std::move(call));
    }
    const bool thinking = event.kind == GRETA_EVENT_REASONING;
    if ((event.kind != GRETA_EVENT_TEXT && !thinking) || event.bytes == 0) return;
    const std::string text(event.text, event.bytes);
    if (!stream_) return void((thinking ? thinking_ : text_) += text);
    if (thinking)
      line("", text, Json::array());
    else
      line(text, "", Json::array());
  }

  void ended(uint32_t, const greta_request_result& result) override { result_ = result; }

  void failed(Reply& reply, const Refused& error) override {
    if (!stream_) return reply.send(error_response(Form::Ollama, error));
    reply.write(dump(error_json(Form::Ollama, error)) + "\n");
    reply.end();
  }

  void done(Reply& reply) override {
    Json json = part(text_, thinking_, calls_);
    json["done"] = true;
    json["done_reason"] = std::string_view(finish_reason(result_)) == "length" ? "length" : "stop";
    json["total_duration"] = result_.queued_ns + result_.prompt_ns + result_.generate_ns;
    json["load_duration"] = 0;
    json["prompt_eval_count"] = result_.prompt_tokens;
    json["prompt_eval_duration"] = result_.prompt_ns;
    json["eval_count"] = result_.generated_tokens;
    json["eval_duration"] = result_.generate_ns;
    if (!stream_) return reply.send({200, "application/json; charset=utf-8", dump(json), {}});
    reply.write(dump(json) + "\n");
    reply.end();
  }

 private:
  Json part(const std::string& text, const std::string& thinking, const Json& calls) const {
    Json json = {{"model", model_}, {"created_at", date_text(now_s())}};
    Json holder = Json::object();
    holder[chat_ ? "content" : "response"] = text;
    if (!thinking.empty()) holder["thinking"] = thinking;
    if (!calls.empty()) holder["tool_calls"] = calls;
    if (chat_) {
      Json message = {{"role", "assistant"}};
      message.update(holder);
      json["message"] = message;
    } else {
      json.update(holder);
    }
    json["done"] = false;
    return json;
  }

  void line(const std::string& text, const std::string& thinking, const Json& calls) {
    out += dump(part(text, thinking, calls)) + "\n";
  }

  std::string model_, text_, thinking_;
  const bool chat_, stream_;
  Json calls_ = Json::array();
  greta_request_result result_ = sized<greta_request_result>();
};

void read_ollama(const Fields& fields, const Model& model, Ask* ask) {
  if (const Json* given = fields.object("options")) {
    const Fields options(*given, "options.");
    read_sampling(options, model.tokenizer, ask);
    read_max_tokens(options, {"num_predict"}, true, ask);
  }
  if (const Json* form = fields.find("format")) {
    if (form->is_object())
      ask->sampling.schema = dump(*form);
    else if (const std::string* word = fields.word("format", {"json", ""}); *word == "json")
      ask->sampling.schema = R"({"type":"object"})";
  }
  const Json* think = fields.find("think");
  if (think && !think->is_boolean() && !think->is_string())
    fields.wrong("think", "true, false or a text", *think);
  if (!think) return;
  if (!ask->template_arguments.is_object()) ask->template_arguments = Json::object();
  ask->template_arguments["enable_thinking"] = think->is_boolean() ? *think : Json(true);
  if (think->is_string()) ask->template_arguments["reasoning_effort"] = *think;
}

void start_lines(Context& context, const Fields& fields, std::shared_ptr<Ask> ask, bool chat) {
  const std::string* name = fields.text("model");
  const bool stream = fields.flag("stream").value_or(true);
  auto sink = std::make_unique<LineSink>(name ? *name : context.model().name, chat, stream);
  context.start(std::move(sink), repeat(std::move(ask), 1));
}

}  // namespace

void ollama_version(Context& context) {
  const uint32_t version = greta_version();
  context.send({{"version", std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) +
                                "." + std::to_string(version % 100)}});
}

void ollama_tags(Context& context) {
  Models& models = context.server.models();
  if (!context.server.started()) throw context.server.not_loaded(models.find(""));
  Json list = Json::array();
  for (const auto& hosted : models.all()) {
    if (!models.hold(hosted.get(), false)) {
      list.push_back({{"name", hosted->name}, {"model", hosted->name}});
      continue;
    }
    list.push_back(entry_of(hosted->model));
    models.release(hosted.get());
  }
  context.send({{"models", list}});
}

static Json capabilities_of(const Model& model) {
  Json list = {"completion", "tools"};
  if (can_fill(model.tokenizer)) list.push_back("insert");
  return list;
}

void ollama_show(Context& context) {
  const Model& model = context.model();
  (void)context.body();
  const std::string architecture = model.info.architecture;
  Json info = {{"general.architecture", architecture}, {"general.parameter_count", model.info.parameters}};
  info[architecture + ".context_length"] = model.context;  // the live one: clients count on it
  info[architecture + ".embedding_length"] = model.info.width;
  info[architecture + ".block_count"] = model.info.layers;
  context.send({{"modelfile", ""},
                {"parameters", "num_ctx " + std::to_string(model.context)},
                {"template", greta_tokenizer_template(model.tokenizer)},
                {"details", details_of(model)},
                {"model_info", info},
                {"capabilities", capabilities_of(model)},
                {"modified_at", date_text(model.created_s)}});
}

void ollama_chat(Context& context) {
  const Model& model = context.model();
  const Json& body = context.body();
  const Fields fields(body);
  auto ask = std::make_shared<Ask>(model.defaults);
  read_ollama(fields, model, ask.get());
  std::string skipped;
  read_tools(fields, ask.get(), &skipped);
  std::vector<Json> messages = read_messages(fields);
  for (size_t i = 0; i < messages.size(); ++i) {
    Json& message = messages[i];
    if (message.contains("images") && message["images"].is_array() && !message["images"].empty())
      throw Refused(400, "messages[" + std::to_string(i) + "].images: only text is read", "messages");
    if (message.contains("thinking")) message["reasoning_content"] = message["thinking"];
  }
  set_messages(std::move(messages), ask.get());
  start_lines(context, fields, std::move(ask), true);
}

void ollama_generate(Context& context) {
  const Model& model = context.model();
  const Json& body = context.body();
  const Fields fields(body);
  auto ask = std::make_shared<Ask>(model.defaults);
  read_ollama(fields, model, ask.get());
  const std::string *prompt = fields.text("prompt"), *system = fields.text("system");
  const std::string* suffix = fields.text("suffix");
  if (!prompt || prompt->empty()) {  // It asks whether the model is there.
    const std::string* name = fields.text("model");
    return context.send({{"model", name ? *name : model.name},
                         {"created_at", date_text(now_s())},
                         {"response", ""},
                         {"done", true},
                         {"done_reason", "load"}});
  }
  if (suffix && !suffix->empty()) {
    const Gap gap{encode(model.tokenizer, *prompt, 0), encode(model.tokenizer, *suffix, 0), {}, {}};
    const int64_t most = ask->max_tokens;
    ask->tokens = fill_prompt(model, gap, most > 0 ? static_cast<uint32_t>(most) : 256);
  } else if (fields.flag("raw").value_or(false)) {
    ask->tokens = encode(model.tokenizer, *prompt, GRETA_ENCODE_BOS | uint32_t{GRETA_ENCODE_SPECIAL});
  } else {
    std::vector<Json> messages;
    if (system && !system->empty()) messages.push_back({{"role", "system"}, {"content", *system}});
    messages.push_back({{"role", "user"}, {"content", *prompt}});
    set_messages(std::move(messages), ask.get());
  }
  start_lines(context, fields, std::move(ask), false);
}

}  // namespace greta::serve
