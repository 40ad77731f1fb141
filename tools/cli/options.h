// The options that commands share, under the names that users of llama.cpp know.
#pragma once
#include <CLI/App.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "greta.h"

namespace greta::cli {

struct TensorRules;

struct VerbosityOptions {
  bool verbose = false, quiet = false;
  void apply() const;
};

struct ModelOptions {
  std::string path;   // "": the bundled model
  bool copy = false;  // true: weights are copied and do not stay in the mapped file
};

struct DeviceOptions {
  std::string device = "auto";
  uint32_t threads = 0;  // 0: one for each processor
  bool exact = false;
  bool persistent = false;
  bool untuned = false;
  std::string graphs = "auto";  // or "on", "off"
  bool import_files = false;
  std::string gpu_layers = "auto";      // or "all", or a number
  std::string split_mode = "layer";     // or "none"
  std::vector<double> shares;           // of --tensor-split
  uint32_t main_gpu = 0;                // of the devices, for "none"
  std::vector<uint64_t> memory_limits;  // in bytes, of the devices
  bool host_experts = false;            // of all layers
  uint32_t host_expert_layers = 0;      // of the first so many
  std::vector<std::string> overrides;   // "REGEX=DEVICE"
  uint32_t bring_from = 0;              // tokens of a step; 0: measured
  bool never_bring = false;
  mutable std::shared_ptr<const TensorRules> rules;  // of these, for the devices that are open
  // Set by commands that listen to what the library does.
  void (*on_span)(void* user, const greta_span* span) = nullptr;
  void* span_user = nullptr;
  bool span_launches = false;
};

struct ContextOptions {
  int64_t context = -1;  // in tokens; -1: the library's default, 0: the model's
  std::string key_type = "f16", value_type = "f16";
  uint32_t step_tokens = 0;  // 0: the library's choice
};

// Who guesses tokens (docs/drafts.md).
struct DraftOptions {
  std::string kind;                    // "": draft-simple where there is a second model
  uint32_t tokens = 7;                 // the most that are guessed for a step
  std::string model;                   // path of a second model
  greta_executor* executor = nullptr;  // of it, when it is open
};

// docs/sampling.md explains each of them.
struct SamplingOptions {
  float temperature = 0.8f, dynamic_range = 0, dynamic_exponent = 1;
  float top_p = 0.95f, min_p = 0.05f, typical_p = 1, top_n_sigma = -1, xtc_probability = 0,
        xtc_threshold = 0.1f;
  float repeat_penalty = 1, presence_penalty = 0, frequency_penalty = 0;
  float dry_multiplier = 0, dry_base = 1.75f, mirostat_rate = 0.1f, mirostat_entropy = 5;
  uint32_t top_k = 40, dry_allowed_length = 2, mirostat = 0;
  int32_t repeat_last_n = 64, dry_last_n = -1;
  std::vector<std::string> dry_breakers, logit_bias, stops;
  std::string samplers, sampler_letters;  // "": the default order
  std::string grammar, grammar_file, schema, schema_file;
  bool strict_schema = false;
  DraftOptions draft;
  int64_t seed = -1;            // -1: a new one each time
  std::set<std::string> given;  // long names of the options that came from the command line
};

struct TextOptions {
  std::string text, file;
  const CLI::Option* text_option = nullptr;
  const CLI::Option* file_option = nullptr;
  bool escape = false;
};

// What becomes of a full context. `run` ends without --context-shift, and `chat` with --no-context-shift.
struct ShiftOptions {
  bool shift = false;
  int64_t keep = 0;  // tokens of the prompt that stay, and one that begins a text; -1: all of the prompt
};

// LoRAs and control vectors, some as FILE:SCALE.
struct AdapterOptions {
  std::vector<std::string> loras, scaled_loras, vectors, scaled_vectors;
  std::vector<uint32_t> layers;  // of control vectors: the first and the last, or none
};

// The options of every command that runs a model.
struct EngineOptions {
  VerbosityOptions verbosity;
  ModelOptions model;
  DeviceOptions device;
  ContextOptions context;
  AdapterOptions adapters;
};

void add_options(CLI::App& app, VerbosityOptions& options);
void add_options(CLI::App& app, ModelOptions& options);
void add_options(CLI::App& app, DeviceOptions& options);
void add_options(CLI::App& app, ContextOptions& options);
void add_options(CLI::App& app, DraftOptions& options);
void add_options(CLI::App& app, SamplingOptions& options);  // and who guesses tokens
void add_options(CLI::App& app, TextOptions& options);
void add_options(CLI::App& app, EngineOptions& options);
void add_shift(CLI::App& app, ShiftOptions& options, const char* about, const char* about_no);
// Single options of the groups above, for commands that take only these.
void add_device(CLI::App& app, DeviceOptions& options);
void add_placement(CLI::App& app, DeviceOptions& options);
void add_mapping(CLI::App& app, ModelOptions& options);
void add_cache_types(CLI::App& app, ContextOptions& options);
void add_batch_size(CLI::App& app, ContextOptions& options);

greta_cache_type cache_type(const std::string& name);

// Reads the prompt from -p, from -f, or from standard input if that is not a terminal. Gives nothing if there
// is none of them. With `trim`, a prompt out of a file or a pipe loses the line end at its end.
std::optional<std::string> read_text(const TextOptions& options, bool trim);
std::string read_file(const std::string& path);
std::string unescape(const std::string& text);  // replaces \n, \t, \x41 and the like

// "512,1024" -> {512, 1024}, and llama-bench's ranges: "1-8*2" -> {1, 2, 4, 8}. Throws Misused with the name
// of the option.
std::vector<uint32_t> parse_list(const std::string& option, const std::string& text, uint32_t smallest);

}  // namespace greta::cli
