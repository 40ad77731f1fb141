// Files that are named in a conversation. All functions but files_that_begin_with throw Failed.
#pragma once
#include <string>
#include <vector>

namespace greta::cli {

std::string home_path(const std::string& path);  // with ~/ replaced by the home folder

// The text of a file, of at most 4 MiB of UTF-8. Nothing but a regular file is read, so that none of them
// makes the program wait.
std::string read_text_file(const std::string& path);

// The regular files that the shell's pattern fits, in order of their names: at least one, at most 100.
std::vector<std::string> files_that_fit(const std::string& pattern);

// Paths for the tab key, of folders with / behind them. Hidden files need their point.
std::vector<std::string> files_that_begin_with(const std::string& path);

}  // namespace greta::cli
