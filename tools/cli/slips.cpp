// Finds the word that is nearest to one that is not known, and puts errors into words.
#include "slips.h"

#include <CLI/Formatter.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>

#include "console.h"

namespace greta::cli {
namespace {

// What people type who know other programs.
struct Habit {
  const char *word, *answer;
};
constexpr char kNoStore[] =
    "nothing is downloaded or stored: get the .gguf file yourself, then greta-cli chat -m FILE.gguf";
constexpr char kNoConversion[] = "files are read as they are: get a .gguf file of the type that you want";
constexpr Habit kHabits[] = {
    {"serve", "this program was built without Boost's headers (libboost-dev), and so without a server"},
    {"server", "use greta-cli serve -m FILE.gguf"},
    {"pull", kNoStore},
    {"download", kNoStore},
    {"list", kNoStore},
    {"ls", kNoStore},
    {"rm", kNoStore},
    {"ps", kNoStore},
    {"push", kNoStore},
    {"create", kNoStore},
    {"quantize", kNoConversion},
    {"convert", kNoConversion},
    {"show", "use greta-cli info -m FILE.gguf"},
    {"generate", "use greta-cli run -m FILE.gguf -p TEXT"},
    {"complete", "use greta-cli run -m FILE.gguf -p TEXT"},
    {"completion", "use greta-cli run -m FILE.gguf -p TEXT"},
    {"cli", "use greta-cli chat -m FILE.gguf"},
    {"perplexity", "use greta-cli ppl -m FILE.gguf -f TEXT"},
    {"embedding", "use greta-cli embed -m FILE.gguf -p TEXT"},
};

// The word of a list that is so near that it was meant; "" if there is none.
std::string nearest(const std::string& word, const std::vector<std::string>& words) {
  std::string best;
  size_t least = word.size() <= 4 ? 2 : 3;  // one slip in a short word, two in a longer one
  for (const std::string& other : words) {
    const size_t steps = letters_apart(word, other);
    if (steps >= least) continue;
    least = steps;
    best = other;
  }
  return best;
}

std::vector<const CLI::App*> commands(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

// Those that the help shows.
std::vector<std::string> long_options(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_group().empty()) continue;
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::string help_of(const CLI::App* command) {
  return "greta-cli " + (command ? command->get_name() + " " : "") + "-h";
}

std::string unknown_option(const CLI::App& app, const CLI::App* command, const std::string& word) {
  const std::string name = word.substr(0, word.find('='));
  const std::string here = command ? command->get_name() : "greta-cli";
  for (const CLI::App* other : commands(app)) {
    const CLI::Option* option = other->get_option_no_throw(name);
    if (option && !option->get_group().empty())
      return name + " is an option of " + other->get_name() + ", not of " + here + " (see " +
             help_of(command) + ")";
  }
  std::vector<std::string> names = long_options(app);  // they may stand behind any command
  if (command) names = long_options(*command);
  if (command && nearest(name, names).empty()) names = long_options(app);
  const std::string meant = nearest(name, names);
  const std::string question = meant.empty() ? "" : ": did you mean " + meant + "?";
  return here + " has no option " + name + question + " (see " + help_of(command) + ")";
}

std::string number_text(double number) { return format("%.10g", number); }

std::string range_text(double least, double most) {
  if (most >= 1e6 && least <= -1e6) return "a number";
  if (most >= 1e6) return "a number of at least " + number_text(least);
  return "a number from " + number_text(least) + " to " + number_text(most);
}

}  // namespace

size_t letters_apart(const std::string& a, const std::string& b) {
  std::vector<std::vector<size_t>> steps(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) {
    for (size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        steps[i][j] = i + j;
        continue;
      }
      const size_t same = a[i - 1] == b[j - 1] ? 0 : 1;
      steps[i][j] = std::min({steps[i - 1][j] + 1, steps[i][j - 1] + 1, steps[i - 1][j - 1] + same});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        steps[i][j] = std::min(steps[i][j], steps[i - 2][j - 2] + 1);
    }
  }
  return steps[a.size()][b.size()];
}

const CLI::App* command_named(const CLI::App& app, const std::string& name) {
  for (const CLI::App* command : commands(app)) {
    if (command->get_name() == name) return command;
  }
  return nullptr;
}

std::string unknown_command(const CLI::App& app, const std::string& word) {
  std::vector<std::string> names = {"help", "version"};
  for (const CLI::App* command : commands(app)) names.push_back(command->get_name());
  const std::string start = "there is no command " + word;
  for (const Habit& habit : kHabits) {
    if (word == habit.word) return start + ": " + habit.answer;
  }
  const std::string meant = nearest(word, names);
  if (!meant.empty()) return start + ": did you mean " + meant + "? (see greta-cli -h)";
  return start + ": give a text with -p, a model with -m (see greta-cli -h)";
}

std::string unexpected_word(const CLI::App& app, const CLI::App* command,
                            const std::vector<std::string>& words) {
  std::vector<std::string> left = app.remaining(true);
  const auto first = std::find_first_of(words.begin(), words.end(), left.begin(), left.end());
  const std::string word = first != words.end() ? *first : left.front();
  if (word.size() > 1 && word[0] == '-') return unknown_option(app, command, word);
  const bool has_text = command && command->get_option_no_throw("--prompt");
  const std::string next = has_text ? ": a text stands behind -p, in quotes if it has blanks" : "";
  return "\"" + word + "\" belongs to no option" + next + " (see " + help_of(command) + ")";
}

std::string misuse_text(const CLI::App* command, const CLI::ParseError& error,
                        const std::vector<std::string>& words) {
  std::string text = error.what();
  if (text.starts_with(": ")) text = words.back() + text;  // CLI11 does not name what the help does not show
  const size_t missing = text.find(": 1 required ");
  if (missing != text.npos) text = text.substr(0, missing) + " needs a value";
  for (const char* verb :
       {"takes ", "is empty"}) {  // CLI11 puts a colon between the option and what we say of it
    const size_t at = text.find(std::string(": ") + verb);
    if (at != text.npos) text.erase(at, 1);
  }
  return text + " (see " + help_of(command) + ")";
}

CLI::Validator in_range(double least, double most) {
  const auto check = [=](std::string& text) {
    double value = 0;
    const char* const end = text.data() + text.size();
    const char* const begin = text.data() + (text[0] == '+' ? 1 : 0);
    const auto [rest, error] = std::from_chars(begin, end, value);
    const bool good = error == std::errc() && rest == end && value >= least && value <= most;
    return good ? std::string() : "takes " + range_text(least, most) + ", not \"" + text + "\"";
  };
  return CLI::Validator(check, "");
}

CLI::Validator in_range(int64_t least, int64_t most) {
  const auto check = [=](std::string& text) {
    int64_t value = 0;
    const char* const end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, value);
    if (error == std::errc() && rest == end && value >= least && value <= most) return std::string();
    std::string range = range_text(static_cast<double>(least), static_cast<double>(most));
    return "takes " + range.replace(0, 1, "a whole") + ", not \"" + text + "\"";
  };
  return CLI::Validator(check, "");
}

CLI::Validator one_of(std::vector<std::string> words) {
  std::string list;
  for (const std::string& word : words)
    list += (list.empty() ? "" : &word == &words.back() ? " or " : ", ") + word;
  std::string choices;
  for (const std::string& word : words) choices += (choices.empty() ? "{" : ",") + word;
  const auto check = [words = std::move(words), list](std::string& text) {
    if (std::find(words.begin(), words.end(), text) != words.end()) return std::string();
    return "takes " + list + ", not \"" + text + "\"";
  };
  return CLI::Validator(check, choices + "}");
}

CLI::Validator not_empty() {
  const auto check = [](std::string& text) {
    return text.empty() ? std::string("is empty: is a variable of the shell not set?") : std::string();
  };
  return CLI::Validator(check, "");
}

}  // namespace greta::cli
