// Opens handles as the options say, and turns the library's errors into exceptions.
#include "model.h"

#include <strings.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <sstream>

#include "adapters.h"
#include "bundled.h"
#include "common/tokens.h"
#include "console.h"
#include "driver_state.h"
#include "drivers.h"
#include "tensor_rules.h"

namespace greta::cli {

void CloseSession::operator()(greta_session* session) const {
  if (active_session() == session) set_active_session(nullptr);
  greta_session_close(session);
}

void check(greta_status status) {
  if (interrupted()) throw Interrupted{};
  if (status != GRETA_OK) throw Failed(greta_error_text());
}

std::string model_path(const ModelOptions& options, bool tell) {
  if (!options.path.empty()) return options.path;
  std::string path = bundled_model_path();
  if (path.empty()) throw Misused("there is no -m FILE, and the bundled model is not installed");
  if (tell) note_later(std::string("there is no -m, so the bundled model runs: ") + kBundledModel);
  return path;
}

namespace {

// Takes ownership before it checks, so that an object that was opened as Ctrl-C came is closed all the same.
template <class Owner>
Owner own(greta_status status, typename Owner::pointer& opened) {
  Owner owner(opened);
  check(status);
  return owner;
}

void log_line(void*, greta_log_level level, const char* text) {
  if (level == GRETA_LOG_WARNING) return note_later(text);
  const Verbosity wanted = level >= GRETA_LOG_ERROR     ? Verbosity::kQuiet
                           : level >= GRETA_LOG_WARNING ? Verbosity::kNormal
                                                        : Verbosity::kVerbose;
  if (verbosity() >= wanted && level >= GRETA_LOG_INFO) say(text);
}

// Warnings that come while a runtime is opened are about the choice of its device, but for those of tables.
bool choosing_device = false;
std::vector<std::string> choice_warnings;

void log_runtime(void*, greta_log_level level, const char* text) {
  const bool of_table = !std::strncmp(text, "tuning table", 12);
  if (level == GRETA_LOG_WARNING && choosing_device && !of_table)
    choice_warnings.emplace_back(text);
  else
    log_line(nullptr, level, text);
}

// Why there is no GPU takes at most 100 characters; the whole of it is for -v and for doctor.
void note_choice(const greta_runtime* runtime) {
  constexpr size_t kMost = 100 - std::size("greta-cli: ");
  for (const std::string& text : choice_warnings) {
    const bool as_it_is = text.size() <= kMost || verbosity() == Verbosity::kVerbose || !runtime ||
                          std::strncmp(describe(runtime).id, "cpu", 3) != 0;
    note_later(as_it_is ? text : "no GPU to use, running on the CPU (greta-cli doctor says why)");
  }
}

int load_progress(void* user, uint64_t done, uint64_t total) {
  static_cast<Progress*>(user)->show_fraction(done, total);
  return interrupted() ? 1 : 0;
}

// This may happen while a command runs, too: a step of a new size may need kernels that are not compiled yet.
int compile_progress(void*, uint64_t done, uint64_t total) {
  static Progress progress("compiling kernels");
  if (done < total && !interrupted()) {
    progress.show(format("%u/%u", static_cast<unsigned>(done), static_cast<unsigned>(total)));
  } else {
    progress.clear();
  }
  return interrupted() ? 1 : 0;
}

}  // namespace

std::string cache_folder() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache && cache[0] == '/') return std::string(cache) + "/greta";
  const char* home = std::getenv("HOME");
  return home && home[0] == '/' ? std::string(home) + "/.cache/greta" : std::string();
}

// The kinds of device that "auto" leaves alone, since their drivers cannot be asked or opened.
static std::string broken_kinds(const std::string& cache, DriverState* state) {
  AskedDevices asked = ask_devices(true);
  try_opening(cache, &asked);
  if (asked.broken.empty()) state->consist_of(std::move(asked.libraries));
  for (const BrokenDriver& driver : asked.broken)
    note_later(
        format("%s is left out: %s (see greta-cli doctor)", driver.kind.c_str(), driver.reason.c_str()));
  return names_of(asked.broken);
}

// The names of the devices to open.
static std::string chosen_devices(const DeviceOptions& options) {
  if (options.split_mode != "none" || options.device.find(',') == std::string::npos) return options.device;
  std::vector<std::string> names;
  std::istringstream list(options.device);
  for (std::string name; std::getline(list, name, ',');) names.push_back(name);
  if (options.main_gpu >= names.size())
    throw Misused(format("--main-gpu %u, but --device names %zu", options.main_gpu, names.size()));
  return names[options.main_gpu];
}

// Whether a part of the model is for the processor, which is not among the devices. So many layers as people
// give who mean all are on the GPU.
static bool needs_processor(const DeviceOptions& options, const std::string& devices) {
  constexpr int kAll = 99;
  const auto names_it = [](const std::string& rule) {
    const std::string device = rule.substr(rule.find('=') + 1);
    return device.size() == 3 && !strncasecmp(device.c_str(), "cpu", 3);
  };
  const bool wanted = options.host_experts || options.host_expert_layers ||
                      std::any_of(options.overrides.begin(), options.overrides.end(), names_it);
  if (wanted) return devices.find("cpu") == std::string::npos;
  const bool number = options.gpu_layers != "auto" && options.gpu_layers != "all";
  return number && std::atoi(options.gpu_layers.c_str()) < kAll && devices.find("cpu") == std::string::npos;
}

greta_placement placement_of(const DeviceOptions& options) {
  auto placement = sized<greta_placement>();
  placement.shares = options.shares.data();
  placement.share_count = static_cast<uint32_t>(options.shares.size());
  placement.host_experts = options.host_experts ? UINT32_MAX : options.host_expert_layers;
  placement.bring_experts_from = options.never_bring ? UINT32_MAX : options.bring_from;
  if (!options.overrides.empty()) {
    placement.device_of = device_by_rules;
    placement.device_of_user = const_cast<DeviceOptions*>(&options);
  }
  if (options.gpu_layers == "auto" && options.shares.empty()) return placement;
  placement.kind = GRETA_PLACEMENT_OFFLOAD;
  placement.offloaded = options.gpu_layers == "auto" || options.gpu_layers == "all"
                            ? UINT32_MAX
                            : static_cast<uint32_t>(std::atoi(options.gpu_layers.c_str()));
  return placement;
}

static Runtime open_devices(const DeviceOptions& options, const std::string& devices) {
  const std::string cache = cache_folder();
  DriverState drivers(cache);
  const bool chooses = devices == "auto";
  const std::string known = chooses ? drivers.take() : "";  // the device that would be chosen
  const Search search(chooses && known.empty() ? broken_kinds(cache, &drivers) : "");
  auto open = sized<greta_runtime_options>();
  search.put(&open);
  open.cache_folder = cache.c_str();
  if (!options.untuned && !cache.empty()) open.tuning_folder = cache.c_str();
  open.threads = options.threads;
  open.device = known.empty() ? devices.c_str() : known.c_str();
  open.device_limits = options.memory_limits.data();
  open.device_limit_count = static_cast<uint32_t>(options.memory_limits.size());
  open.exact = options.exact ? 1 : 0;
  open.persistent = options.persistent ? 1 : 0;
  open.graphs = options.graphs == "on"    ? GRETA_GRAPHS_ON
                : options.graphs == "off" ? GRETA_GRAPHS_OFF
                                          : GRETA_GRAPHS_DEFAULT;
  open.import_files = options.import_files ? 1 : 0;
  open.log = log_runtime;
  open.on_span = options.on_span;
  open.span_user = options.span_user;
  open.span_launches = options.span_launches ? 1 : 0;
  greta_runtime* runtime = nullptr;
  choice_warnings.clear();
  choosing_device = true;
  greta_status status;
  {
    const NoOutput drivers_print_nothing;
    status = greta_runtime_open(&open, &runtime);
  }
  choosing_device = false;
  if (status != GRETA_OK && !known.empty() && !interrupted()) return open_devices(options, devices);
  const bool chose_the_best = choice_warnings.empty();
  note_choice(runtime);
  Runtime opened = own<Runtime>(status, runtime);
  const greta_device_info device = describe(opened.get());
  if (chooses && chose_the_best && !device.cpu_type) drivers.remember(device.id);
  if (device.cpu_type && std::strncmp(device.id, "cpu", 3) != 0)
    note_later(format("%s is %s, which runs on the processor", device.id, device.name));
  return opened;
}

std::vector<std::string> files_of(const std::string& path) {
  constexpr size_t kSuffixBytes = sizeof "-00001-of-00002.gguf" - 1;
  unsigned part = 0, count = 0;
  int end = 0;
  const std::string suffix = path.size() > kSuffixBytes ? path.substr(path.size() - kSuffixBytes) : "";
  if (sscanf(suffix.c_str(), "-%5u-of-%5u.gguf%n", &part, &count, &end) != 2 || size_t(end) != suffix.size())
    return {path};
  std::vector<std::string> files;
  for (unsigned i = 1; i <= count; ++i)
    files.push_back(path.substr(0, path.size() - kSuffixBytes) + format("-%05u-of-%05u.gguf", i, count));
  return files;
}

static greta_source source_of(const std::string& path, bool map) {
  auto source = sized<greta_source>();
  source.path = path.c_str();
  source.map = map ? 1 : 0;
  return source;
}

// Whether the model may lack room on a device beside the processor: by the size of its files, or else by the
// library's plan with this executor.
static bool may_lack_room(greta_runtime* runtime, const std::string& model,
                          const greta_executor_options& executor) {
  const greta_device_info device = describe(runtime);
  if (std::strncmp(device.id, "cpu", 3) == 0) return false;
  uint64_t bytes = 0;
  std::error_code unknown;
  for (const std::string& file : files_of(model)) {
    const uint64_t each = std::filesystem::file_size(file, unknown);
    if (!unknown) bytes += each;
  }
  if (bytes > device.memory_free_bytes / 4 * 3) return true;
  const bool has_room = bytes < device.memory_free_bytes / 2 && !executor.context && !executor.cache_tokens;
  if (has_room) return false;  // a default context shrinks to what there is
  greta_file* opened = nullptr;
  const greta_source source = source_of(model, true);
  auto plan = sized<greta_memory_plan>();
  // What is wrong with the file is said when the model is opened.
  if (greta_file_open(&source, &opened) != GRETA_OK) return false;
  const File file(opened);
  return greta_memory_plan_make(runtime, file.get(), &executor, &plan) == GRETA_OK && !plan.fits;
}

static Runtime open_for(const DeviceOptions& options, const std::string& model,
                        const greta_executor_options& executor) {
  const std::string devices = chosen_devices(options);
  const bool alone = devices.find(',') == std::string::npos;
  const bool processor = needs_processor(options, devices);
  if (!alone) return open_devices(options, processor ? devices + ",cpu" : devices);
  DeviceOptions first = options;  // what is chosen may be the processor itself
  if (processor && first.memory_limits.size() > 1) first.memory_limits.resize(1);
  Runtime runtime = open_devices(first, devices);
  const greta_device_info device = describe(runtime.get());
  const bool by_memory = options.gpu_layers == "auto" && options.shares.empty() && !model.empty();
  if (processor ? std::strcmp(device.id, "cpu") == 0
                : !by_memory || !may_lack_room(runtime.get(), model, executor))
    return runtime;
  const std::string both = std::string(device.id) + ",cpu";
  runtime.reset();
  return open_devices(options, both);
}

Runtime open_runtime(const DeviceOptions& options, const std::string& model,
                     const greta_executor_options& executor) {
  Runtime runtime = open_for(options, model, executor);
  prepare_rules(options, runtime.get(), model);
  return runtime;
}

File open_file(const std::string& path, bool map) {
  const greta_source source = source_of(path, map);
  greta_file* file = nullptr;
  return own<File>(greta_file_open(&source, &file), file);
}

uint32_t trained_context(const greta_file* file) {
  const auto value = [&](const std::string& wanted) -> std::string {
    for (size_t i = 0; i < greta_file_metadata_count(file); ++i) {
      const char *key = nullptr, *type = nullptr;
      char text[256];
      check(greta_file_metadata(file, i, &key, &type, text, sizeof text));
      if (wanted == key) return text;
    }
    return "";
  };
  std::string architecture = value("general.architecture");  // in quotes
  std::erase(architecture, '"');
  return static_cast<uint32_t>(std::strtoul(value(architecture + ".context_length").c_str(), nullptr, 10));
}

Tokenizer open_tokenizer(const greta_file* file) {
  greta_tokenizer* tokenizer = nullptr;
  return own<Tokenizer>(greta_tokenizer_open(file, log_line, nullptr, &tokenizer), tokenizer);
}

Model open_model(greta_runtime* runtime, const std::string& path, bool map, const DeviceOptions& device,
                 const greta_executor_options& executor, bool draft_head) {
  const greta_source source = source_of(path, map);
  const greta_placement placement = placement_of(device);
  Progress progress("loading");
  auto open = sized<greta_model_options>();
  open.source = &source;
  open.progress = load_progress;
  open.progress_user = &progress;
  open.placement = &placement;
  open.executor = &executor;
  open.draft_head = draft_head ? 1 : 0;
  greta_model* model = nullptr;
  return own<Model>(greta_model_open(runtime, &open, &model), model);
}

greta_model_info describe(const greta_model* model) {
  auto info = sized<greta_model_info>();
  check(greta_model_describe(model, &info));
  return info;
}

greta_device_info describe(const greta_runtime* runtime) {
  auto info = sized<greta_device_info>();
  check(greta_runtime_describe(runtime, &info));
  return info;
}

greta_executor_options executor_options(const ContextOptions& options, uint32_t model_context,
                                        uint32_t output_rows) {
  auto executor = sized<greta_executor_options>();
  executor.context = options.context < 0    ? 0
                     : options.context == 0 ? model_context
                                            : static_cast<uint32_t>(options.context);
  executor.sequences = 1;
  executor.key_type = cache_type(options.key_type);
  executor.value_type = cache_type(options.value_type);
  executor.output_rows = output_rows;
  executor.step_tokens = options.step_tokens;
  executor.progress = compile_progress;
  return executor;
}

greta_executor_options wanted_executor(const ContextOptions& options, const std::string& path) {
  const bool of_model = options.context == 0 && !path.empty();
  return executor_options(options, of_model ? trained_context(open_file(path).get()) : 0, 1);
}

Session open_session(greta_model* model, const greta_executor_options& executor) {
  auto open = sized<greta_session_options>();
  open.private_executor = &executor;
  greta_session* session = nullptr;
  Session owner = own<Session>(greta_session_open(model, &open, &session), session);
  set_active_session(session);
  return owner;
}

namespace {

// Weights that stay in the mapped file need no memory of their own, so that the library refuses none.
void warn_of_memory(const Engine& engine, const greta_device_info& before) {
  const uint64_t weights = engine.info.weights_bytes, free = before.memory_free_bytes;
  if (!before.unified_memory || free == 0 || weights <= free) return;
  note_later(
      format("the weights take %s and %s of memory are free: they are read from the disk again and "
             "again, which is slow (take a smaller model, or one of a smaller type)",
             size_text(weights).c_str(), size_text(free).c_str()));
}

void warn_of_context(const Engine& engine, int64_t context) {
  if (context <= int64_t{engine.info.context}) return;
  note_later(
      format("-c %lld is more than the %u tokens that the model was trained for: beyond them its text may "
             "make no sense",
             static_cast<long long>(context), engine.info.context));
}

}  // namespace

Engine open_engine(const EngineOptions& options, bool tell, SamplingOptions* sampling) {
  const std::string guesses = sampling ? drafter_of(sampling->draft) : "none";
  Engine engine;
  const std::string path = model_path(options.model, tell);
  engine.model_name = path.substr(path.rfind('/') + 1) + (options.model.path.empty() ? " (bundled)" : "");
  greta_executor_options wanted = wanted_executor(options.context, path);
  wanted.draft_head = guesses == "draft-mtp" ? 1 : 0;
  engine.runtime = open_runtime(options.device, path, wanted);
  const greta_device_info before = describe(engine.runtime.get());
  engine.model = open_model(engine.runtime.get(), path, !options.model.copy, options.device, wanted,
                            guesses == "draft-mtp");
  engine.info = describe(engine.model.get());
  warn_of_memory(engine, before);
  warn_of_context(engine, options.context.context);
  const greta_model_info& info = engine.info;
  engine.adapters = open_adapters(engine.model.get(), options.adapters);
  engine.session = open_session(engine.model.get(), executor_options(options.context, info.context, 1));
  use_adapters(engine.session.get(), engine.adapters);
  if (guesses == "draft-simple") {
    const uint32_t tokens = greta_session_context(engine.session.get());
    engine.second = open_second_model(engine.runtime.get(), sampling->draft.model, options, tokens);
    sampling->draft.executor = engine.second.executor.get();
  }
  if (options.context.context < 0 && tell) {
    const uint32_t chosen = greta_session_context(engine.session.get());
    const std::string of = chosen < info.context ? format(" (the model has %u)", info.context) : "";
    note_later(format("this runs with a context of %u tokens%s; -c sets another", chosen, of.c_str()));
  }
  const greta_device_info device = describe(engine.runtime.get());
  detail(format("%s %s, %s of weights, on %s: %s (%s)", info.architecture, info.type,
                size_text(info.weights_bytes).c_str(), device.id, device.name, device.arch));
  return engine;
}

std::vector<greta_tensor_info> read_tensors(const greta_file* file) {
  std::vector<greta_tensor_info> all(greta_file_tensor_count(file), sized<greta_tensor_info>());
  for (size_t i = 0; i < all.size(); ++i) check(greta_file_tensor(file, i, &all[i]));
  return all;
}

std::vector<int32_t> encode(const greta_tokenizer* tokenizer, std::string_view text, uint32_t flags) {
  std::vector<int32_t> tokens;
  check(tools::encode(tokenizer, text, flags, &tokens));
  return tokens;
}

std::string decode(const greta_tokenizer* tokenizer, const int32_t* tokens, size_t count) {
  std::string text;
  check(tools::decode(tokenizer, tokens, count, &text));
  return text;
}

bool adds_bos(const greta_tokenizer* tokenizer) { return !encode(tokenizer, "", GRETA_ENCODE_BOS).empty(); }

}  // namespace greta::cli
