// The table of flags, with what becomes of each.
#include "llama_flags.h"

#include <CLI/Config.hpp>
#include <algorithm>
#include <charconv>
#include <cstring>

#include "console.h"

namespace greta::cli {
namespace {

struct Spelling {
  const char *given, *meant;
};
constexpr Spelling kSpellings[] = {
    {"-sysf", "--system-prompt-file"},
    {"-st", "--single-turn"},
    {"-cnv", "--conversation"},
    {"-no-cnv", "--no-conversation"},
    {"-if", "--interactive-first"},
    {"-mli", "--multiline-input"},
    {"-rea", "--reasoning"},
    {"-tb", "--threads-batch"},
    {"-ngl", "--gpu-layers"},
    {"--n-gpu-layers", "--gpu-layers"},
    {"-fa", "--flash-attn"},
    {"-nkvo", "--no-kv-offload"},
    {"-kvo", "--kv-offload"},
    {"-kvu", "--kv-unified"},
    {"-nr", "--no-repack"},
    {"-lv", "--log-verbosity"},
    {"--verbosity", "--log-verbosity"},
    {"-sm", "--split-mode"},
    {"-ts", "--tensor-split"},
    {"-mg", "--main-gpu"},
    {"-ot", "--override-tensor"},
    {"-cmoe", "--cpu-moe"},
    {"-ncmoe", "--n-cpu-moe"},
    {"-fit", "--fit"},
    {"-np", "--parallel"},
    {"-cb", "--cont-batching"},
    {"-hf", "--hf-repo"},
    {"-hfr", "--hf-repo"},
    {"-hff", "--hf-file"},
    {"-hft", "--hf-token"},
    {"-mu", "--model-url"},
    {"-dr", "--docker-repo"},
    {"-md", "--model-draft"},
    {"-mm", "--mmproj"},
    {"-cram", "--cache-ram"},
    {"-sp", "--special"},
    {"-co", "--color"},
    {"-lm", "--load-mode"},
};

enum class Fate : uint8_t {
  Taken,    // The flag asks for what happens anyway.
  Noted,    // Nothing is lost without the flag. A note says why.
  Refused,  // The flag is wrong usage. The text says what to do.
};

struct Flag {
  const char* name;
  char value;  // ' ': no value, 'V': one value, 'O': one value if it looks like on, off or auto
  Fate fate;
  const char* text;
};
constexpr char kOneDevice[] =
    "a model runs on one device as a whole: choose it with --device D (see greta-cli devices)";
constexpr char kNoNetwork[] = "nothing is downloaded: get the .gguf file yourself and give it with -m FILE";
constexpr char kFromFile[] = "it is taken from the model's file";
constexpr char kHost[] = "use taskset, nice or numactl";

constexpr Flag kFlags[] = {
    {"--jinja", ' ', Fate::Taken, ""},
    {"--no-jinja", ' ', Fate::Refused,
     "templates are always rendered by the Jinja engine; --chat-template gives another template"},
    {"--no-display-prompt", ' ', Fate::Taken, ""},
    {"--display-prompt", ' ', Fate::Noted, "only what the model says goes to stdout"},
    {"--no-conversation", ' ', Fate::Refused, "use greta-cli run to continue a plain text"},
    {"--interactive-first", ' ', Fate::Noted, "greta-cli chat on a terminal asks first"},
    {"--multiline-input", ' ', Fate::Noted,
     "a line that ends with \\ goes on in the next, and so do lines between \"\"\""},
    {"--in-prefix", 'V', Fate::Refused,
     "what stands around messages is the chat template's: --chat-template"},
    {"--in-suffix", 'V', Fate::Refused,
     "what stands around messages is the chat template's: --chat-template"},
    {"--threads-batch", 'V', Fate::Noted, "-t sets the threads for prompts as well"},
    {"--gpu-layers", 'V', Fate::Noted, kOneDevice},
    {"--flash-attn", 'O', Fate::Taken, ""},
    {"--no-kv-offload", ' ', Fate::Refused,
     "the cache is on the device of the model; --device cpu keeps both in memory"},
    {"--kv-offload", ' ', Fate::Taken, ""},
    {"--kv-unified", ' ', Fate::Taken, ""},
    {"--swa-full", ' ', Fate::Noted, "a layer with a window keeps all that it needs"},
    {"--no-repack", ' ', Fate::Noted, "--exact uses the weights as the file has them"},
    {"--mmap", ' ', Fate::Taken, ""},
    {"--load-mode", 'V', Fate::Noted,
     "auto and mmap mean --mmap, none means --no-mmap, and there are no others"},
    {"--direct-io", ' ', Fate::Noted, "files are mapped, or with --no-mmap read through the page cache"},
    {"--mlock", ' ', Fate::Refused, "pages are not locked; vmtouch -l FILE does it for the mapped weights"},
    {"--no-warmup", ' ', Fate::Taken, ""},
    {"--warmup", ' ', Fate::Noted, "there is nothing to warm up"},
    {"--check-tensors", ' ', Fate::Noted, "shapes and sizes are always checked"},
    {"--offline", ' ', Fate::Taken, ""},
    {"--fit", 'O', Fate::Taken, ""},
    {"--keep", 'V', Fate::Noted, "the context is never shifted, so all of it is kept"},
    {"--no-context-shift", ' ', Fate::Taken, ""},
    {"--context-shift", ' ', Fate::Refused, "a full context ends the answer: give a larger one with -c"},
    {"--cont-batching", ' ', Fate::Taken, ""},
    {"--parallel", 'V', Fate::Noted, "one conversation runs at a time here"},
    {"--cache-ram", 'V', Fate::Noted, "what a conversation has in common with the last one is kept anyway"},
    {"--perf", ' ', Fate::Noted, "-v shows times, and so does --show-timings in chat"},
    {"--no-perf", ' ', Fate::Taken, ""},
    {"--special", ' ', Fate::Noted, "control tokens are shown by --reasoning raw where they mean something"},
    {"--log-colors", 'O', Fate::Taken, ""},
    {"--log-verbosity", 'V', Fate::Refused,
     "it takes a number: 0 to 2 mean -q, 3 is the default, 4 and above mean -v"},
    {"--log-disable", ' ', Fate::Noted, "-q says nothing but errors"},
    {"--log-prefix", ' ', Fate::Taken, ""},
    {"--log-timestamps", ' ', Fate::Taken, ""},
    {"--no-escape", ' ', Fate::Taken, ""},
    {"--numa", 'V', Fate::Noted, kHost},
    {"--prio", 'V', Fate::Noted, kHost},
    {"--poll", 'V', Fate::Noted, kHost},
    {"--cpu-mask", 'V', Fate::Noted, kHost},
    {"--cpu-range", 'V', Fate::Noted, kHost},
    {"--cpu-strict", 'V', Fate::Noted, kHost},
    {"--split-mode", 'V', Fate::Refused, kOneDevice},
    {"--tensor-split", 'V', Fate::Refused, kOneDevice},
    {"--main-gpu", 'V', Fate::Refused, kOneDevice},
    {"--override-tensor", 'V', Fate::Refused, kOneDevice},
    {"--cpu-moe", ' ', Fate::Refused, kOneDevice},
    {"--n-cpu-moe", 'V', Fate::Refused, kOneDevice},
    {"--rpc", 'V', Fate::Refused, kOneDevice},
    {"--hf-repo", 'V', Fate::Refused, kNoNetwork},
    {"--hf-file", 'V', Fate::Refused, kNoNetwork},
    {"--hf-token", 'V', Fate::Refused, kNoNetwork},
    {"--model-url", 'V', Fate::Refused, kNoNetwork},
    {"--docker-repo", 'V', Fate::Refused, kNoNetwork},
    {"--override-kv", 'V', Fate::Refused, kFromFile},
    {"--rope-scaling", 'V', Fate::Refused, kFromFile},
    {"--rope-scale", 'V', Fate::Refused, kFromFile},
    {"--rope-freq-base", 'V', Fate::Refused, kFromFile},
    {"--rope-freq-scale", 'V', Fate::Refused, kFromFile},
    {"--yarn-orig-ctx", 'V', Fate::Refused, kFromFile},
    {"--yarn-ext-factor", 'V', Fate::Refused, kFromFile},
    {"--yarn-attn-factor", 'V', Fate::Refused, kFromFile},
    {"--yarn-beta-slow", 'V', Fate::Refused, kFromFile},
    {"--yarn-beta-fast", 'V', Fate::Refused, kFromFile},
    {"--model-draft", 'V', Fate::Refused, "there is no speculative decoding yet; leave the flag out"},
    {"--spec-type", 'V', Fate::Refused, "there is no speculative decoding yet; leave the flag out"},
    {"--lora", 'V', Fate::Refused, "there are no adapters yet: merge the adapter into the model's file"},
    {"--lora-scaled", 'V', Fate::Refused,
     "there are no adapters yet: merge the adapter into the model's file"},
    {"--control-vector", 'V', Fate::Refused, "there are no control vectors yet; leave the flag out"},
    {"--mmproj", 'V', Fate::Refused, "only text is read; leave the flag out"},
    {"--image", 'V', Fate::Refused, "only text is read; leave the flag out"},
    {"--audio", 'V', Fate::Refused, "only text is read; leave the flag out"},
    {"--prompt-cache", 'V', Fate::Refused, "only greta-cli run and chat keep what they have read in a file"},
    {"--prompt-cache-all", ' ', Fate::Taken, ""},
    {"--prompt-cache-ro", ' ', Fate::Taken, ""},
};

std::string flag_words(const Flag& flag) {
  std::string words = flag.name;
  for (const Spelling& spelling : kSpellings) {
    if (std::strcmp(spelling.meant, flag.name) == 0 && spelling.given[1] != '-') {
      words = std::string(spelling.given) + ", " + words;
    }
  }
  return words;
}

void act(const Flag& flag) {
  if (flag.fate == Fate::Refused) throw CLI::ValidationError(flag_words(flag), flag.text);
  if (flag.fate == Fate::Noted) note(flag_words(flag) + ": " + flag.text);
}

}  // namespace

const char* llama_spelling(const std::string& word) {
  for (const Spelling& spelling : kSpellings) {
    if (word == spelling.given) return spelling.meant;
  }
  return nullptr;
}

void add_single_dash_words(const std::string& long_name, std::vector<std::string>* words) {
  for (const Spelling& spelling : kSpellings) {
    if (long_name == spelling.meant && spelling.given[1] != '-') words->emplace_back(spelling.given);
  }
}

void add_llama_flags(CLI::App& app) {
  for (const Flag& flag : kFlags) {
    if (app.get_option_no_throw(flag.name)) continue;
    const auto found = [&flag](const CLI::results_t&) {
      act(flag);
      return true;
    };
    CLI::Option* option = app.add_option(flag.name, found)->group("");
    option->expected(flag.value == 'V' ? 1 : 0, flag.value == ' ' ? 0 : 1);
  }
}

bool takes_switch(const std::string& word) {
  if (word == "--color") return true;
  return std::any_of(std::begin(kFlags), std::end(kFlags),
                     [&](const Flag& flag) { return flag.value == 'O' && word == flag.name; });
}

bool is_switch(const std::string& value) {
  for (const char* word : {"on", "off", "auto", "1", "0", "true", "false", "enabled", "disabled"}) {
    if (value == word) return true;
  }
  return false;
}

void adapt_llama_value(std::string* word, std::string* value) {
  if (*word == "--split-mode" && *value == "none") {  // this is what happens anyway
    word->clear();
    value->clear();
    return;
  }
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
  } else if (*word == "--log-verbosity") {
    *word = number < 3 ? "--quiet" : number > 3 ? "--verbose" : "";
    value->clear();
  }
}

}  // namespace greta::cli
