#include "shell.h"

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <vector>

#include "console.h"
#include "greta.h"

namespace greta::cli {
namespace {

std::vector<const CLI::App*> all_commands(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

// Those that the help shows.
std::vector<const CLI::Option*> shown_options(const CLI::App& command) {
  std::vector<const CLI::Option*> options;
  for (const CLI::Option* option : command.get_options()) {
    if (!option->get_group().empty() && !option->get_lnames().empty()) options.push_back(option);
  }
  return options;
}

bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

// Puts `before` before each of the letters.
std::string escaped(const std::string& text, const char* letters, const char* before) {
  std::string out;
  for (const char c : text) {
    if (std::string(letters).find(c) != std::string::npos) out += before;
    out += c;
  }
  return out;
}

// In single quotes, as all three shells read them.
std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::string bash_text(const CLI::App& app) {
  std::string commands, cases;
  for (const CLI::App* command : all_commands(app)) {
    commands += command->get_name() + " ";
    std::string words;
    for (const CLI::Option* option : shown_options(*command)) {
      for (const std::string& name : option->get_lnames()) words += "--" + name + " ";
    }
    cases += "    " + command->get_name() + ") words=\"" + words + "\" ;;\n";
  }
  return "_greta_cli() {\n  local word words=\"" + commands +
         "\"\n  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n    case $word in\n" + cases +
         "    esac\n  done\n"
         "  COMPREPLY=($(compgen -W \"$words\" -- \"${COMP_WORDS[COMP_CWORD]}\"))\n}\n"
         "complete -o default -F _greta_cli greta-cli\n";
}

std::string zsh_text(const CLI::App& app) {
  std::string commands, names, cases;
  for (const CLI::App* command : all_commands(app)) {
    names += (names.empty() ? "" : "|") + command->get_name();
    commands +=
        "    " + quoted(command->get_name() + ":" + escaped(command->get_description(), ":", "\\")) + "\n";
    cases += "    " + command->get_name() + ")\n      _arguments";
    for (const CLI::Option* option : shown_options(*command)) {
      for (const std::string& name : option->get_lnames()) {
        const std::string about = escaped(option->get_description(), "[]:\\", "\\");
        cases += " \\\n        " +
                 quoted("--" + name + "[" + about + "]" + (takes_value(*option) ? ":value:_files" : ""));
      }
    }
    cases += " \\\n        '*:file:_files' ;;\n";
  }
  return "#compdef greta-cli\n_greta_cli() {\n  local -a commands=(\n" + commands +
         "  )\n  local -i at=${words[(I)(" + names +
         ")]}\n"
         "  if (( at == 0 || at == CURRENT )); then\n    _describe command commands\n    _files\n    "
         "return\n  fi\n"
         "  case $words[at] in\n" +
         cases + "  esac\n}\n" +
         "if [ \"$funcstack[1]\" = _greta-cli ]; then _greta_cli \"$@\"; else compdef _greta_cli greta-cli; "
         "fi\n";
}

std::string fish_text(const CLI::App& app) {
  std::string text;
  for (const CLI::App* command : all_commands(app)) {
    text += "complete -c greta-cli -n __fish_use_subcommand -a " + command->get_name() + " -d " +
            quoted(command->get_description()) + "\n";
    for (const CLI::Option* option : shown_options(*command)) {
      text += "complete -c greta-cli -n '__fish_seen_subcommand_from " + command->get_name() + "'";
      for (const std::string& name : option->get_snames()) text += " -s " + name;
      for (const std::string& name : option->get_lnames()) text += " -l " + name;
      text += (takes_value(*option) ? " -r -d " : " -d ") + quoted(option->get_description()) + "\n";
    }
  }
  return text;
}

// Text as roff takes it: no line of it is a request.
std::string roff(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else if ((c == '.' || c == '\'') && (out.empty() || out.back() == '\n'))
      out += std::string("\\&") + c;
    else
      out += c;
  }
  return out;
}

std::string roff_options(const CLI::App& command) {
  std::string text;
  for (const CLI::Option* option : shown_options(command)) {
    std::string names;
    for (const std::string& name : option->get_snames()) names += (names.empty() ? "-" : ", -") + name;
    for (const std::string& name : option->get_lnames()) names += (names.empty() ? "--" : ", --") + name;
    const std::string type = option->get_type_name();
    text += ".TP\n\\fB" + roff(names) + "\\fR";
    if (takes_value(*option)) text += " \\fI" + roff(type.substr(0, type.find(':'))) + "\\fR";
    text += "\n" + roff(option->get_description());
    if (!option->get_default_str().empty()) text += " [" + roff(option->get_default_str()) + "]";
    text += "\n";
  }
  return text;
}

}  // namespace

std::string completion_text(const CLI::App& app, const std::string& shell) {
  return shell == "bash" ? bash_text(app) : shell == "zsh" ? zsh_text(app) : fish_text(app);
}

std::string manual_text(const CLI::App& app) {
  const uint32_t version = greta_version();
  std::string text = format(".TH GRETA\\-CLI 1 \"\" \"greta %u.%u.%u\" \"User Commands\"\n", version / 10000,
                            version / 100 % 100, version % 100);
  text +=
      ".SH NAME\ngreta\\-cli \\- run GGUF language models on GPUs and on the CPU\n"
      ".SH SYNOPSIS\n.B greta\\-cli\n[\\fB\\-m\\fR \\fIFILE.gguf\\fR] [\\fICOMMAND\\fR] [\\fIOPTIONS\\fR]\n"
      ".SH DESCRIPTION\n" +
      roff(app.get_description()) +
      "\nWithout a command, it is chat where the model has a template and a terminal is there, else run.\n"
      "Without \\fB\\-m\\fR the bundled model runs. The flags of llama.cpp's programs are known.\n"
      ".SH COMMANDS\n";
  for (const CLI::App* command : all_commands(app))
    text += ".TP\n\\fB" + roff(command->get_name()) + "\\fR\n" + roff(command->get_description()) + "\n";
  text += ".SH OPTIONS\n" + roff_options(app);
  for (const CLI::App* command : all_commands(app))
    text += ".SS Options of " + roff(command->get_name()) + "\n" + roff_options(*command);
  return text +
         ".SH EXIT STATUS\n0: done; 1: failed, and one line on standard error says why; 2: wrong usage; 130: "
         "stopped "
         "by Ctrl\\-C.\n"
         ".SH FILES\n.TP\n\\fI$XDG_STATE_HOME/greta/history\\fR\nwhat was typed in conversations\n"
         ".TP\n\\fI$XDG_CACHE_HOME/greta\\fR\ncompiled kernels of GPUs, and tuning tables\n"
         ".SH EXAMPLES\n.EX\ngreta\\-cli chat \\-p \"Tell me a story about a beaver.\"\n"
         "greta\\-cli \\-m model.gguf\ngreta\\-cli info model.gguf\n.EE\n"
         ".SH SEE ALSO\nThe documentation in \\fI/usr/share/doc/greta\\fR.\n";
}

}  // namespace greta::cli
