// --prompt-cache FILE keeps what a session has read from one start of the program to the next.
#pragma once
#include <CLI/App.hpp>
#include <string>
#include <vector>

#include "greta.h"

namespace greta::cli {

struct PromptCacheOptions {
  std::string path;  // "": there is no cache
  bool all = false, read_only = false;
};
void add_options(CLI::App& app, PromptCacheOptions& options);

class PromptCache {  // everything here throws Failed
 public:
  // Restores the session from the file, if there is one. Options and session must outlive this object.
  PromptCache(const PromptCacheOptions& options, greta_session* session);

  // Forgets what `tokens` (at least one) do not begin with. Returns how many of them need not be fed, which
  // is less than all.
  size_t keep_common(const std::vector<int32_t>& tokens);

  // Writes the first `count` tokens of the session and forgets the others, unless the file has them all.
  void save(uint32_t count);

 private:
  const PromptCacheOptions& options_;
  greta_session* session_;
  std::vector<int32_t> saved_;  // the tokens of the file
};

}  // namespace greta::cli
