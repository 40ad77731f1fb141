// greta-cli serve: the options of the HTTP server, under the names of llama-server. tools/serve is the
// server.
#if GRETA_SERVE
#include <unistd.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <sstream>

#include "adapters.h"
#include "commands/commands.h"
#include "commands/serve_options.h"
#include "console.h"
#include "json.h"
#include "model.h"
#include "slips.h"

namespace greta::cli {
namespace {

void add_network(CLI::App& app, ServeOptions& options) {
  serve::Options& serve = options.serve;
  app.add_option("--host", serve.host,
                 "listen on this address; one that ends with .sock is the path of a unix socket")
      ->type_name("HOST")
      ->check(not_empty())
      ->capture_default_str();
  app.add_option("--port", serve.port, "listen on this port; 0: one that is free")
      ->type_name("N")
      ->check(in_range(int64_t{0}, 65535))
      ->capture_default_str();
  app.add_option("--api-key", options.keys,
                 "answer only who has this key, or one of several with commas between")
      ->type_name("KEY")
      ->allow_extra_args(false)
      ->take_all();
  app.add_option("--api-key-file", options.key_file,
                 "take the keys from this file, one on each line; parallel=N and queue=N behind a key limit "
                 "its requests")
      ->type_name("FILE");
  CLI::Option* key =
      app.add_option("--ssl-key-file", serve.tls_key, "speak TLS with this private key, in PEM's form");
  CLI::Option* certificate = app.add_option("--ssl-cert-file", serve.tls_certificate,
                                            "and with this certificate, and those that it depends on");
  key->type_name("FILE")->needs(certificate);
  certificate->type_name("FILE")->needs(key);
  app.add_option("--cors-origins", options.origins,
                 "let pages of these origins use the server, with commas between; *: of all")
      ->type_name("ORIGINS")
      ->allow_extra_args(false)
      ->take_all();
  app.add_option("--timeout", serve.timeout_s, "leave a client that takes nothing for so many seconds")
      ->type_name("S")
      ->check(in_range(int64_t{1}, 86400))
      ->capture_default_str();
  app.add_option("--sse-ping-interval", serve.ping_s,
                 "write a comment into a stream after so many seconds without anything; 0: none")
      ->type_name("S")
      ->check(in_range(int64_t{0}, 3600))
      ->capture_default_str();
  app.add_option("--drain", serve.drain_s, "after SIGTERM, wait so many seconds for answers under way")
      ->type_name("S")
      ->check(in_range(int64_t{0}, 86400))
      ->capture_default_str();
}

void add_serving(CLI::App& app, ServeOptions& options) {
  serve::Options& serve = options.serve;
  app.add_option("-a,--alias", serve.alias, "call the model this; without it by the name of its file")
      ->type_name("NAME");
  app.add_option("--slot-save-path", serve.slot_folder,
                 "let POST /slots/N?action=save write what slot N has read to a file of this folder")
      ->type_name("FOLDER");
  app.add_flag("--log-jsonl", options.log_jsonl,
               "write a line of JSON for each request that ended to stdout");
  app.add_option("--otlp-endpoint", serve.collector,
                 "send spans of requests to this collector of OpenTelemetry, such as http://localhost:4318")
      ->type_name("URL");
  app.add_flag("--metrics", serve.metrics, "answer /metrics with counts and times for Prometheus");
  app.add_flag("!--no-slots", serve.slots, "do not answer /slots");
  app.add_flag("!--no-ui,!--no-webui", serve.page, "do not answer / with the page for browsers");
}

// How many requests a model has at once, and what it keeps of them.
void add_cache(CLI::App& app, ServeOptions& options) {
  serve::Options& serve = options.serve;
  app.add_option("--parallel", options.parallel, "run at most N requests at once; -1: 4")
      ->type_name("N")
      ->check(in_range(int64_t{-1}, 256))
      ->capture_default_str();
  app.add_option("--queue", serve.queue,
                 "let at most N requests run or wait, and refuse others with 429; 0: 5 for each that runs")
      ->type_name("N")
      ->check(in_range(int64_t{0}, 65536))
      ->capture_default_str();
  app.add_option("--cache-tokens", options.cache_tokens,
                 "the tokens that the cache holds for all requests; 0: full contexts, or what fits")
      ->type_name("N")
      ->check(in_range(int64_t{0}, INT32_MAX));
  app.add_option("--cache-ram", options.cache_ram_mib,
                 "keep so many MiB of what left the device's cache in the host's memory")
      ->type_name("MIB")
      ->check(in_range(int64_t{-1}, int64_t{1} << 24))
      ->capture_default_str();
  app.add_option("--cache-dir", serve.page_folder,
                 "keep what was read in this folder, so that it survives a restart")
      ->type_name("FOLDER");
  app.add_option("--pooling", options.pooling,
                 "what an embedding is made of: mean, cls, last [what the file says]")
      ->type_name("NAME")
      ->check(one_of({"mean", "cls", "last"}));
}

void add_models(CLI::App& app, ServeOptions& options) {
  serve::Options& serve = options.serve;
  app.add_option(
         "--models-dir", options.models,
         "serve the models of this folder, and of folders in it: requests choose one, which is loaded")
      ->type_name("FOLDER");
  app.add_option("--models-preset", options.presets,
                 "serve the models of this INI file: a section is a model, and its keys are options of serve")
      ->type_name("FILE");
  app.add_option(
         "--models-max", serve.most_models,
         "have at most N models loaded; the one that was used least recently leaves; 0: as many as fit")
      ->type_name("N")
      ->check(in_range(int64_t{0}, 1024))
      ->capture_default_str();
  app.add_flag("--models-autoload,!--no-models-autoload", serve.autoload,
               "load the model that a request names, which is the default; else POST /models/load does");
  app.add_option("--sleep-idle-seconds", options.sleep,
                 "unload a model that is idle for so long; the next request loads it; -1: never")
      ->type_name("S")
      ->check(in_range(int64_t{-1}, int64_t{1} << 31))
      ->capture_default_str();
}

void add_answers(CLI::App& app, ServeOptions& options) {
  serve::Options& serve = options.serve;
  app.add_option("-n,--predict", options.predict,
                 "answer with at most N tokens where a request says nothing; -1: no limit")
      ->type_name("N")
      ->check(in_range(int64_t{-1}, INT32_MAX))
      ->capture_default_str();
  app.add_flag_callback(
         "--context-shift", [&options] { options.shift = true; },
         "let the oldest tokens leave a full context, and go on")
      ->trigger_on_parse();
  app.add_flag_callback(
         "--no-context-shift", [&options] { options.shift = false; },
         "end an answer where the context is full, which is the default")
      ->trigger_on_parse();
  CLI::Option* form =
      app.add_option("--chat-template", serve.chat_template,
                     "use this Jinja text in place of the model's, or chatml, llama3, gemma, phi3, mistral");
  form->type_name("TEXT");
  app.add_option("--chat-template-file", options.template_file, "take the template from a file")
      ->type_name("FILE")
      ->excludes(form);
  app.add_option("--chat-template-kwargs", serve.template_arguments,
                 "pass a JSON object of variables to the template")
      ->type_name("JSON");
  app.add_option("--reasoning", options.reasoning,
                 "auto, on or off: whether the template lets the model think")
      ->type_name("R")
      ->check(one_of({"auto", "on", "off"}))
      ->capture_default_str();
  app.add_option("--reasoning-budget", options.reasoning_budget,
                 "close the reasoning after N tokens; -1: no limit")
      ->type_name("N")
      ->check(in_range(int64_t{-1}, INT32_MAX))
      ->capture_default_str();
  app.add_option("--reasoning-format", options.reasoning_format,
                 "none: leave the reasoning in the text; else it comes as reasoning_content")
      ->type_name("F")
      ->check(one_of({"auto", "none", "deepseek", "deepseek-legacy"}))
      ->capture_default_str();
}

// The options of sampling as fields of a request.
std::string sampling_fields(const SamplingOptions& s) {
  Json json = {{"temperature", s.temperature},
               {"dynatemp_range", s.dynamic_range},
               {"dynatemp_exponent", s.dynamic_exponent},
               {"top_k", s.top_k},
               {"top_p", s.top_p},
               {"min_p", s.min_p},
               {"typical_p", s.typical_p},
               {"top_n_sigma", s.top_n_sigma},
               {"xtc_probability", s.xtc_probability},
               {"xtc_threshold", s.xtc_threshold},
               {"repeat_penalty", s.repeat_penalty},
               {"presence_penalty", s.presence_penalty},
               {"frequency_penalty", s.frequency_penalty},
               {"repeat_last_n", s.repeat_last_n},
               {"dry_multiplier", s.dry_multiplier},
               {"dry_base", s.dry_base},
               {"dry_allowed_length", s.dry_allowed_length},
               {"dry_penalty_last_n", s.dry_last_n},
               {"mirostat", s.mirostat},
               {"mirostat_tau", s.mirostat_entropy},
               {"mirostat_eta", s.mirostat_rate},
               {"seed", s.seed},
               {"stop", s.stops}};
  if (!s.dry_breakers.empty()) {
    Json breakers = Json::array();
    for (const std::string& text : s.dry_breakers)
      if (text != "none") breakers.push_back(unescape(text));
    json["dry_sequence_breakers"] = breakers;
  }
  if (!s.samplers.empty()) json["samplers"] = parts_of({s.samplers}, ';');
  const std::string grammar = s.grammar_file.empty() ? s.grammar : read_file(s.grammar_file);
  if (!grammar.empty()) json["grammar"] = grammar;
  return json_text(json, -1);
}

// Long names of options of sampling, and the fields of requests that they set.
constexpr std::pair<const char*, const char*> kGiven[] = {
    {"temp", "temperature"},
    {"top-k", "top_k"},
    {"top-p", "top_p"},
    {"min-p", "min_p"},
    {"repeat-penalty", "repeat_penalty"},
    {"repeat-last-n", "repeat_last_n"},
    {"xtc-probability", "xtc_probability"},
    {"xtc-threshold", "xtc_threshold"},
    {"mirostat", "mirostat"},
    {"mirostat-ent", "mirostat_tau"},
    {"mirostat-lr", "mirostat_eta"},
    {"samplers", "samplers"},
};

// "folder/model-00001-of-00003.gguf" -> "model", or "" for a file that is no model of its own.
std::string model_name(const std::filesystem::path& path) {
  if (path.extension() != ".gguf") return "";
  std::string name = path.stem().string();
  if (name.starts_with("mmproj")) return "";
  const size_t part = name.rfind("-of-");
  const size_t digits = part == name.npos ? name.npos : name.rfind('-', part - 1);
  if (digits == name.npos || name.size() - part != 9 || part - digits != 6) return name;
  return name.compare(digits, 6, "-00001") == 0 ? name.substr(0, digits) : "";
}

// A folder's models, by their names. One that is alone in a folder within it has that folder's name.
std::vector<serve::Offer> models_of(const std::string& folder) {
  namespace fs = std::filesystem;
  std::map<std::string, std::string> models;
  std::error_code error;
  const auto list = [&](const fs::path& in) {
    std::map<std::string, std::string> found;
    for (const fs::directory_entry& each : fs::directory_iterator(in, error))
      if (const std::string name = model_name(each.path()); !name.empty() && each.is_regular_file(error))
        found[name] = each.path().string();
    return found;
  };
  models = list(folder);
  if (error) throw Failed("cannot read " + folder + ": " + error.message());
  for (const fs::directory_entry& each : fs::directory_iterator(folder, error)) {
    if (!each.is_directory(error)) continue;
    for (const auto& [name, path] : list(each.path()))
      models[list(each.path()).size() == 1 ? each.path().filename().string() : name] = path;
  }
  if (models.empty()) throw Failed("there are no .gguf files in " + folder);
  std::vector<serve::Offer> offers;
  for (const auto& [name, path] : models) offers.push_back({name, path});
  return offers;
}

greta_pooling pooling_named(const std::string& name) {
  if (name == "mean") return GRETA_POOLING_MEAN;
  if (name == "cls") return GRETA_POOLING_FIRST;
  return name == "last" ? GRETA_POOLING_LAST : GRETA_POOLING_DEFAULT;
}

// "KEY", or "KEY parallel=2 queue=8"
serve::Key key_of_line(const std::string& line) {
  serve::Key key;
  const std::vector<std::string> words = parts_of({line}, ' ');
  if (words.empty()) return key;
  key.text = words[0];
  for (size_t i = 1; i < words.size(); ++i) {
    const size_t equals = std::min(words[i].find('='), words[i].size());
    const std::string name = words[i].substr(0, equals),
                      number = words[i].substr(std::min(equals + 1, words[i].size()));
    const bool whole =
        !number.empty() && number.size() < 7 && number.find_first_not_of("0123456789") == number.npos;
    if (!whole || (name != "parallel" && name != "queue"))
      throw Misused("--api-key-file: a line is KEY, or KEY parallel=N queue=N, and not with " + words[i]);
    (name == "queue" ? key.queue : key.parallel) = static_cast<uint32_t>(std::stoul(number));
  }
  return key;
}

// The sockets that systemd passes on: LISTEN_FDS of them, from 3 on, if LISTEN_PID is this process.
std::vector<int> passed_sockets() {
  const char *process = std::getenv("LISTEN_PID"), *number = std::getenv("LISTEN_FDS");
  std::vector<int> sockets;
  if (!process || !number || std::to_string(getpid()) != process) return sockets;
  const int count = std::clamp(std::atoi(number), 0, 64);
  for (int i = 0; i < count; ++i) sockets.push_back(3 + i);
  for (const char* name : {"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"}) unsetenv(name);
  return sockets;
}

serve::Options settled(const CLI::App& app, const ServeOptions& options) {
  serve::Options serve = options.serve;
  serve.sockets = passed_sockets();
  for (const std::string& key : parts_of(options.keys, ',')) serve.keys.push_back({key});
  if (!options.key_file.empty())
    for (const std::string& line : parts_of({read_file(options.key_file)}, '\n'))
      serve.keys.push_back(key_of_line(line));
  if (serve.keys.empty() && (!options.keys.empty() || !options.key_file.empty()))
    throw Misused("--api-key and --api-key-file give no key");
  serve.cors_origins = parts_of(options.origins, ',');
  std::error_code error;
  if (!serve.slot_folder.empty() && !std::filesystem::is_directory(serve.slot_folder, error))
    throw Failed("--slot-save-path: there is no folder " + serve.slot_folder);
  settle_for_model(options, &serve);
  serve.sleep_s = options.sleep < 0 ? 0 : static_cast<uint32_t>(std::max<int64_t>(options.sleep, 1));
  const bool many = !options.models.empty() || !options.presets.empty();
  if (many && !options.engine.model.path.empty())
    throw Misused("-m and --models-dir or --models-preset exclude each other");
  if (!options.models.empty()) serve.models = models_of(options.models);
  if (!options.presets.empty()) add_presets(options.presets, app, options, &serve.models);
  for (const GivenAdapter& each : given_adapters(options.engine.adapters))
    serve.adapters.push_back(each);
  if (!serve.adapters.empty() && many)
    throw Misused(
        "adapters are for one model: --models-dir and --models-preset exclude --lora and "
        "--control-vector");
  serve.say = [](const std::string& line) { note(line); };
  if (options.log_jsonl) serve.log = [](const std::string& line) { write_output(line + "\n"); };
  return serve;
}

int serve_model(const CLI::App& app, const ServeOptions& options) {
  options.engine.verbosity.apply();
  const serve::Options serve = settled(app, options);
  Runtime runtime;  // closed after the server
  return serve::serve(serve, [&] {
    serve::Loaded loaded;
    if (serve.models.empty()) loaded.path = model_path(options.engine.model);
    runtime.reset();  // one whose device was lost
    loaded.engine = engine_of(options);
    runtime = open_runtime(options.engine.device, loaded.path, loaded.engine.executor);
    loaded.runtime = runtime.get();
    say_later_notes();
    return loaded;
  });
}

}  // namespace

std::vector<std::string> parts_of(const std::vector<std::string>& texts, char separator) {
  std::vector<std::string> parts;
  for (const std::string& text : texts) {
    std::istringstream stream(text);
    for (std::string part; std::getline(stream, part, separator);) {
      if (!part.empty() && part.back() == '\r') part.pop_back();
      if (!part.empty()) parts.push_back(part);
    }
  }
  return parts;
}

void add_for_model(CLI::App& app, ServeOptions& options) {
  add_cache(app, options);
  add_answers(app, options);
  add_options(app, options.sampling);
  add_mapping(app, options.engine.model);
  add_options(app, options.engine.context);
  add_placement(app, options.engine.device);
}

void settle_for_model(const ServeOptions& options, serve::Options* serve) {
  serve->parallel = options.parallel < 1 ? 4 : static_cast<uint32_t>(options.parallel);
  if (options.sampling.mirostat == 1) throw Misused("--mirostat takes 2, or 0 for none");
  serve->sampling = sampling_fields(options.sampling);
  for (const auto& [name, field] : kGiven)
    if (options.sampling.given.count(name)) serve->given.emplace_back(field);
  if (options.sampling.given.count("sampling-seq"))
    throw Misused("serve takes --samplers NAMES in place of --sampling-seq");
  if (!options.template_file.empty()) serve->chat_template = read_file(options.template_file);
  if (options.reasoning != "auto") {
    Json arguments =
        Json::parse(serve->template_arguments.empty() ? "{}" : serve->template_arguments, nullptr, false);
    if (!arguments.is_object()) throw Misused("--chat-template-kwargs takes a JSON object");
    arguments["enable_thinking"] = options.reasoning == "on";
    serve->template_arguments = json_text(arguments, -1);
  }
  serve->raw_reasoning = options.reasoning_format == "none";
  serve->max_tokens = options.predict;
  serve->reasoning_tokens = options.reasoning_budget;
  serve->shift = options.shift;
  const greta_draft_options draft = draft_options(options.sampling.draft);
  serve->draft_kind = static_cast<greta_draft_kind>(draft.kind);
  serve->draft_tokens = draft.depth;
  serve->draft_model = options.sampling.draft.model;
  serve->host_cache_bytes =
      options.cache_ram_mib < 0 ? UINT64_MAX >> 8 : static_cast<uint64_t>(options.cache_ram_mib) << 20;
  serve->pooling = pooling_named(options.pooling);
}

serve::Engine engine_of(const ServeOptions& options) {
  serve::Engine engine;
  engine.map = !options.engine.model.copy;
  engine.placement = placement_of(options.engine.device);
  const ContextOptions& context = options.engine.context;
  engine.executor = executor_options(context, 0, 0);
  engine.executor.cache_tokens = static_cast<uint32_t>(options.cache_tokens);
  engine.executor.draft_head = drafter_of(options.sampling.draft) == "draft-mtp" ? 1 : 0;
  engine.whole_context = context.context == 0;
  return engine;
}

Action serve_command(CLI::App& app) {
  auto options = std::make_shared<ServeOptions>();
  add_network(app, *options);
  add_serving(app, *options);
  add_models(app, *options);
  add_cache(app, *options);
  add_answers(app, *options);
  add_options(app, options->sampling);
  add_options(app, options->engine);
  add_options(app, options->engine.adapters);
  app.footer("docs/server.md has the endpoints. The options of sampling hold where a request says nothing.");
  return [options, &app] { return serve_model(app, *options); };
}

}  // namespace greta::cli
#endif
