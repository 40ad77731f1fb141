// --models-preset: models with options of their own, from an INI file.
#if GRETA_SERVE
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <map>
#include <memory>
#include <sstream>

#include "command_line.h"
#include "commands/serve_options.h"
#include "console.h"
#include "llama_flags.h"
#include "slips.h"
#include "tensor_rules.h"

namespace greta::cli {
namespace {

using Keys = std::vector<std::pair<std::string, std::string>>;  // in the order of the file

struct Section {
  std::string name;
  Keys keys;
};

std::string trimmed(const std::string& text) {
  const char* const blanks = " \t\r";
  const size_t begin = text.find_first_not_of(blanks);
  return begin == text.npos ? "" : text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

[[noreturn]] void wrong_line(const std::string& path, size_t number, const std::string& words) {
  throw Failed(path + ":" + std::to_string(number) + ": " + words);
}

// The sections of the file. The one without a name has what stands before all others.
std::vector<Section> read_sections(const std::string& path) {
  std::istringstream stream(read_file(path));
  std::vector<Section> sections(1);
  size_t number = 0;
  for (std::string line; std::getline(stream, line);) {
    ++number;
    line = trimmed(line);
    if (line.empty() || line[0] == ';' || line[0] == '#') continue;
    if (line[0] == '[') {
      const std::string name = trimmed(line.substr(1, std::max<size_t>(line.size(), 2) - 2));
      if (line.back() != ']' || name.empty()) wrong_line(path, number, "expected [NAME OF A MODEL]");
      for (const Section& other : sections)
        if (other.name == name) wrong_line(path, number, "the section [" + name + "] is there twice");
      sections.push_back({name, {}});
      continue;
    }
    const size_t equals = line.find('=');
    const std::string key = trimmed(line.substr(0, equals));
    if (equals == line.npos || key.empty()) wrong_line(path, number, "expected KEY = VALUE");
    sections.back().keys.emplace_back(key, trimmed(line.substr(equals + 1)));
  }
  return sections;
}

bool says_yes(const std::string& value) { return value == "1" || value == "true" || value == "on"; }
bool says_no(const std::string& value) { return value == "0" || value == "false" || value == "off"; }

// The options of one model, as a program of its own with the command serve.
struct OneModel {
  ServeOptions options;
  CLI::App program{"", "greta-cli"};
  CLI::App* command = nullptr;

  explicit OneModel(const ServeOptions& given) : options(given) {
    program.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    command = program.add_subcommand("serve");
    command->add_option("-m,--model", options.engine.model.path);
    add_for_model(*command, options);
    add_llama_flags(*command);
  }
};

// A section under way: what its keys make of a model.
class Reader {
 public:
  Reader(const std::string& name, const CLI::App& all, const ServeOptions& options)
      : where_("--models-preset: [" + name + "] "), all_(all), one_(std::make_shared<OneModel>(options)) {}

  // Takes a key that is not one of the router's own.
  void take(const std::string& key, const std::string& value) {
    const std::string word = word_of(key);
    const CLI::Option* const known = all_.get_option_no_throw(word);
    if (known && known->count() > 0) return;  // typed on the command line
    if (!known && !one_->command->get_option_no_throw(word))
      throw Misused(where_ + key + ": serve has no option of this name");
    const std::vector<std::string> words = option_words(one_->program, "serve", words_of(word, value, known));
    if (words.empty()) return;
    if (one_->command->get_option_no_throw(words[0].substr(0, words[0].find('='))))
      words_.insert(words_.end(), words.begin(), words.end());
    else
      note(where_ + key + " holds for all models: it counts on the command line alone");
  }

  serve::Offer offer(const std::string& name) {
    std::vector<std::string> words = {"serve"};
    words.insert(words.end(), words_.begin(), words_.end());
    try {
      one_->program.parse(std::vector<std::string>(words.rbegin(), words.rend()));
    } catch (const CLI::ParseError& error) {
      throw Misused(where_ + misuse_text(one_->command, error, words));
    }
    auto settings = std::make_shared<serve::Settings>();
    settings->options = one_->options.serve;
    settle_for_model(one_->options, &settings->options);
    settings->engine = engine_of(one_->options);
    settings->engine.prepare = [&device = one_->options.engine.device](greta_runtime* runtime,
                                                                       const std::string& path) {
      prepare_rules(device, runtime, path);
    };
    settings->keeps = one_;
    serve::Offer offer;
    offer.name = name;
    offer.path = one_->options.engine.model.path;
    offer.own = std::move(settings);
    return offer;
  }

 private:
  // "ctx-size", "c" and "LLAMA_ARG_CTX_SIZE" -> "--ctx-size"
  std::string word_of(const std::string& key) const {
    if (const char* option = option_of_variable(key)) return option;
    std::string name = key;
    std::replace(name.begin(), name.end(), '_', '-');
    for (const char* dashes : {"--", "-"}) {
      const std::string word = llama_spelling(dashes + name);
      if (all_.get_option_no_throw(word) || one_->command->get_option_no_throw(word)) return word;
    }
    return "--" + name;
  }

  std::vector<std::string> words_of(const std::string& word, const std::string& value,
                                    const CLI::Option* known) const {
    const CLI::Option* option = one_->command->get_option_no_throw(word);
    if (!option) option = known;
    if (takes_switch(word)) return {word + "=" + value};
    if (option->get_items_expected_min() > 0) return {word, value};
    if (says_yes(value)) return {word};
    if (!says_no(value))
      throw Misused(where_ + word.substr(2) + " takes true or false, not \"" + value + "\"");
    const std::string other = word.starts_with("--no-") ? "--" + word.substr(5) : "--no-" + word.substr(2);
    return one_->command->get_option_no_throw(other) ? std::vector<std::string>{other}
                                                     : std::vector<std::string>{};
  }

  std::string where_;
  const CLI::App& all_;
  std::shared_ptr<OneModel> one_;
  std::vector<std::string> words_;
};

uint32_t seconds_of(const std::string& section, const std::string& value) {
  const bool whole =
      !value.empty() && value.size() < 6 && value.find_first_not_of("0123456789") == value.npos;
  if (!whole) throw Misused("--models-preset: [" + section + "] stop-timeout takes a number of seconds");
  return static_cast<uint32_t>(std::stoul(value));
}

}  // namespace

void add_presets(const std::string& path, const CLI::App& app, const ServeOptions& options,
                 std::vector<serve::Offer>* models) {
  const std::vector<Section> sections = read_sections(path);
  Keys common;
  for (const Section& section : sections) {
    if (section.name.empty()) {
      for (const auto& [key, value] : section.keys)
        if (key != "version" || value != "1")
          throw Failed(path + ": expected version = 1 before the first section, not " + key + " = " + value);
    }
    if (section.name == "*") common = section.keys;
  }
  for (const Section& section : sections) {
    if (section.name.empty() || section.name == "*") continue;
    Keys keys = common;
    keys.insert(keys.end(), section.keys.begin(), section.keys.end());
    Reader reader(section.name, app, options);
    bool at_start = false;
    uint32_t stop_s = serve::Offer{}.stop_s;
    for (const auto& [key, value] : keys) {
      if (key == "load-on-startup")
        at_start = says_yes(value);
      else if (key == "stop-timeout")
        stop_s = seconds_of(section.name, value);
      else
        reader.take(key, value);
    }
    serve::Offer offer = reader.offer(section.name);
    offer.at_start = at_start;
    offer.stop_s = stop_s;
    const auto same = std::find_if(models->begin(), models->end(),
                                   [&](const serve::Offer& other) { return other.name == offer.name; });
    if (offer.path.empty() && same != models->end()) offer.path = same->path;
    if (offer.path.empty())
      throw Failed("--models-preset: [" + section.name + "] has no model = FILE (nothing is downloaded)");
    if (same != models->end())
      *same = std::move(offer);
    else
      models->push_back(std::move(offer));
  }
  if (models->empty()) throw Failed("there are no models in " + path);
}

}  // namespace greta::cli
#endif
