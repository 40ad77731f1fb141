// What the server says of itself and its model.
#include "endpoints.h"

namespace greta::serve {

void health(Context& context) {
  Server& server = context.server;
  if (server.stopping()) {
    Refused refused(503, "the server is stopping");
    refused.type = "unavailable_error";
    throw refused;
  }
  if (!server.started()) throw server.not_loaded(server.models().find(""));
  const Loss loss = server.models().loss();
  if (loss.opening || !loss.failure.empty()) {
    Refused refused(503, loss.opening ? "the device was lost, and is opened again" : loss.failure);
    refused.type = "unavailable_error";
    refused.more = {{"device_losses", loss.count}, {"device_error", loss.words}};
    refused.retry_s = loss.opening ? 1 : 0;
    throw refused;
  }
  Json json = {{"status", "ok"}};
  if (loss.count > 0) json.update({{"device_losses", loss.count}, {"device_error", loss.words}});
  context.send(json);
}

static Json model_json(Models& models, Hosted* hosted) {
  Json json = {{"id", hosted->name}, {"object", "model"}, {"owned_by", "greta"}};
  if (!models.hold(hosted, false)) {
    json["created"] = 0;
    json["status"] = {{"value", state_name(hosted->state)}};
    if (hosted->state == Hosted::State::Failed) json["status"]["failure"] = models.failure_of(hosted);
    return json;
  }
  const Model& model = hosted->model;
  json.update({{"created", model.created_s},
               {"context_length", model.context},
               {"max_model_len", model.context},
               {"status", {{"value", "loaded"}}},
               {"meta",
                {{"n_ctx", model.context},
                 {"n_ctx_train", model.info.context},
                 {"n_vocab", model.info.vocab_size},
                 {"n_embd", model.info.width},
                 {"n_params", model.info.parameters},
                 {"size", model.info.weights_bytes},
                 {"architecture", model.info.architecture},
                 {"type", model.info.type}}}});
  models.release(hosted);
  return json;
}

static void must_have_started(Context& context) {
  Server& server = context.server;
  if (!server.started()) throw server.not_loaded(server.models().find(""));
}

void list_models(Context& context) {
  must_have_started(context);
  Json data = Json::array(), entries = Json::array();
  for (const auto& hosted : context.server.models().all()) {
    data.push_back(model_json(context.server.models(), hosted.get()));
    Json entry = {{"name", hosted->name}, {"model", hosted->name},
                  {"type", "model"},      {"capabilities", Json::array({"completion"})},
                  {"slug", hosted->name}, {"display_name", hosted->name}};
    if (data.back().contains("context_length")) entry["context_window"] = data.back()["context_length"];
    entries.push_back(std::move(entry));
  }
  context.send({{"object", "list"}, {"data", data}, {"models", entries}});
}

// With one model any name means it, since clients send their own.
void show_model(Context& context) {
  must_have_started(context);
  Models& models = context.server.models();
  const std::string& path = context.call.path;
  const std::string name = path.substr(path.find("/models/") + 8);
  Hosted* hosted = models.find(name);
  if (!hosted) throw Refused(404, "there is no model " + json_string(name));
  context.send(model_json(models, hosted));
}

static Hosted* model_of_body(Context& context) {
  must_have_started(context);
  const Json& body = context.body();
  const std::string* name = Fields(body).text("model");
  if (!name) throw Refused(400, "model is missing", "model");
  Hosted* hosted = context.server.models().find(*name);
  if (!hosted) throw Refused(404, "there is no model " + json_string(*name), "model");
  return hosted;
}

void load_model(Context& context) {
  context.server.models().want(model_of_body(context));
  context.send({{"success", true}});
}

void unload_model(Context& context) {
  context.server.models().unwant(model_of_body(context));
  context.send({{"success", true}});
}

Json props_json(const Model& model, const Options& options) {
  const Sampling& sampling = model.defaults.sampling;
  const Json params = {{"temperature", sampling.temperature},
                       {"top_k", sampling.top_k},
                       {"top_p", sampling.top_p},
                       {"min_p", sampling.min_p},
                       {"typical_p", sampling.typical_p},
                       {"repeat_penalty", sampling.repeat_penalty},
                       {"repeat_last_n", sampling.repeat_last_n},
                       {"seed", sampling.seed},
                       {"n_predict", model.defaults.max_tokens}};
  const greta_tokenizer* tokenizer = model.tokenizer;
  return {{"default_generation_settings", {{"n_ctx", model.context}, {"params", params}}},
          {"total_slots", options.parallel},
          {"model_alias", model.name},
          {"model_path", model.path},
          {"n_ctx", model.context},
          {"chat_template", greta_tokenizer_template(tokenizer)},
          {"bos_token_id", greta_tokenizer_bos(tokenizer)},
          {"eos_token_id", greta_tokenizer_eos(tokenizer)},
          {"modalities", {{"vision", false}, {"audio", false}}},
          {"models_autoload", options.autoload && !options.models.empty()},
          {"is_sleeping", false},
          {"build_info", "greta " + std::to_string(greta_version())}};
}

// A model that sleeps is not woken: what is told is what was so when it fell asleep.
void props(Context& context) {
  if (!context.asleep) return context.send(props_json(context.model(), *context.hosted->options));
  Json json = context.server.models().props_asleep(context.hosted);
  json["is_sleeping"] = true;
  context.send(json);
}

void metrics(Context& context) {
  if (!context.server.options().metrics) {
    Refused refused(501, "metrics are off: start the server with --metrics");
    throw refused;
  }
  greta_service* service = context.asleep ? nullptr : context.model().service;  // What was counted stays.
  Response response;
  response.type = "text/plain; version=0.0.4; charset=utf-8";
  response.body = context.hosted->metrics.text(service, context.hosted->name);
  context.reply->send(std::move(response));
}

}  // namespace greta::serve
