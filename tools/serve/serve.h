// The HTTP server, for the program that starts it: this header alone is for others.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/adapters.h"

namespace greta::serve {

// A client's key, and how many of its calls run at once, and run or wait; 0: no limit of its own.
struct Key {
  std::string text;
  uint32_t parallel = 0, queue = 0;
};

struct Settings;

// A model of which requests choose one.
struct Offer {
  std::string name, path;
  std::shared_ptr<const Settings> own{};  // none: it has what holds for all
  bool at_start = false;                  // It is loaded before it is asked for.
  uint32_t stop_s = 10;                   // how long its answers have when it is unloaded
};

struct Options {
  std::string host = "127.0.0.1";  // one that ends with ".sock" is the path of a unix socket
  uint16_t port = 8080;
  std::vector<int> sockets;               // that listen already, in place of both
  std::string tls_key, tls_certificate;   // files in PEM's form; "": there is no TLS
  std::vector<Key> keys;                  // none: everybody may ask
  std::vector<std::string> cors_origins;  // "*": all
  uint32_t parallel = 4;                  // requests that run at once
  uint32_t queue = 0;                     // that wait or run; 0: 4 x parallel beside those that run
  uint32_t drain_s = 30, ping_s = 15, timeout_s = 600;
  std::vector<Offer> models;  // none: the loader's is the only one
  uint32_t most_models = 4;   // that are loaded at once; 0: as many as fit
  uint32_t sleep_s = 0;  // A model that is idle for so long is unloaded until it is asked for; 0: none is
  bool autoload = true;  // A request loads its model.
  std::string alias;     // the model's name; "": that of its file
  std::string sampling;  // a JSON object of fields as in a request: what holds where it says nothing
  std::vector<std::string> given;  // fields of it that the model's file does not replace
  std::string chat_template;       // as greta_chat_options has it; "": the model's
  std::string template_arguments;  // a JSON object; "": none
  int64_t max_tokens = -1;
  int64_t reasoning_tokens = -1;
  bool shift = false, raw_reasoning = false;
  greta_draft_kind draft_kind = GRETA_DRAFT_NONE;  // who guesses tokens
  uint32_t draft_tokens = 0;                       // at most, for a step
  std::string draft_model;                         // path of the second model, of GRETA_DRAFT_MODEL
  bool slots = true, metrics = false, page = true;
  uint64_t host_cache_bytes = 0;
  std::string page_folder;
  std::string slot_folder;  // where the texts of slots are saved; "": they are not
  greta_pooling pooling = GRETA_POOLING_DEFAULT;
  std::string collector;               // of OpenTelemetry, which gets spans of requests; "": none does
  std::vector<tools::GivenAdapter> adapters;  // of the loader's model
  std::function<void(const std::string&)> say;  // lines for who started it
  std::function<void(const std::string&)> log;  // a line of JSON for each request that ended; none: no log
};

// How a model is opened.
struct Engine {
  bool map = true;
  greta_placement placement{};
  greta_executor_options executor{};  // context 0: the default
  bool whole_context = false;         // the context is the one that the model was trained for
  // Called before the model of this file is opened, with the runtime; it throws std::runtime_error with words
  // for the user if that must not be. May be empty.
  std::function<void(greta_runtime*, const std::string&)> prepare;
};

// What one of several models has of its own.
struct Settings {
  Options options;
  Engine engine;
  std::shared_ptr<const void> keeps;  // what pointers of the engine mean
};

// What the program opens: the runtime stays its own.
struct Loaded {
  greta_runtime* runtime = nullptr;
  std::string path;
  Engine engine;  // of models that have none of their own
};
// It is called once more if the device is lost, when nothing of the runtime is used any more.
using Loader = std::function<Loaded()>;

// Listens, loads the model while it answers that it does, and serves until SIGINT or SIGTERM. Returns an exit
// code, or throws std::runtime_error with words for the user.
int serve(const Options& options, const Loader& load);

}  // namespace greta::serve
