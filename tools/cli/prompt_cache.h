// --prompt-cache FILE: what a session has read, kept from one start of the program to the next.
#pragma once
#include <CLI/App.hpp>
#include <string>
#include <vector>

#include "greta.h"

namespace greta::cli {

struct PromptCacheOptions {
  std::string path;  // "": none
  bool all = false, read_only = false;
};
void add_options(CLI::App& app, PromptCacheOptions& options);

class PromptCache {  // everything here throws Failed
 public:
  // Restores the session from the file, if there is one. Both must outlive this.
  PromptCache(const PromptCacheOptions& options, greta_session* session);

  // Forgets what `tokens` (at least one) do not begin with; how many of them need not be fed, which is never
  // all.
  size_t keep_common(const std::vector<int32_t>& tokens);

  // Writes the session's first `count` tokens, and forgets the others, unless the file has them all.
  void save(uint32_t count);

 private:
  const PromptCacheOptions& options_;
  greta_session* session_;
  std::vector<int32_t> saved_;  // tokens of the file
};

}  // namespace greta::cli
