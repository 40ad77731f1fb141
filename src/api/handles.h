// The objects behind greta.h's opaque handles, and the fence that no exception passes.
#pragma once
#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "api/options.h"
#include "engine/engine.h"
#include "greta.h"

// Passes the library's log on to a C caller's callback.
struct CLog {
  greta_log_callback call = nullptr;
  void* user = nullptr;
  greta::Log log() {
    return {[](void* self, uint32_t level, const char* text) {
              const CLog& to = *static_cast<CLog*>(self);
              if (to.call) to.call(to.user, greta_log_level(level), text);
            },
            this};
  }
};

// Passes spans on to a C caller's callback.
struct CSpans {
  void (*call)(void* user, const greta_span* span) = nullptr;
  void* user = nullptr;
  greta::Spans spans(bool launches);
};

// What options say of finding devices. `options` and `log` must outlive the result.
inline greta::DeviceOptions search_options(const greta_runtime_options& options, CLog* log) {
  *log = {options.log, options.log_user};
  greta::DeviceOptions search;
  search.log = log->log();
  search.rocm_folders = options.rocm_folders;
  search.virtual_environment = options.virtual_environment;
  search.without = options.without;
  search.system.hiding = options.hiding;
  return search;
}

// A device of a runtime.
struct RuntimeDevice {
  uint64_t memory_limit_bytes = 0;
  std::atomic<uint64_t> used_bytes = 0;  // allocated for models and executors
  std::unique_ptr<greta::Device> device;
  std::unique_ptr<greta::DeviceKernels> kernels;  // of the device, for all models
  char id[greta::kDeviceIdBytes] = "";
  bool left_out = false;  // it was lost while a model was loaded, and none is placed there by memory any more

  uint64_t free_bytes() const {
    const uint64_t all = device->memory_free(), reserve = device->info().reserve_bytes, used = used_bytes;
    const uint64_t free = all - std::min(all, reserve);
    if (!memory_limit_bytes) return free;
    return std::min(free, memory_limit_bytes > used ? memory_limit_bytes - used : 0);
  }
};

struct greta_runtime {
  greta::Process process;
  CLog c_log;
  greta::Log log;  // writes to c_log
  CSpans c_spans;
  greta::Spans spans;  // gives to c_spans
  bool exact = false;
  std::string tuning_folder;          // "": none
  std::deque<RuntimeDevice> devices;  // at least one

  RuntimeDevice& first() { return devices[0]; }
  const RuntimeDevice& first() const { return devices[0]; }
  // The device that a model knows as its `index`-th.
  RuntimeDevice& of(const greta::Model& model, size_t index);
  // What is free on each device of a model.
  std::vector<uint64_t> free_bytes(const greta::Model& model);
};

// A copy of a caller's greta_source, with a path of its own.
struct StoredSource {
  greta_source given = {};
  std::string path;
  bool map = false;
  greta::Status store(const greta_source* source);
  greta::Status open(greta::Source* out) const;  // *out keeps a pointer to this object
};

struct greta_tokenizer {
  const greta::Tokenizer* tokenizer = nullptr;
  const greta::Gguf* gguf = nullptr;  // where it comes from
  greta::ChatTemplate chat;
  CLog c_log;                               // what `owned` writes to
  std::unique_ptr<greta::Tokenizer> owned;  // null for the tokenizer of a model
};

struct greta_file {
  StoredSource source;
  greta::Gguf gguf;
  std::vector<std::string> tensor_names, keys, types;  // copies that end with a NUL
};

// Counts bytes as used on a device as long as this object lives.
struct Counted {
  RuntimeDevice* device = nullptr;
  uint64_t bytes = 0;
  Counted() = default;
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
  void count(RuntimeDevice& by, uint64_t amount) {
    by.used_bytes += amount - bytes;
    device = &by;
    bytes = amount;
  }
  ~Counted() {
    if (device) device->used_bytes -= bytes;
  }
};

// What the chat templates that requests use say, each read once. Threads may share it.
class ChatManners {
 public:
  greta::Status find(const greta::Model& model, std::string_view chat_template, const greta::Log& log,
                     std::shared_ptr<const greta::ChatManner>* out);

 private:
  struct Kept {
    std::string chat_template;
    std::shared_ptr<const greta::ChatManner> manner;
  };
  static constexpr size_t kMost = 8;
  std::mutex mutex_;
  std::vector<Kept> kept_;  // the one that was used last at the end
};

// Executors keep the matrices of an adapter until their plans with it are gone.
struct CountedAdapter {
  std::deque<Counted> counted;  // by the model's devices
  std::shared_ptr<greta::Adapter> adapter;
};

struct greta_model {
  greta_runtime* runtime = nullptr;
  StoredSource source;
  std::deque<Counted> counted;  // by the model's devices
  greta::Model model;
  greta_tokenizer tokenizer;
  greta::SamplingDefaults sampling;  // what the file recommends
  mutable ChatManners manners;
  mutable std::mutex adapters_mutex;
  std::vector<const greta_adapter*> adapters;  // that are open
};

struct greta_adapter {
  greta_model* model = nullptr;
  std::shared_ptr<CountedAdapter> shared;
  const greta::Adapter& adapter() const { return *shared->adapter; }
};

struct CountedExecutor {
  greta_runtime* runtime = nullptr;
  greta_model* model = nullptr;
  std::deque<Counted> counted;  // by the model's devices
  std::unique_ptr<greta::Executor> executor;
};

struct greta_executor {
  greta_model* model = nullptr;
  std::shared_ptr<CountedExecutor> shared;
};

struct greta_session {
  std::shared_ptr<CountedExecutor> executor;  // outlives the session
  std::unique_ptr<greta::Session> session;
};

namespace greta {

greta_status to_c(Status status);
Status open_executor(greta_model& model, const greta_executor_options* given,
                     std::shared_ptr<CountedExecutor>* out);
// Reads the adapters of a session or a request; null: none.
Status read_adapters(const greta_model& model, const greta_adapter* const* adapters, const float* scales,
                     size_t count, std::shared_ptr<const AdapterList>* out);
Status read_executor_options(const greta_executor_options* given, ExecutorOptions* out);
// Describes the model of a source and places it on devices of the runtime, by the caller's word or by memory.
Status describe_placed(greta_runtime& runtime, Source&& source, const greta_placement* given,
                       const ExecutorOptions& executor, const Log& log, Model* out);
// Whether that places it by memory.
bool placed_by_memory(const greta_placement* given);
// Leaves out devices that do not work any more, with a warning for each. Returns true if there are such, and
// others are left.
bool leave_out_lost(greta_runtime& runtime);
// What is free of each of its devices beside the weights.
std::vector<uint64_t> beside_weights(const Model& model, std::vector<uint64_t> free);

// Runs body() -> Status. No exception leaves: those of containers and of callbacks become statuses. Only the
// unwinding of a thread that is cancelled in a wait passes.
template <class Body>
greta_status fenced(Body&& body) {
  const Uncancelled uncancelled;
  try {
    return to_c(body());
  } catch (const std::bad_alloc&) {
    return to_c(fail(Code::Memory, "out of host memory"));
  } catch (const CallbackThrew& threw) {
    return to_c(fail(Code::Argument, "%s", threw.text));
  } catch (const std::exception& e) {
    return to_c(fail(Code::Device, "internal error: %s", e.what()));
  } catch (const abi::__forced_unwind&) {
    throw;
  } catch (...) {
    return to_c(fail(Code::Device, "internal error"));
  }
}

// Closes an object that X_open made.
template <class Object>
void close_object(Object* object) {
  const Uncancelled uncancelled;
  delete object;
}

// The caller's callback that may end a long call.
struct StopCallback {
  int (*should_stop)(void* user);
  void* user;
  // Asks the callback of the StopCallback at `self`.
  static int ask(const void* self) {
    const auto& callback = *static_cast<const StopCallback*>(self);
    if (!callback.should_stop) return 0;
    return call_back("should_stop", [&] { return callback.should_stop(callback.user); });
  }
};

// Reads stop strings, which stay the caller's.
Status read_stops(const char* const* given, size_t count, std::vector<std::string_view>* out);

// Fails where a file has no tensor of this index.
Status tensor_at(const greta_file* file, uint64_t index, const GgufTensor** out);

// Reads how hidden states are pooled.
Status read_embed(const Model& model, const greta_embed_options* given, EmbedOptions* out);

// Reads who guesses the next tokens; `given` may be null.
Status read_draft(const greta_draft_options* given, DraftSettings* out);

// Read what sessions and requests are told of sampling.
Status read_bias(const int32_t* tokens, const float* biases, size_t count, uint32_t vocab,
                 std::vector<LogitBias>* out);
Status read_dry(const greta_dry_options& given, const Tokenizer& tokenizer, DrySettings* out);

// Read a conversation. The texts of the options stay the caller's.
Status read_message(const greta_message& given, jinja::Value* out);
Status read_chat_options(const greta_chat_options& given, ChatOptions* out);

// Passes the bytes of a saved state on to a C caller's callback.
struct CWriter {
  greta_write_callback call;
  void* user;
  static int write(void* self, const void* bytes, size_t count) {
    const CWriter& to = *static_cast<const CWriter*>(self);
    return call_back("write", [&] { return to.call(to.user, bytes, count); });
  }
};

// Copies a text to the caller, with a NUL behind it where there is room.
Status give_text(const std::string& from, char* text, size_t capacity, size_t* out_bytes);

inline Status need(const void* pointer, const char* what) {
  return pointer ? Status{} : fail(Code::Argument, "%s is NULL", what);
}

// Checks that the object is there and that its device can be used, which a child of fork() cannot do.
inline Status need_device(const greta_runtime* runtime) {
  GRETA_TRY(need(runtime, "runtime"));
  return runtime->process.check();
}
inline Status need_device(const greta_model* model) {
  GRETA_TRY(need(model, "model"));
  return need_device(model->runtime);
}
inline Status need_device(const greta_session* session) {
  GRETA_TRY(need(session, "session"));
  return need_device(session->executor->runtime);
}

}  // namespace greta
