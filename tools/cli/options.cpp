// Declares the shared options and reads prompts.
#include "options.h"

#include <fcntl.h>
#include <unistd.h>

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "console.h"
#include "slips.h"

namespace greta::cli {

void VerbosityOptions::apply() const {
  set_verbosity(quiet ? Verbosity::kQuiet : verbose ? Verbosity::kVerbose : Verbosity::kNormal);
}

void add_options(CLI::App& app, VerbosityOptions& options) {
  app.add_flag("-v,--verbose", options.verbose, "say more on stderr: the device, the seed, times");
  app.add_flag("-q,--quiet", options.quiet, "say nothing on stderr but errors");
}

void add_options(CLI::App& app, ModelOptions& options) {
  app.add_option("-m,--model", options.path, "run this GGUF file; without it the bundled model runs")
      ->type_name("FILE")
      ->check(not_empty());
}

void add_mapping(CLI::App& app, ModelOptions& options) {
  app.add_flag("--no-mmap", options.copy,
               "copy the weights; without it they stay in the mapped file where possible");
}

void add_device(CLI::App& app, DeviceOptions& options) {
  app.add_option(
         "--device", options.device,
         "run on this device: auto, vulkan (the best GPU), or one that `greta-cli devices` lists; or on "
         "several, such as vulkan0,cpu")
      ->type_name("D")
      ->capture_default_str();
  app.add_flag("--exact", options.exact,
               "use only the plain kernels, which are slow and give the same bits for every step size");
  app.add_flag("--persistent", options.persistent,
               "a decode step is one launch that stays on the GPU, on HIP devices for which it was built");
  app.add_flag("--no-tuning", options.untuned,
               "choose kernels by rank alone, without the table that greta-cli tune has made of the device");
}

// Whether -ngl takes this; the text of an error if not.
static std::string check_gpu_layers(std::string& value) {
  if (value == "-1") value = "auto";
  const bool number =
      !value.empty() && value.size() < 9 && value.find_first_not_of("0123456789") == value.npos;
  return number || value == "auto" || value == "all"
             ? ""
             : "takes a whole number, auto or all, not \"" + value + "\"";
}

void add_placement(CLI::App& app, DeviceOptions& options) {
  app.add_option(
         "--gpu-layers", options.gpu_layers,
         "so many of the layers and the output, the last ones, are on GPUs and the rest on the CPU; all, or "
         "auto: as many as fit (see docs/devices.md)")
      ->type_name("N")
      ->check(CLI::Validator(check_gpu_layers, ""))
      ->capture_default_str();
  app.add_option("--split-mode", options.split_mode,
                 "layer: several devices have whole layers; none: only the one of --main-gpu is used")
      ->type_name("M")
      ->check(one_of({"layer", "none"}))
      ->capture_default_str();
  app.add_option("--tensor-split", options.shares, "shares of the devices in what is on GPUs, such as 3,1")
      ->type_name("S,..")
      ->delimiter(',');
  app.add_option("--main-gpu", options.main_gpu,
                 "which of the devices is used with --split-mode none, from 0")
      ->type_name("I");
  app.add_flag("--cpu-moe", options.host_experts, "the experts of all layers are on the CPU");
  app.add_option("--n-cpu-moe", options.host_expert_layers,
                 "the experts of the first N layers are on the CPU")
      ->type_name("N")
      ->check(in_range(int64_t{0}, 1 << 20));
  app.add_option(
         "--override-tensor", options.overrides,
         "tensors whose names REGEX finds are on DEVICE, such as exps=cpu; it must move all experts of a "
         "layer, or all of it but these")
      ->type_name("REGEX=DEVICE,..")
      ->delimiter(',');
  app.add_option(
         "--op-offload-min", options.bring_from,
         "from N tokens of a prompt on, a step brings the weights of experts that are on the CPU to the "
         "GPU of their layer; 0: as measured")
      ->type_name("N")
      ->check(in_range(int64_t{0}, 512));
  app.add_flag("--no-op-offload", options.never_bring,
               "experts that are on the CPU compute there, also for long prompts");
  app.add_option("--mem-limit", options.memory_limits,
                 "allocate at most this on the device, or on each of several, such as 12G,64G")
      ->type_name("SIZE,..")
      ->delimiter(',')
      ->transform(CLI::AsSizeValue(false));
}

void add_options(CLI::App& app, DeviceOptions& options) {
  add_device(app, options);
  add_placement(app, options);
  app.add_option("--graphs", options.graphs,
                 "HIP: give a step to the GPU as one graph; auto does from HIP 7.2.1 on")
      ->type_name("G")
      ->check(one_of({"auto", "on", "off"}))
      ->capture_default_str();
  app.add_flag("--import-files", options.import_files,
               "HIP: a GPU that shares the host's memory reads weights in the mapped file");
  app.add_option("-t,--threads", options.threads, "threads of the CPU device; 0: one for each processor")
      ->type_name("N")
      ->check(in_range(int64_t{0}, 1024))
      ->capture_default_str();
}

void add_cache_types(CLI::App& app, ContextOptions& options) {
  const auto add = [&app](const char* name, std::string& value, const char* about) {
    app.add_option(name, value, about)
        ->type_name("TYPE")
        ->check(one_of({"f32", "f16", "q8_0"}))
        ->capture_default_str();
  };
  add("--cache-type-k", options.key_type, "type of the cached keys");
  add("--cache-type-v", options.value_type, "type of the cached values");
}

void add_options(CLI::App& app, ContextOptions& options) {
  app.add_option("-c,--ctx-size", options.context,
                 "length of the context in tokens; 0: the model's [8192, or less if that does not fit]")
      ->type_name("N")
      ->check(in_range(int64_t{0}, INT32_MAX));
  add_cache_types(app, options);
  add_batch_size(app, options);
}

void add_batch_size(CLI::App& app, ContextOptions& options) {
  app.add_option("-b,--batch-size", options.step_tokens,
                 "the most tokens of a step, up to 512; 0: chosen by speed")
      ->type_name("N")
      ->check(in_range(int64_t{0}, 512))
      ->capture_default_str();
}

void add_options(CLI::App& app, TextOptions& options) {
  CLI::Option* text =
      app.add_option("-p,--prompt", options.text, "read the text from the command line")->type_name("TEXT");
  CLI::Option* file = app.add_option("-f,--file", options.file,
                                     "read the text from this file; without -p and -f, from standard input");
  file->type_name("FILE")->excludes(text)->check(not_empty());
  app.add_flag("-e,--escape", options.escape,
               R"(replace \n, \t, \\ and \x41 in the text by what they stand for)");
  options.text_option = text;
  options.file_option = file;
}

// The word that is given last counts.
void add_shift(CLI::App& app, ShiftOptions& options, const char* about, const char* about_no) {
  app.add_flag_callback("--context-shift", [&options] { options.shift = true; }, about)->trigger_on_parse();
  app.add_flag_callback(
         "--no-context-shift", [&options] { options.shift = false; }, about_no)
      ->trigger_on_parse();
}

void add_options(CLI::App& app, EngineOptions& options) {
  add_options(app, options.model);
  add_mapping(app, options.model);
  add_options(app, options.device);
  add_options(app, options.context);
  add_options(app, options.verbosity);
}

greta_cache_type cache_type(const std::string& name) {
  return name == "f32" ? GRETA_CACHE_F32 : name == "q8_0" ? GRETA_CACHE_Q8_0 : GRETA_CACHE_F16;
}

namespace {

std::string read_all(int fd, const std::string& name) {
  std::string text;
  char piece[65536];
  for (;;) {
    const ssize_t n = read(fd, piece, sizeof piece);
    if (interrupted()) throw Interrupted{};
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw Failed(name + ": " + std::strerror(errno));
    if (n == 0) return text;
    text.append(piece, static_cast<size_t>(n));
  }
}

// The character that a backslash and `letter` stand for; '\0' if they stand for themselves.
char escaped(char letter) {
  switch (letter) {
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    case '\\':
    case '\'':
    case '"':
      return letter;
    default:
      return '\0';
  }
}

}  // namespace

std::string unescape(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const char next = text[i] == '\\' && i + 1 < text.size() ? text[i + 1] : '\0';
    const char* const digits = text.data() + i + 2;
    unsigned value = 0;
    if (next == 'x' && i + 3 < text.size() &&
        std::from_chars(digits, digits + 2, value, 16).ptr == digits + 2) {
      out += static_cast<char>(value);
      i += 3;
    } else if (const char meant = escaped(next)) {
      out += meant;
      i += 1;
    } else {
      out += text[i];
    }
  }
  return out;
}

std::string read_file(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) throw Failed(path + ": " + std::strerror(errno));
  struct Closer {
    int fd;
    ~Closer() { close(fd); }
  } closer{fd};
  return read_all(fd, path);
}

std::optional<std::string> read_text(const TextOptions& options, bool trim) {
  std::string text;
  if (options.text_option->count() > 0) {
    text = options.text;
  } else {
    const bool from_file = options.file_option->count() > 0;
    if (!from_file && stdin_is_terminal()) return std::nullopt;
    text = from_file ? read_file(options.file) : read_all(STDIN_FILENO, "standard input");
    if (trim && !text.empty() && text.back() == '\n') text.pop_back();
  }
  return options.escape ? unescape(text) : text;
}

namespace {

// Reads a number off the front of the text.
bool take_number(std::string_view* text, uint32_t* value) {
  const char* const end = text->data() + text->size();
  const auto [next, error] = std::from_chars(text->data(), end, *value);
  text->remove_prefix(static_cast<size_t>(next - text->data()));
  return error == std::errc() && *value <= INT32_MAX;
}

// Appends 5, or 1-8, 1-8+2, 1-8*2 written out. False if the text is none of them.
bool add_numbers(std::string_view text, uint32_t smallest, std::vector<uint32_t>* values) {
  uint32_t first = 0, step = 1;
  if (!take_number(&text, &first) || first < smallest) return false;
  uint32_t last = first;
  if (text.starts_with('-')) {
    text.remove_prefix(1);
    if (!take_number(&text, &last) || last < first) return false;
  }
  const bool times = text.starts_with('*');
  if (times || text.starts_with('+')) {
    text.remove_prefix(1);
    if (!take_number(&text, &step) || step < 1 || (times && (step < 2 || first == 0))) return false;
  }
  constexpr size_t kMost = 1000;  // more would be a slip
  for (uint64_t value = first; value <= last && values->size() <= kMost;
       value = times ? value * step : value + step)
    values->push_back(static_cast<uint32_t>(value));
  return text.empty() && values->size() <= kMost;
}

}  // namespace

std::vector<uint32_t> parse_list(const std::string& option, const std::string& text, uint32_t smallest) {
  std::vector<uint32_t> values;
  std::string_view rest = text;
  for (;;) {
    // CLI11 puts a line end between the values of an option that is given twice.
    const size_t comma = rest.find_first_of(",\n");
    if (!add_numbers(rest.substr(0, comma), smallest, &values)) {
      throw Misused(
          format("%s takes numbers of at least %u with commas between them, or ranges such as 128-512+128 "
                 "or 128-512*2, not \"%s\" (see greta-cli bench -h)",
                 option.c_str(), smallest, text.c_str()));
    }
    if (comma == rest.npos) return values;
    rest.remove_prefix(comma + 1);
  }
}

}  // namespace greta::cli
