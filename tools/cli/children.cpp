#include "children.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <string_view>

#include "console.h"

extern char** environ;

namespace greta::cli {
namespace {

using ChildClock = std::chrono::steady_clock;

std::string program;  // argv[0]

struct Child {
  pid_t id = -1;
  int answer = -1, said = -1;  // the ends of its pipes
  ChildResult result;
};

void close_end(int* end) {
  if (*end >= 0) close(*end);
  *end = -1;
}

// A child that cannot be started has no id.
Child start_child(const std::vector<std::string>& words) {
  Child child;
  int answer[2], said[2];
  if (pipe2(answer, O_CLOEXEC)) return child;
  if (pipe2(said, O_CLOEXEC)) return close(answer[0]), close(answer[1]), child;
  std::vector<char*> argv = {program.data()};
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, said[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, said[1], STDERR_FILENO);
  posix_spawn_file_actions_adddup2(&actions, answer[1], kAnswerFile);
  constexpr char kSelf[] = "/proc/self/exe";  // not there without /proc
  const char* const file = access(kSelf, X_OK) == 0 ? kSelf : program.c_str();
  if (posix_spawnp(&child.id, file, &actions, nullptr, argv.data(), environ)) child.id = -1;
  posix_spawn_file_actions_destroy(&actions);
  close(answer[1]), close(said[1]);
  child.answer = answer[0], child.said = said[0];
  child.result.started = child.id > 0;
  return child;
}

// Reads what has come. Closes a pipe whose other end is closed.
void read_some(int* from, std::string* to) {
  constexpr size_t kMost = size_t{64} << 20;
  char piece[65536];
  const ssize_t n = read(*from, piece, sizeof piece);
  if (n > 0 && to->size() < kMost) to->append(piece, static_cast<size_t>(n));
  if (n == 0 || (n < 0 && errno != EINTR)) close_end(from);
}

// Reads until every child has closed its answer, or until `end`.
void read_all_of(std::vector<Child>* children, ChildClock::time_point end) {
  while (!interrupted()) {
    std::vector<pollfd> waits;
    std::vector<std::pair<int*, std::string*>> pipes;
    bool is_awaited = false;
    for (Child& child : *children) {
      is_awaited |= child.answer >= 0;
      for (const auto& [file, text] :
           {std::pair(&child.answer, &child.result.answer), std::pair(&child.said, &child.result.said)}) {
        if (*file < 0) continue;
        waits.push_back({*file, POLLIN, 0});
        pipes.emplace_back(file, text);
      }
    }
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - ChildClock::now()).count();
    if (!is_awaited || left <= 0) return;
    if (poll(waits.data(), waits.size(), static_cast<int>(left)) <= 0) continue;
    for (size_t i = 0; i < waits.size(); ++i)
      if (waits[i].revents) read_some(pipes[i].first, pipes[i].second);
  }
}

// A process that waits in the kernel for a driver cannot be killed. It is left behind after a second.
void end_child(Child* child) {
  child->result.over_limit = child->answer >= 0;
  while (child->said >= 0) {  // what it said before it ended
    pollfd wait{child->said, POLLIN, 0};
    if (poll(&wait, 1, 0) <= 0) break;
    read_some(&child->said, &child->result.said);
  }
  close_end(&child->answer);
  close_end(&child->said);
  if (child->result.over_limit) kill(child->id, SIGKILL);
  const auto end = ChildClock::now() + std::chrono::seconds(1);
  while (waitpid(child->id, &child->result.status, WNOHANG) == 0 && ChildClock::now() < end)
    usleep(child->result.over_limit ? 10'000 : 200);
}

}  // namespace

void remember_program(const char* argv0) { program = argv0 ? argv0 : ""; }

std::vector<ChildResult> run_children(const std::vector<std::vector<std::string>>& words, int limit_seconds) {
  const auto end = ChildClock::now() + std::chrono::seconds(limit_seconds);
  std::vector<Child> children;
  for (const std::vector<std::string>& each : words) children.push_back(start_child(each));
  read_all_of(&children, end);
  std::vector<ChildResult> results;
  for (Child& child : children) {
    if (child.id > 0) end_child(&child);
    close_end(&child.answer);
    close_end(&child.said);
    results.push_back(std::move(child.result));
  }
  if (interrupted()) throw Interrupted{};
  return results;
}

}  // namespace greta::cli
