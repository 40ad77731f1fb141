// Child processes of this program itself, for what may die or hang.
#pragma once
#include <sys/types.h>

#include <string>
#include <vector>

namespace greta::cli {

void remember_program(const char* argv0);  // call it before all else here

inline constexpr int kAnswerFile = 3;  // the descriptor to which a child writes its answer

struct ChildResult {
  bool started = false;
  bool over_limit = false;  // it was killed, since it had not ended within the limit
  int status = 0;           // of waitpid
  std::string answer;       // what it wrote to kAnswerFile
  std::string said;         // what it wrote to its standard output and error
};

// Runs this program once with each list of words, all at the same time. Throws Interrupted after Ctrl-C.
std::vector<ChildResult> run_children(const std::vector<std::vector<std::string>>& words, int limit_seconds);

}  // namespace greta::cli
