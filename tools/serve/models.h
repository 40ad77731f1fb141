// The models of the server, and the one thread that loads and unloads them.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "ask.h"
#include "jobs.h"
#include "metrics.h"
#include "serve.h"

namespace greta::serve {

// A model that is loaded.
struct Model {
  greta_model* model = nullptr;
  greta_service* service = nullptr;
  greta_model* second = nullptr;  // which guesses tokens
  greta_executor* second_executor = nullptr;
  const greta_tokenizer* tokenizer = nullptr;
  greta_model_info info{};
  Ask defaults;  // what holds where a request says nothing
  std::string name, path;
  uint32_t context = 0;       // of one request
  uint32_t cache_tokens = 0;  // of all
  int64_t created_s = 0;
};

// A model that the server may load. It stays until the server ends.
struct Hosted {
  enum class State : uint8_t { Unloaded, Loading, Loaded, Sleeping, Failed };
  using Clock = std::chrono::steady_clock;

  std::string name, path;
  const Options* options = nullptr;  // its own, or what holds for all
  const Engine* engine = nullptr;
  std::chrono::seconds patience{10};  // how long its answers have when it is unloaded
  Metrics metrics;
  Model model;                 // while it is loaded
  std::unique_ptr<Jobs> jobs;  // while it is loaded
  std::atomic<State> state{State::Unloaded};
  std::atomic<uint64_t> done{0}, total{0};  // of loading
  std::atomic<const char*> stage{"opening the device"};
  std::atomic<bool> cancelled{false};  // Loading is to end.
  // Under the mutex of Models:
  bool wanted = false, unwanted = false;       // It is to be loaded; it is to be unloaded.
  uint32_t users = 0;                          // calls that hold it
  Clock::time_point used = Clock::now();       // when one took it last, or was answered
  Json props;                                  // what /props said when it fell asleep
  std::string failure;                         // why it could not be loaded
  std::vector<std::function<void()>> waiting;  // called when it is loaded, or could not be
};

// What has become of the device.
struct Loss {
  uint32_t count = 0;    // how often it was lost
  std::string words;     // what the library said of the last loss
  std::string failure;   // why it could not be opened again; "": it could, or will be
  bool opening = false;  // It is being opened again.
};

class Models {
 public:
  using OnEnd = std::function<void(Hosted&, const Ended&)>;
  Models(const Options& options, OnEnd on_end);
  ~Models() { close(); }

  // Lists the models, and loads one if it is the only one. `loaded` is called before a thread may change
  // them. Throws std::runtime_error.
  void start(const Loader& load, const std::function<void()>& loaded);
  void close();  // unloads all
  void cancel_all();
  void stop_loading();
  Loss loss();

  bool many() const { return many_; }  // a request chooses the model
  const std::vector<std::unique_ptr<Hosted>>& all() const { return hosted_; }
  Hosted* find(const std::string& name) const;  // nullptr: there is none of this name
  // Holds the model until release(), and, if `used`, counts it as used now. False: it is not loaded.
  bool hold(Hosted* hosted, bool used);
  void release(Hosted* hosted);
  // Calls `then` when it is loaded or could not be, from the thread that loads; at once if it is loaded.
  void when_loaded(Hosted* hosted, std::function<void()> then);
  void want(Hosted* hosted);    // loads it
  void unwant(Hosted* hosted);  // unloads it
  std::string failure_of(Hosted* hosted);
  Json props_asleep(Hosted* hosted);

 private:
  void run();
  bool idle(Hosted* hosted) const;  // under the mutex
  Hosted* next_to_sleep(Hosted::Clock::time_point* when);
  void load(Hosted* hosted);
  void open(Hosted* hosted, bool may_shrink);
  void open_service(Hosted* hosted, bool may_shrink);
  void open_second(Hosted* hosted);  // the model that guesses tokens
  bool make_room();                  // false: no other model can leave
  void unload(Hosted* hosted, Hosted::State state);
  void forget(Hosted* hosted);
  void note_end(Hosted* hosted, const Ended& ended);
  void note_loss(const std::string& words);
  void reopen();
  void settle(Hosted* hosted, const std::string& failure);
  void note_use(Hosted* hosted);

  const Options& options_;
  OnEnd on_end_;
  Loader load_;
  Loaded loaded_;
  bool many_ = false, closing_ = false;
  std::vector<std::unique_ptr<Hosted>> hosted_;
  std::mutex mutex_;
  std::condition_variable woken_;
  Loss loss_;             // under the mutex
  bool lost_ = false;     // under the mutex: nobody has seen to the loss yet
  bool answered_ = true;  // under the mutex: a request has ended well since the device was opened again
  std::thread thread_;
};

Json props_json(const Model& model, const Options& options);  // status.cpp

// Words of llama-server: "unloaded", "loading", "loaded", "sleeping", "failed".
const char* state_name(Hosted::State state);

}  // namespace greta::serve
