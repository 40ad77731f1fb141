// Looks flags up in the table llama_flags.def, and says what becomes of each.
#include "llama_flags.h"

#include <CLI/Config.hpp>
#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "console.h"

namespace greta::cli {
namespace {

enum class Fate : uint8_t {
  Taken,    // The flag asks for what happens anyway.
  Noted,    // Nothing is lost without the flag. A note says why.
  Refused,  // The flag is wrong usage. The text says what to do.
};

struct Spelling {
  const char *given, *meant;
};
struct Flag {
  const char* names;  // with commas between them
  char value;         // ' ': no value, 'V': one value, 'O': one value if it looks like on, off or auto
  Fate fate;
  const char* text;
};
constexpr char kWholeLayers[] =
    "a layer is on one device, but for its experts: see -ngl N, --n-cpu-moe N and docs/devices.md";
constexpr char kNoNetwork[] = "nothing is downloaded: get the .gguf file yourself and give it with -m FILE";
constexpr char kFromFile[] = "it is taken from the model's file";
constexpr char kHost[] = "use taskset, nice or numactl";
constexpr char kNoDraft[] =
    "guesses come from --spec ngram, --spec draft-mtp or -md FILE, and have no such setting";
constexpr char kOnlyText[] = "only text is read; leave the flag out";

#define FLAG(names, value, fate, text)
#define VARIABLE(name, option)
#define SPELLING(given, meant) {given, meant},
constexpr Spelling kSpellings[] = {
#include "llama_flags.def"
};
#undef FLAG
#undef SPELLING
#define FLAG(names, value, fate, text) {names, value, Fate::fate, text},
#define SPELLING(given, meant)
constexpr Flag kFlags[] = {
#include "llama_flags.def"
};
#undef FLAG
#undef VARIABLE
#define FLAG(names, value, fate, text)
#define VARIABLE(name, option) {name, option, nullptr},
constexpr Variable kVariables[] = {
#include "llama_flags.def"
};
#undef FLAG
#undef SPELLING
#undef VARIABLE

std::vector<std::string> names_of(const Flag& flag) {
  std::vector<std::string> names;
  std::string_view rest = flag.names;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find(','), rest.size());
    names.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return names;
}

// The name that CLI11 knows: the first with two dashes.
std::string main_name(const Flag& flag) {
  for (const std::string& name : names_of(flag)) {
    if (name.starts_with("--")) return name;
  }
  return flag.names;
}

// To CLI11, "-no-cnv" would be -n with the value o-cnv.
bool is_single_dash_word(const std::string& name) { return name.size() > 2 && name[1] != '-'; }

std::string flag_words(const Flag& flag) {
  const std::vector<std::string> names = names_of(flag);
  const std::string main = main_name(flag);
  return names[0] == main ? main : names[0] + ", " + main;
}

bool is_off(const std::string& value) {
  return value == "off" || value == "0" || value == "false" || value == "disabled";
}

void act(const Flag& flag) {
  if (flag.fate == Fate::Refused) throw CLI::ValidationError(flag_words(flag), flag.text);
  if (flag.fate == Fate::Noted) note(flag_words(flag) + ": " + flag.text);
}

// Names of devices as llama.cpp has them: none, Vulkan0, ROCm0.
std::string device_name(const std::string& given) {
  if (const size_t comma = given.find(','); comma != given.npos)
    return device_name(given.substr(0, comma)) + "," + device_name(given.substr(comma + 1));
  std::string name = given;
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  if (name == "none") return "cpu";
  if (name.starts_with("rocm")) return "hip" + name.substr(4);
  return name.starts_with("vulkan") || name.starts_with("cpu") ? name : given;
}

}  // namespace

std::string llama_spelling(const std::string& word) {
  for (const Spelling& spelling : kSpellings) {
    if (word == spelling.given) return spelling.meant;
  }
  for (const Flag& flag : kFlags) {
    for (const std::string& name : names_of(flag)) {
      if (word == name && word.size() > 2) return main_name(flag);  // CLI11 reads "-o" itself
    }
  }
  return word;
}

std::vector<Variable> llama_variables() {
  std::vector<Variable> set;
  for (const Variable& each : kVariables) {
    const char* const value = std::getenv(each.name);
    if (value && *value) set.push_back({each.name, each.option, value});
  }
  return set;
}

const char* option_of_variable(const std::string& name) {
  for (const Variable& each : kVariables)
    if (name == each.name) return each.option;
  return nullptr;
}

std::vector<std::string> single_dash_words(const std::string& long_name) {
  std::vector<std::string> words;
  for (const Spelling& spelling : kSpellings) {
    if (long_name == spelling.meant && spelling.given[1] != '-') words.emplace_back(spelling.given);
  }
  return words;
}

void add_llama_flags(CLI::App& app) {
  for (const Flag& flag : kFlags) {
    std::string names;
    bool declared = false;
    for (const std::string& name : names_of(flag)) {
      if (is_single_dash_word(name)) continue;
      names += (names.empty() ? "" : ",") + name;
      declared = declared || app.get_option_no_throw(name);
    }
    if (declared) continue;
    const auto found = [&flag](const CLI::results_t& values) {
      if (flag.value != 'O' || values.empty() || !is_off(values[0])) act(flag);
      return true;
    };
    CLI::Option* option = app.add_option(names, found)->group("");
    option->expected(flag.value == 'V' ? 1 : 0, flag.value == ' ' ? 0 : 1);
  }
}

bool takes_switch(const std::string& word) {
  if (word == "--color") return true;
  return std::any_of(std::begin(kFlags), std::end(kFlags),
                     [&](const Flag& flag) { return flag.value == 'O' && word == main_name(flag); });
}

bool is_switch(const std::string& value) {
  for (const char* word : {"on", "off", "auto", "1", "0", "true", "false", "enabled", "disabled"}) {
    if (value == word) return true;
  }
  return false;
}

void adapt_llama_switch(std::string* word, std::string* value) {
  if (*word != "--mmap" || !is_off(*value)) return;
  *word = "--no-mmap";
  value->clear();
}

void adapt_llama_value(std::string* word, std::string* value) {
  if (*word == "--device") *value = device_name(*value);
  if (*word == "--temp" && value->size() > 1 && (*value)[0] == '-' &&
      value->find_first_not_of("0123456789.", 1) == value->npos)
    *value = "0";  // less than nothing means the most likely token, too
  if (*word == "--load-mode" && (*value == "none" || *value == "mmap" || *value == "auto")) {
    *word = *value == "none" ? "--no-mmap" : "--mmap";
    value->clear();
    return;
  }
  int number = -1;
  const char* const end = value->data() + value->size();
  if (std::from_chars(value->data(), end, number).ptr != end) return;
  if (*word == "--gpu-layers" && number == 0) {
    *word = "--device";
    *value = "cpu";
  } else if ((*word == "-b" || *word == "--batch-size") && number > 512) {
    *value = "512";
  } else if ((*word == "-n" || *word == "--predict") && number == -2) {  // until the context is full
    *value = "-1";
  } else if ((*word == "-t" || *word == "--threads") && number == -1) {
    *value = "0";
  } else if (*word == "--log-verbosity") {
    *word = number < 3 ? "--quiet" : number > 3 ? "--verbose" : "";
    value->clear();
  }
}

}  // namespace greta::cli
