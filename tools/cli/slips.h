// What is said about a slip of the keyboard: one line with the reason and the next step.
#pragma once
#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <cstdint>
#include <string>
#include <vector>

namespace greta::cli {

const CLI::App* command_named(const CLI::App& app, const std::string& name);  // null if there is none

// There is no such command: what was meant, or where the commands are listed.
std::string unknown_command(const CLI::App& app, const std::string& word);

// CLI11 could not use some of the words: names the first of them as they were typed, and what was meant.
// `command` is null if there is none.
std::string unexpected_word(const CLI::App& app, const CLI::App* command,
                            const std::vector<std::string>& words);

// What another error of CLI11 says, in our words.
std::string misuse_text(const CLI::App* command, const CLI::ParseError& error,
                        const std::vector<std::string>& words);

// How many letters must be changed, put in, left out or swapped with the next to make `b` of `a`.
size_t letters_apart(const std::string& a, const std::string& b);

// Checks of values, with messages that a person would write. A range that ends at INT32_MAX, INT64_MAX or 1e6
// is one without an end.
CLI::Validator in_range(int64_t least, int64_t most);
CLI::Validator in_range(double least, double most);
CLI::Validator one_of(std::vector<std::string> words);
CLI::Validator not_empty();

}  // namespace greta::cli
