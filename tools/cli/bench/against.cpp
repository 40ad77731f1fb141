#include "bench/against.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "console.h"

extern char** environ;

namespace greta::cli {
namespace {

constexpr char kThisProgram[] = "/proc/self/exe";

// What a program prints on its standard output. What it says on the other one is ours.
std::string output_of(const std::string& program, const std::vector<std::string>& words) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC)) throw Failed(std::string("no pipe: ") + std::strerror(errno));
  std::vector<char*> argv = {const_cast<char*>(program.c_str())};
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  pid_t child = -1;
  const int error = posix_spawnp(&child, program.c_str(), &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (error) {
    close(ends[0]);
    throw Failed(program + ": " + std::strerror(error));
  }
  std::string text;
  char piece[65536];
  for (ssize_t n = 1; n != 0;) {
    n = read(ends[0], piece, sizeof piece);
    if (n > 0) text.append(piece, static_cast<size_t>(n));
    if (n < 0 && errno != EINTR) break;
  }
  close(ends[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (interrupted()) throw Interrupted{};
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    throw Failed(program + " has failed" +
                 (WIFEXITED(status) ? format(" with the exit code %d", WEXITSTATUS(status)) : ""));
  return text;
}

bool is_llama_bench(const std::string& program) {
  return program.substr(program.find_last_of('/') + 1).starts_with("llama-bench");
}

void add_rows(const std::string& program, const AgainstOptions& against, std::vector<Json>* rows) {
  std::vector<std::string> words;
  if (!is_llama_bench(program)) {
    words.emplace_back("bench");
    words.insert(words.end(), against.own.begin(), against.own.end());
  }
  words.insert(words.end(), against.words.begin(), against.words.end());
  words.insert(words.end(), {"-o", "json"});
  const Json list = Json::parse(output_of(program, words), nullptr, false);
  if (!list.is_array()) throw Failed(program + ": expected a list of results, as -o json prints them");
  for (Json row : list) {
    if (row.is_object()) row.erase("n_batch");  // both chose it by speed
    rows->push_back(row);
  }
}

}  // namespace

int bench_against(const AgainstOptions& against, CompareOptions options) {
  std::vector<Json> other, own;
  Progress progress("bench");
  for (int turn = 0; turn < 4; ++turn) {
    const bool is_own = turn == 1 || turn == 2;
    progress.show(format("run %d of 4, %s", turn + 1, is_own ? "this program" : against.program.c_str()));
    add_rows(is_own ? kThisProgram : against.program, against, is_own ? &own : &other);
  }
  progress.clear();
  options.a = against.program;
  options.b = "this program";
  options.force |= is_llama_bench(against.program);  // it names models and devices otherwise
  if (options.output == "md") put("A is " + printable(against.program) + ", B is this program.\n\n");
  return compare_results(options, results_of(options.a, other, options.force),
                         results_of(options.b, own, options.force));
}

}  // namespace greta::cli
