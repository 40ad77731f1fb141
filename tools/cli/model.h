// The steps from options to an open session.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/handles.h"
#include "options.h"

namespace greta::cli {

struct CloseSession {
  void operator()(greta_session* p) const;  // afterwards Ctrl-C no longer reaches it
};
using Session = std::unique_ptr<greta_session, CloseSession>;
using tools::Adapter;
using tools::Executor;
using tools::File;
using tools::Model;
using tools::Runtime;
using tools::sized;
using tools::Tokenizer;

// Where compiled kernels and tuning tables are kept: $XDG_CACHE_HOME/greta or ~/.cache/greta; "" where there
// is no home.
std::string cache_folder();

// Throws Failed with the library's words, or Interrupted after a Ctrl-C.
void check(greta_status status);

// The path of -m, or of the bundled model; then a note says so if `tell`.
std::string model_path(const ModelOptions& options, bool tell = true);

std::vector<std::string> files_of(const std::string& path);  // the parts of a split set, or the path itself

// `model` is the path of the model that it is opened for, if that is known: where the device's memory may not
// hold it with this executor, the processor is opened beside the device, for the layers that find no room
// (docs/devices.md).
Runtime open_runtime(const DeviceOptions& options, const std::string& model = "",
                     const greta_executor_options& executor = {});
File open_file(const std::string& path, bool map = false);  // `map` serves memory plans
// The value of <architecture>.context_length, for -c 0; 0 if the file has none.
uint32_t trained_context(const greta_file* file);
Tokenizer open_tokenizer(const greta_file* file);
// The placement that the options ask for. It keeps pointers to them.
greta_placement placement_of(const DeviceOptions& options);
// It shows progress on a terminal. `executor` is that for which there must be room beside the model.
Model open_model(greta_runtime* runtime, const std::string& path, bool map, const DeviceOptions& device,
                 const greta_executor_options& executor, bool draft_head = false);
greta_model_info describe(const greta_model* model);
// The id is the one that `devices` lists: "vulkan0".
greta_device_info describe(const greta_runtime* runtime);

// The options of an executor for which there must be room beside the model, before it is open.
greta_executor_options wanted_executor(const ContextOptions& options, const std::string& path);
// Options for one sequence, since no command here has more. model_context serves -c 0.
greta_executor_options executor_options(const ContextOptions& options, uint32_t model_context,
                                        uint32_t output_rows);
Session open_session(greta_model* model, const greta_executor_options& executor);

std::vector<greta_tensor_info> read_tensors(const greta_file* file);  // in the file's order

// Adapters that are open, with their scales. They are to be closed after the sessions that have them.
struct Adapters {
  std::vector<Adapter> open;
  std::vector<float> scales;
};

// One that guesses tokens for the first, or nothing.
struct SecondModel {
  Model model;
  Executor executor;
};
// Opens it as the options say of the first one, for texts of so many tokens.
SecondModel open_second_model(greta_runtime* runtime, const std::string& path, const EngineOptions& options,
                              uint32_t tokens);

// The order of the members makes the children close first.
struct Engine {
  Runtime runtime;
  Model model;
  Adapters adapters;
  SecondModel second;
  Session session;
  greta_model_info info;
  std::string model_name;  // of the file, without its folder
  const greta_tokenizer* tokenizer() const { return greta_model_tokenizer(model.get()); }
};
// Opens what is needed to generate text, with one row of logits. Notes say what was chosen for the user: the
// bundled model without -m, the context without -c. `tell` is false where a banner will say this.
// With `sampling` also who guesses tokens is opened, and sampling->draft.executor set.
Engine open_engine(const EngineOptions& options, bool tell = true, SamplingOptions* sampling = nullptr);

std::vector<int32_t> encode(const greta_tokenizer* tokenizer, std::string_view text, uint32_t flags);
std::string decode(const greta_tokenizer* tokenizer, const int32_t* tokens, size_t count);
// Whether GRETA_ENCODE_BOS adds anything for this model.
bool adds_bos(const greta_tokenizer* tokenizer);

// Puts what the model's file recommends into the options, unless the command line says otherwise. -v tells
// it.
void use_model_sampling(const greta_model* model, SamplingOptions* options);
// Sets the sampling of a session. A seed of -1 is drawn here, and -v tells it. options.stops is not used
// here.
void set_sampling(greta_session* session, const SamplingOptions& options);
// Who guesses tokens by the options, or "none".
std::string drafter_of(const DraftOptions& options);
greta_draft_options draft_options(const DraftOptions& options);

}  // namespace greta::cli
