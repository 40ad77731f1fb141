// Reads words one by one, then finds the model and the command among them.
#include "command_line.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <optional>

#include "bundled.h"
#include "console.h"
#include "llama_flags.h"
#include "model.h"
#include "slips.h"

namespace greta::cli {
namespace {

enum class Kind : uint8_t { kOption, kValue, kFree };
struct Word {
  std::string text;
  Kind kind;
};
using Words = std::vector<Word>;

// The options of this name: of the command that stands before it, else of every command.
std::vector<const CLI::Option*> options_named(const CLI::App& app, const Words& before,
                                              const std::string& word) {
  std::vector<const CLI::App*> apps = app.get_subcommands([](const CLI::App*) { return true; });
  for (const Word& other : before) {
    const CLI::App* const command = other.kind == Kind::kFree ? command_named(app, other.text) : nullptr;
    if (command) apps = {command};
    if (command) break;
  }
  apps.push_back(&app);
  std::vector<const CLI::Option*> options;
  for (const CLI::App* command : apps) {
    if (const CLI::Option* option = command->get_option_no_throw(word)) options.push_back(option);
  }
  return options;
}

// How many words behind `word` are its values.
int values_of(const CLI::App& app, const Words& before, const std::string& word) {
  int most = 0;
  for (const auto* option : options_named(app, before, word))
    most = std::max(most, option->get_items_expected_min());
  return most;
}

bool takes_value(const CLI::App& app, const Words& before, const std::string& word) {
  return values_of(app, before, word) > 0;
}

// Whether `next` seems to be the value of an option that nobody knows ("--tmep 0"), and so is no command.
bool is_value_of_unknown(const CLI::App& app, const Words& before, const std::string& word,
                         const char* next) {
  return word.starts_with("--") && next && next[0] != '-' && !command_named(app, next) &&
         options_named(app, before, word.substr(0, word.find('='))).empty();
}

// Whether the option lacks its value, since `next` is an option, too ("-ngl -p hi"). A text may be any word.
bool lacks_value(const CLI::App& app, const Words& before, const std::string& word, const std::string& next) {
  if (next[0] != '-' || options_named(app, before, llama_spelling(next)).empty()) return false;
  const auto options = options_named(app, before, word);
  return takes_value(app, before, word) && std::none_of(options.begin(), options.end(), [](auto* option) {
           return option->get_type_name().starts_with("TEXT");
         });
}

// Takes "--n_predict=4" apart, and gives the option its usual name.
std::string option_of(const std::string& typed, std::optional<std::string>* value) {
  std::string name = typed;
  if (!typed.starts_with("--")) return llama_spelling(typed);
  const size_t equals = typed.find('=');
  if (equals != std::string::npos) {
    *value = typed.substr(equals + 1);
    name.resize(equals);
  }
  std::replace(name.begin(), name.end(), '_', '-');
  return llama_spelling(name);
}

void add_with_value(std::string word, std::string value, Words* words) {
  const bool empty = value.empty();
  adapt_llama_value(&word, &value);
  if (!word.empty()) words->push_back({std::move(word), Kind::kOption});
  if (empty || !value.empty()) words->push_back({std::move(value), Kind::kValue});
}

void add_with_switch(std::string word, std::string value, Words* words) {
  adapt_llama_switch(&word, &value);
  words->push_back({value.empty() ? word : word + "=" + value, Kind::kOption});
}

// Takes "-mFILE" and "-n8" apart. False if it is no letter of an option with its value.
bool add_letter_with_value(const CLI::App& app, const std::string& typed, Words* words) {
  if (typed.size() < 3 || typed[1] == '-' || !options_named(app, {}, llama_spelling(typed)).empty())
    return false;
  const std::string letter = llama_spelling(typed.substr(0, 2));
  if (!takes_value(app, *words, letter)) return false;
  add_with_value(letter, typed.substr(2), words);
  return true;
}

Words read_words(const CLI::App& app, int argc, char** argv) {
  Words words;
  for (int i = 1; i < argc; ++i) {
    const std::string typed = argv[i];
    if (typed.size() < 2 || typed[0] != '-') {
      words.push_back({typed, Kind::kFree});
      continue;
    }
    if (add_letter_with_value(app, typed, &words)) continue;
    std::optional<std::string> value;
    const std::string word = option_of(typed, &value);
    const char* const next = i + 1 < argc ? argv[i + 1] : nullptr;
    if (takes_switch(word) && (value || (next && is_switch(next)))) {
      add_with_switch(word, value ? *value : argv[++i], &words);
    } else if (!value && next && lacks_value(app, words, word, next)) {
      throw Misused(typed + " needs a value, but " + next + " follows (see greta-cli -h)");
    } else if ((takes_value(app, words, word) && (value || next)) ||
               (!value && is_value_of_unknown(app, words, word, next))) {
      int more = value ? 0 : values_of(app, words, word) - 1;
      add_with_value(word, value ? *value : argv[++i], &words);
      for (; more > 0 && i + 1 < argc; --more) words.push_back({argv[++i], Kind::kValue});
    } else {
      words.push_back({value ? word + "=" + *value : word, Kind::kOption});
    }
  }
  return words;
}

bool has(const Words& words, std::initializer_list<const char*> names) {
  return std::any_of(words.begin(), words.end(), [&](const Word& word) {
    return word.kind == Kind::kOption && std::find(names.begin(), names.end(), word.text) != names.end();
  });
}

bool is_model(const std::string& text) {
  std::string end = text.size() > 5 ? text.substr(text.size() - 5) : "";
  std::transform(end.begin(), end.end(), end.begin(), [](unsigned char c) { return std::tolower(c); });
  return end == ".gguf";
}

// Makes the first free word that is the name of a model the value of -m.
void take_model(Words* words) {
  if (has(*words, {"-m", "--model"})) return;
  const auto found = std::find_if(words->begin(), words->end(), [](const Word& word) {
    return word.kind == Kind::kFree && is_model(word.text);
  });
  if (found == words->end()) return;
  found->kind = Kind::kValue;
  words->insert(found, {"--model", Kind::kOption});
}

std::string model_of(const Words& words) {
  std::string path = bundled_model_path();
  for (const Variable& variable : llama_variables()) {
    if (std::strcmp(variable.option, "--model") == 0) path = variable.value;
  }
  for (size_t i = 0; i + 1 < words.size(); ++i) {
    if (words[i].kind == Kind::kOption && (words[i].text == "-m" || words[i].text == "--model"))
      path = words[i + 1].text;
  }
  return path;
}

// A file that cannot be read has none: the command that runs then says what is wrong.
bool has_template(const std::string& path) {
  auto source = sized<greta_source>();
  source.path = path.c_str();
  greta_file* opened = nullptr;
  const greta_status status = greta_file_open(&source, &opened);
  const File file(opened);
  if (status != GRETA_OK) return false;
  for (uint64_t i = 0; i < greta_file_metadata_count(opened); ++i) {
    const char* key = nullptr;
    if (greta_file_metadata(opened, i, &key, nullptr, nullptr, 0) != GRETA_OK) return false;
    if (std::strcmp(key, "tokenizer.chat_template") == 0) return true;
  }
  return false;
}

// Without a command llama-cli decides: a conversation where there is a template and somebody to talk to.
std::string usual_command(const CLI::App& app, const Words& words) {
  if (has(words, {"--no-conversation"})) return "run";
  const CLI::App* const chat = command_named(app, "chat");
  const CLI::App* const run = command_named(app, "run");
  for (const Word& word : words) {
    if (word.kind == Kind::kOption && chat->get_option_no_throw(word.text) &&
        !run->get_option_no_throw(word.text))
      return "chat";
  }
  return stdin_is_terminal() && stdout_is_terminal() && has_template(model_of(words)) ? "chat" : "run";
}

// Puts in what llama-cli does by itself: a conversation goes on, and \n in the prompt is a line end.
void add_usual_command(const CLI::App& app, Words* words) {
  const std::string command = usual_command(app, *words);
  if (command == "chat" && !has(*words, {"--single-turn"}))
    words->push_back({"--interactive", Kind::kOption});
  if (has(*words, {"-p", "--prompt", "-f", "--file"}) && !has(*words, {"--no-escape"}))
    words->push_back({"--escape", Kind::kOption});
  std::erase_if(*words, [](const Word& word) {
    return word.kind == Kind::kOption && word.text == "--no-conversation";
  });
  words->insert(words->begin(), {command, Kind::kFree});
}

// Puts what variables of the environment say before all words that were typed, whose options then count more.
void add_variables(const CLI::App& app, const std::string& command, Words* words) {
  if (command == "bench") return;  // llama-bench reads none
  Words added;
  for (const Variable& variable : llama_variables()) {
    const CLI::Option* option = command_named(app, command)->get_option_no_throw(variable.option);
    if (!option) option = app.get_option_no_throw(variable.option);
    if (!option) continue;
    note(std::string(variable.name) + " stands for " + variable.option + " " + variable.value);
    const bool off = std::strcmp(variable.value, "0") == 0 || std::strcmp(variable.value, "false") == 0;
    if (takes_switch(variable.option)) {
      add_with_switch(variable.option, variable.value, &added);
    } else if (option->get_items_expected_min() > 0) {
      add_with_value(variable.option, variable.value, &added);
    } else if (!off) {
      added.push_back({variable.option, Kind::kOption});
    }
  }
  words->insert(words->begin() + 1, added.begin(), added.end());
}

// Whether there is more than what the program itself answers.
bool needs_command(const CLI::App& app, const Words& words) {
  if (has(words, {"-h", "--help"})) return false;
  return std::any_of(words.begin(), words.end(), [&](const Word& word) {
    return word.kind == Kind::kOption && !app.get_option_no_throw(word.text.substr(0, word.text.find('=')));
  });
}

}  // namespace

std::vector<std::string> option_words(const CLI::App& app, const std::string& command,
                                      std::vector<std::string> typed) {
  typed.insert(typed.begin(), {"", command});
  std::vector<char*> words;
  for (std::string& word : typed) words.push_back(word.data());
  std::vector<std::string> read;
  for (Word& word : read_words(app, static_cast<int>(words.size()), words.data()))
    read.push_back(std::move(word.text));
  read.erase(read.begin());
  return read;
}

CommandLine command_line(const CLI::App& app, int argc, char** argv) {
  Words words = read_words(app, argc, argv);
  take_model(&words);
  CommandLine line;
  const auto is_free = [](const Word& word) { return word.kind == Kind::kFree; };
  auto command = std::find_if(words.begin(), words.end(), is_free);
  if (command == words.end() && needs_command(app, words)) {
    add_usual_command(app, &words);
    command = words.begin();
  }
  if (command != words.end()) {
    if (command->text == "help" || command->text == "version") {  // "help run" is "run --help"
      *command = {"--" + command->text, Kind::kOption};
      command = std::find_if(words.begin(), words.end(), is_free);
    }
  }
  if (command != words.end()) {
    (command_named(app, command->text) ? line.command : line.unknown) = command->text;
    std::rotate(words.begin(), command, command + 1);
  }
  if (!line.command.empty() && !has(words, {"-h", "--help"})) add_variables(app, line.command, &words);
  for (Word& word : words) line.words.push_back(std::move(word.text));
  return line;
}

}  // namespace greta::cli
