// Declares the shared options, reads prompts, and puts the command line into the order CLI11 expects.
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
#include "llama_flags.h"

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
      ->type_name("FILE");
}

void add_mapping(CLI::App& app, ModelOptions& options) {
  app.add_flag("--no-mmap", options.copy,
               "copy the weights; without it they stay in the mapped file where possible");
}

void add_device(CLI::App& app, DeviceOptions& options) {
  app.add_option("--device", options.device,
                 "run on this device: auto, vulkan (the best GPU), or one that `greta-cli devices` lists")
      ->type_name("D")
      ->capture_default_str();
  app.add_flag("--exact", options.exact,
               "use only the plain kernels, which are slow and give the same bits for every step size");
}

void add_options(CLI::App& app, DeviceOptions& options) {
  add_device(app, options);
  app.add_option("-t,--threads", options.threads, "threads of the CPU device; 0: one for each processor")
      ->type_name("N")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
}

void add_cache_types(CLI::App& app, ContextOptions& options) {
  const auto add = [&app](const char* name, std::string& value, const char* about) {
    app.add_option(name, value, about)
        ->type_name("TYPE")
        ->check(CLI::IsMember({"f32", "f16", "q8_0"}))
        ->capture_default_str();
  };
  add("--cache-type-k", options.key_type, "type of the cached keys");
  add("--cache-type-v", options.value_type, "type of the cached values");
}

void add_options(CLI::App& app, ContextOptions& options) {
  app.add_option("-c,--ctx-size", options.context,
                 "length of the context in tokens; 0: the model's [8192, or less if that does not fit]")
      ->type_name("N")
      ->check(CLI::Range(int64_t{0}, int64_t{INT32_MAX}));
  add_cache_types(app, options);
  add_batch_size(app, options);
}

void add_batch_size(CLI::App& app, ContextOptions& options) {
  app.add_option("-b,--batch-size", options.step_tokens,
                 "the most tokens of a step, up to 512; 0: chosen by speed")
      ->type_name("N")
      ->check(CLI::Range(0, 512))
      ->capture_default_str();
}

void add_options(CLI::App& app, TextOptions& options) {
  CLI::Option* text =
      app.add_option("-p,--prompt", options.text, "read the text from the command line")->type_name("TEXT");
  CLI::Option* file = app.add_option("-f,--file", options.file,
                                     "read the text from this file; without -p and -f, from standard input");
  file->type_name("FILE")->excludes(text);
  app.add_flag("-e,--escape", options.escape,
               R"(replace \n, \t, \\ and \x41 in the text by what they stand for)");
  options.text_option = text;
  options.file_option = file;
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

std::vector<uint32_t> parse_list(const std::string& option, const std::string& text, uint32_t smallest) {
  std::vector<uint32_t> values;
  const char* at = text.data();
  const char* const end = at + text.size();
  for (;;) {
    uint32_t value = 0;
    const auto [next, error] = std::from_chars(at, end, value);
    if (error != std::errc() || value < smallest || value > INT32_MAX || (next != end && *next != ',')) {
      throw Misused(format("%s takes numbers of at least %u with commas between them, not \"%s\"",
                           option.c_str(), smallest, text.c_str()));
    }
    values.push_back(value);
    if (next == end) return values;
    at = next + 1;
  }
}

namespace {

struct Synonym {
  const char* given;
  const char* meant;
};
constexpr Synonym kSynonyms[] = {
    {"-ctk", "--cache-type-k"},   {"-ctv", "--cache-type-v"}, {"-dev", "--device"},
    {"-sys", "--system-prompt"},  {"-ub", "--batch-size"},    {"--ubatch-size", "--batch-size"},
    {"--n-predict", "--predict"},
};

std::string usual_spelling(const std::string& word) {
  for (const Synonym& spelling : kSynonyms) {
    if (word == spelling.given) return spelling.meant;
  }
  const char* const meant = llama_spelling(word);
  return meant ? meant : word;
}

// Whether the next word is the value of `word`, in any command.
bool takes_value(const CLI::App& app, const std::string& word) {
  std::vector<const CLI::App*> apps = app.get_subcommands([](const CLI::App*) { return true; });
  apps.push_back(&app);
  for (const CLI::App* command : apps) {
    const CLI::Option* option = command->get_option_no_throw(word);
    if (option && option->get_items_expected_min() > 0) return true;
  }
  return false;
}

}  // namespace

std::vector<std::string> single_dash_words(const std::string& long_name) {
  std::vector<std::string> words;
  for (const Synonym& spelling : kSynonyms) {
    if (long_name == spelling.meant && spelling.given[1] != '-') words.emplace_back(spelling.given);
  }
  add_single_dash_words(long_name, &words);
  return words;
}

std::vector<std::string> normal_order(const CLI::App& app, int argc, char** argv) {
  std::vector<std::string> words;
  std::optional<size_t> command;
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    if (word.size() < 2 || word[0] != '-') {
      if (!command) command = words.size();
      words.push_back(std::move(word));
      continue;
    }
    word = usual_spelling(word);
    if (i + 1 < argc && takes_switch(word) && is_switch(argv[i + 1])) {
      words.push_back(word + "=" + argv[++i]);
    } else if (i + 1 < argc && takes_value(app, word)) {
      std::string value = argv[++i];
      const bool empty = value.empty();
      adapt_llama_value(&word, &value);
      if (!word.empty()) words.push_back(std::move(word));
      if (empty || !value.empty()) words.push_back(std::move(value));
    } else {
      words.push_back(std::move(word));
    }
  }
  if (command) std::rotate(words.begin(), words.begin() + *command, words.begin() + *command + 1);
  return words;
}

}  // namespace greta::cli
