// Formats the help: one or two lines for each option, with llama.cpp's short words and the defaults.
#pragma once
#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <string>

#include "llama_flags.h"

namespace greta::cli {

class Help : public CLI::Formatter {
 public:
  Help() { column_width(36); }

  std::string make_usage(const CLI::App* app, std::string name) const override {
    return "Usage: " + name + (app->get_parent() ? " [OPTIONS]\n" : " [OPTIONS] COMMAND [OPTIONS]\n");
  }
  std::string make_option_name(const CLI::Option* option, bool is_positional) const override {
    return short_words(option) + Formatter::make_option_name(option, is_positional);
  }
  std::string make_option_opts(const CLI::Option* option) const override {
    if (option->get_type_size() == 0) return "";
    std::string type = option->get_type_name();
    // CLI11 adds what it checks behind a colon. Choices tell the reader something, limits of a number do not.
    const size_t colon = type.find(':');
    if (colon == std::string::npos) return " " + type;
    return " " + (type[colon + 1] == '{' ? type.substr(colon + 1) : type.substr(0, colon));
  }
  std::string make_option_desc(const CLI::Option* option) const override {
    std::string text = option->get_description();
    if (option->get_required()) text += " (required)";
    if (!option->get_default_str().empty()) text += " [" + option->get_default_str() + "]";
    return text;
  }

 private:
  static std::string short_words(const CLI::Option* option) {
    std::string words;
    for (const std::string& name : option->get_lnames()) {
      for (const std::string& word : single_dash_words("--" + name)) words += word + ",";
    }
    return words;
  }
};

}  // namespace greta::cli
