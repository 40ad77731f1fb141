// Turns argv into the words that CLI11 expects: the command first, llama.cpp's words as the long names of
// options, and a command where none was typed.
#pragma once
#include <CLI/App.hpp>
#include <string>
#include <vector>

namespace greta::cli {

struct CommandLine {
  std::vector<std::string> words;  // the command first, if there is one
  std::string command;             // "": none was typed, and none is needed
  std::string unknown;             // what stands where a command should, if there is no such command
};

// The words for options of a command that stand in a file: as command_line() makes them, without the command
// and what variables of the environment say.
std::vector<std::string> option_words(const CLI::App& app, const std::string& command,
                                      std::vector<std::string> typed);

CommandLine command_line(const CLI::App& app, int argc, char** argv);

}  // namespace greta::cli
