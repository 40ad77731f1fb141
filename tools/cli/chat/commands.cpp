// The commands that may be typed in a conversation, in one table.

#include <algorithm>
#include <cstring>
#include <functional>

#include "chat/files.h"
#include "chat/talk.h"
#include "console.h"
#include "output_file.h"
#include "slips.h"
#include "wrap.h"

namespace greta::cli {
namespace {

struct ChatCommand {
  const char* name;
  const char* argument;  // "": none; in brackets: it may be left out
  const char* about;
  void (*run)(Talk& talk, const std::string& argument);  // null: ends the conversation
};

void help(Talk&, const std::string&);

void save(Talk& talk, const std::string& path) {
  const std::string text = json_text(talk.messages());
  const std::string to = home_path(path);
  OutputFile file(to + ".part");
  file.write(text.data(), text.size());
  file.finish_as(to);
  note(format("there are %zu messages in %s", talk.messages().size(), path.c_str()));
}

void load(Talk& talk, const std::string& path) {
  const Json file = Json::parse(read_text_file(home_path(path)), nullptr, false);
  const Json& list = file.is_object() && file.contains("messages") ? file["messages"] : file;
  if (!list.is_array()) throw Failed(path + ": expected a JSON array of messages");
  talk.set_messages(list);
  note(format("%zu messages from %s", list.size(), path.c_str()));
}

void set(Talk& talk, const std::string& given) {
  const std::string argument =
      given.starts_with("parameter ") ? given.substr(10) : given;  // as Ollama has it
  if (argument.empty()) return write_error(talk.sampling_text());
  const size_t space = std::min(argument.find_first_of(" \t="), argument.size());
  const size_t value = std::min(argument.find_first_not_of(" \t=", space), argument.size());
  if (value == argument.size()) throw Failed("write /set NAME VALUE; /set alone lists the settings");
  talk.set_sampling_option(argument.substr(0, space), argument.substr(value));
}

constexpr ChatCommand kChatCommands[] = {
    {"help", "", "show this list", help},
    {"clear", "", "start anew, with the same system message",
     [](Talk& talk, const std::string&) { talk.clear(); }},
    {"regen", "", "answer the last question once more",
     [](Talk& talk, const std::string&) {
       if (!talk.regenerate()) throw Failed("there is no question yet");
     }},
    {"retry", "[TEXT]", "ask TEXT in place of the last question, or edit that one",
     [](Talk& talk, const std::string& text) { talk.retry(text); }},
    {"undo", "", "take the last question and its answer back",
     [](Talk& talk, const std::string&) {
       if (!talk.undo()) throw Failed("there is no question yet");
       note("the last question is gone");
     }},
    {"system", "[TEXT]", "set the system message, or remove it without a text",
     [](Talk& talk, const std::string& text) { talk.set_system(text); }},
    {"read", "FILE", "put the text of a file before the next message",
     [](Talk& talk, const std::string& path) { talk.attach(path); }},
    {"glob", "PATTERN", "do so with all files that a pattern fits, such as src/*.c",
     [](Talk& talk, const std::string& pattern) { talk.attach_all(pattern); }},
    {"save", "FILE", "write the conversation as JSON", save},
    {"load", "FILE", "go on with a conversation that was saved", load},
    {"set", "[NAME VALUE]", "change a setting of sampling (temp, top_k, seed, ...), or list them all", set},
    {"stats", "", "show tokens and speed of the last answer",
     [](Talk& talk, const std::string&) { say(talk.stats()); }},
    {"timings", "", "show tokens and speed after each answer, or no longer",
     [](Talk& talk, const std::string&) { talk.toggle_timings(); }},
    {"tools", "", "show the tools that the model may call",
     [](Talk& talk, const std::string&) {
       write_error(talk.tools_text().empty() ? "there are none; --tools FILE gives some\n"
                                             : printable_lines(talk.tools_text()) + "\n");
     }},
    {"exit", "", "leave, as Ctrl-D does", nullptr},
    {"quit", "", "leave, as /exit does", nullptr},
    {"bye", "", "leave, as /exit does", nullptr},
};

void help(Talk&, const std::string&) {
  std::string commands;
  for (const ChatCommand& command : kChatCommands) {
    commands +=
        format("  /%-22s %s\n", (std::string(command.name) + " " + command.argument).c_str(), command.about);
  }
  const std::string more =
      "  The tab key completes commands and files.\n"
      "  A line that ends with \\ goes on in the next; all lines between two \"\"\" are one message.\n"
      "  To begin a message with /, write //.\n";
  const uint32_t columns = terminal_columns();
  write_error(wrapped(commands, columns, 26) + wrapped(more, columns, 2));
}

const ChatCommand& nearest(const std::string& name) {
  return *std::min_element(std::begin(kChatCommands), std::end(kChatCommands),
                           [&](const auto& a, const auto& b) {
                             return letters_apart(name, a.name) < letters_apart(name, b.name);
                           });
}

}  // namespace

// A command is "/name", alone or with a space behind it. "/etc/passwd" is a message.
bool is_chat_command(const std::string& line) {
  const size_t end = std::min(line.find_first_of(" \t\n"), line.size());
  return line.size() > 1 && line[0] == '/' &&
         std::all_of(line.begin() + 1, line.begin() + static_cast<std::ptrdiff_t>(end),
                     [](unsigned char c) { return std::isalpha(c) || c == '?' || c == '-'; });
}

Completions chat_completions(const std::string& line) {
  Completions found;
  if (line.empty() || line[0] != '/') return found;
  const size_t blank = line.find(' ');
  for (const ChatCommand& command : kChatCommands) {
    const std::string word = std::string("/") + command.name;
    if (blank == line.npos) {
      if (word.starts_with(line)) found.words.push_back(word + (command.argument[0] ? " " : ""));
    } else if (line.substr(0, blank) == word && (std::strcmp(command.argument, "FILE") == 0 ||
                                                 std::strcmp(command.argument, "PATTERN") == 0)) {
      found.start = std::min(line.find_first_not_of(' ', blank), line.size());
      found.words = files_that_begin_with(line.substr(found.start));
    }
  }
  return found;
}

bool run_chat_command(Talk& talk, const std::string& line) {
  const size_t end = std::min(line.find_first_of(" \t\n"), line.size());
  const std::string name = line.substr(1, end - 1);
  std::string argument = line.substr(std::min(line.find_first_not_of(" \t\n", end), line.size()));
  argument.resize(argument.find_last_not_of(" \t\n") + 1);
  for (const ChatCommand& command : kChatCommands) {
    if (name != command.name && !(name == "?" && command.run == help)) continue;
    if (!command.run) return false;
    const bool needs = command.argument[0] != '\0' && command.argument[0] != '[';
    try {
      if (needs && argument.empty()) throw Failed(format("write /%s %s", command.name, command.argument));
      command.run(talk, argument);
    } catch (const Failed& error) {
      say(error.what());
    } catch (const Misused& error) {
      say(error.what());
    }
    return true;
  }
  say("there is no command /" + name + "; did you mean /" + nearest(name).name + "? /help lists them all");
  return true;
}

}  // namespace greta::cli
