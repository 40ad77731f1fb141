// greta-cli: finds the command, runs it, and turns what happens into one line and an exit code.
#include <CLI/App.hpp>
#include <cstring>
#include <new>
#include <vector>

#include "children.h"
#include "command_line.h"
#include "commands/commands.h"
#include "console.h"
#include "drivers.h"
#include "greta.h"
#include "help.h"
#include "llama_flags.h"
#include "shell.h"
#include "slips.h"

namespace greta::cli {
namespace {

struct Command {
  const char* name;
  const char* about;
  Action (*declare)(CLI::App& app);
};
constexpr Command kCommands[] = {
    {"run", "continue a text", run_command},
    {"chat", "talk with a model that has a chat template", chat_command},
#if GRETA_SERVE
    {"serve", "answer requests over HTTP", serve_command},
#endif
    {"info", "show what is in a GGUF file, and the memory it would take", info_command},
    {"verify", "read all of a GGUF file and say what is wrong or odd in it", verify_command},
    {"devices", "list the devices that models can run on", devices_command},
    {"doctor", "say what keeps GPUs from being used, and what to do", doctor_command},
    {"bench", "measure speed as llama-bench does", bench_command},
    {"profile", "show where the time of a prompt and an answer goes", profile_command},
    {"report", "make a page of a profile", report_command},
    {"tokenize", "turn a text into tokens", tokenize_command},
    {"template", "print a chat template, or what it makes of a conversation", template_command},
    {"logits", "write the logits of given tokens to a .npy file", logits_command},
    {"ppl", "measure the perplexity of a text as llama-perplexity does", ppl_command},
    {"embed", "make vectors of texts as llama-embedding does", embed_command},
    {"selftest", "check every kernel of a device against float64 arithmetic", selftest_command},
    {"kernel", "check and time one kernel, also with code from a file", kernel_command},
    {"tune", "find the fastest kernels on this very device", tune_command},
};

constexpr char kWelcome[] =
    "GRETA runs GGUF language models on AMD GPUs, on any Vulkan GPU, or on the CPU.\n"
    "Try the bundled model: greta-cli chat -p \"Tell me a story about a beaver.\"\n"
    "Run your own model: greta-cli -m FILE.gguf. Get help: greta-cli -h, greta-cli COMMAND -h\n";

// The library was built for the kinds of device that it looks for.
std::string version_text() {
  const uint32_t version = greta_version();
  std::string text =
      format("greta-cli %u.%u.%u, backends:", version / 10000, version / 100 % 100, version % 100);
  for (uint32_t i = 0; const char* kind = greta_device_kind(i, nullptr); ++i) text += " " + std::string(kind);
  return text + "\n";
}

// Gives CLI11 the words, and turns what it says of wrong ones into one line.
void parse(CLI::App& app, const CommandLine& line) {
  if (!line.unknown.empty()) throw Misused(unknown_command(app, line.unknown));
  const CLI::App* const command = command_named(app, line.command);
  try {
    app.parse(std::vector<std::string>(line.words.rbegin(), line.words.rend()));
  } catch (const CLI::CallForHelp&) {
    throw;
  } catch (const CLI::ExtrasError&) {
    throw Misused(unexpected_word(app, command, line.words));
  } catch (const CLI::ParseError& error) {
    throw Misused(misuse_text(command, error, line.words));
  }
}

void introduce(CLI::App& app) {
  app.set_help_flag("-h,--help", "print this help; after a command, the help of that command");
  app.formatter(std::make_shared<Help>());
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  app.footer(
      "Without a command, -m FILE.gguf is chat where the model has a template and a terminal is there, else "
      "run.\n"
      "Options may stand before the command or after it. Results go to stdout, all else goes to stderr.\n"
      "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 slower (bench compare), 130 stopped by Ctrl-C.");
}

int dispatch(int argc, char** argv) {
  CLI::App app("GRETA runs GGUF language models on AMD GPUs, on any Vulkan GPU, or on the CPU.", "greta-cli");
  introduce(app);
  bool version = false;
  app.add_flag("--version", version, "print the version, and the backends that are compiled in");
  bool list_devices = false, manual = false;
  app.add_flag("--list-devices", list_devices, "do what the command devices does");
  std::string shell;
  for (const char* name : {"bash", "zsh", "fish"}) {
    app.add_flag_callback(
        std::string("--completion-") + name, [&shell, name] { shell = name; },
        std::string("print completion for ") + name);
  }
  app.add_flag("--manual", manual, "print the manual page, for man -l");
  std::string log_file, colour = "auto";
  app.add_option("--log-file", log_file, "write what is said on stderr to this file, too")->type_name("FILE");
  app.add_option("--color", colour,
                 "use colour on stderr; auto asks NO_COLOR, CLICOLOR_FORCE and the terminal")
      ->type_name("WHEN")
      ->expected(0, 1)
      ->check(one_of({"on", "off", "auto"}));

  std::vector<std::pair<CLI::App*, Action>> actions;
  for (const Command& command : kCommands) {
    CLI::App* declared = app.add_subcommand(command.name, command.about);
    declared->fallthrough();
    actions.emplace_back(declared, command.declare(*declared));
    add_llama_flags(*declared);
  }

  try {
    parse(app, command_line(app, argc, argv));
  } catch (const CLI::CallForHelp&) {
    const auto chosen = app.get_subcommands();
    put(chosen.empty() ? app.help() : chosen[0]->help("greta-cli"));
    return kExitOk;
  }
  if (version) {
    put(version_text());
    return kExitOk;
  }
  if (manual || !shell.empty()) {
    put(manual ? manual_text(app) : completion_text(app, shell));
    return kExitOk;
  }
  if (!log_file.empty()) set_log_file(log_file);
  set_colour(colour == "auto" ? Colour::kAuto : colour == "off" ? Colour::kOff : Colour::kOn);
  for (const auto& [declared, act] : actions) {
    if (list_devices ? declared->get_name() == "devices" : declared->parsed()) return act();
  }
  if (argc > 1) throw Misused("no command is given (see greta-cli -h)");
  put(kWelcome);
  return kExitOk;
}

int run_and_tell(int argc, char** argv) {
  try {
    return dispatch(argc, argv);
  } catch (const OutputClosed&) {
    return kExitOk;
  } catch (const Interrupted&) {
    return kExitInterrupted;
  } catch (const Misused& error) {
    say(error.what());
    return kExitUsage;
  } catch (const std::bad_alloc&) {
    say("out of memory");
  } catch (const std::exception& error) {
    say(error.what());
  }
  return kExitFailed;
}

// Under the name greta-server the program is the command serve.
bool is_server(const char* argv0) {
  const char* const slash = std::strrchr(argv0, '/');
  return std::strcmp(slash ? slash + 1 : argv0, "greta-server") == 0;
}

int run_program(int argc, char** argv) {
  remember_program(argv[0]);
  if (argc > 1 && !std::strcmp(argv[1], kAskDrivers)) answer_about_drivers(argc, argv);
  start_console();
  std::vector<char*> words(argv, argv + argc);
  char serve[] = "serve";
  if (argc > 0 && is_server(argv[0])) words.insert(words.begin() + 1, serve);
  words.push_back(nullptr);
  const int code = run_and_tell(static_cast<int>(words.size()) - 1, words.data());
  if (code != kExitInterrupted) say_later_notes();  // behind the error, if there was one
  return code;
}

}  // namespace
}  // namespace greta::cli

int main(int argc, char** argv) { return greta::cli::run_program(argc, argv); }
