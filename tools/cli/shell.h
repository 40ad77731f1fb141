// Texts that are made of the declared options: completion for shells, and the manual page.
#pragma once
#include <CLI/App.hpp>
#include <string>

namespace greta::cli {

// For "bash", "zsh" and "fish": commands, then the options of the command that was typed, and files for
// values.
std::string completion_text(const CLI::App& app, const std::string& shell);

// A manual page in roff, with all commands and the options that the help shows.
std::string manual_text(const CLI::App& app);

}  // namespace greta::cli
