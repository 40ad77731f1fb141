#include "chat/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <glob.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "chat/talk.h"
#include "console.h"

namespace greta::cli {
namespace {

constexpr size_t kMostBytes = 4 << 20, kMostFiles = 100, kMostCompletions = 200;

struct OpenedFile {
  int fd;
  ~OpenedFile() {
    if (fd >= 0) close(fd);
  }
};

bool is_folder(const std::string& path) {
  struct stat about;
  return stat(path.c_str(), &about) == 0 && S_ISDIR(about.st_mode);
}

}  // namespace

std::string home_path(const std::string& path) {
  const char* const home = std::getenv("HOME");
  return path.starts_with("~/") && home ? home + path.substr(1) : path;
}

std::string read_text_file(const std::string& path) {
  const OpenedFile file{open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  struct stat about;
  if (file.fd < 0 || fstat(file.fd, &about) != 0) throw Failed(path + ": " + std::strerror(errno));
  if (S_ISDIR(about.st_mode)) throw Failed(path + " is a folder");
  if (!S_ISREG(about.st_mode)) throw Failed(path + " is no file: it is a device or a pipe");
  const std::string too_large =
      format("%s has %s, and at most %s are read", path.c_str(),
             size_text(static_cast<uint64_t>(about.st_size)).c_str(), size_text(kMostBytes).c_str());
  if (static_cast<uint64_t>(about.st_size) > kMostBytes) throw Failed(too_large);
  std::string text;
  char piece[65536];
  for (ssize_t n; (n = read(file.fd, piece, sizeof piece)) != 0;) {
    if (n < 0) throw Failed(path + ": " + std::strerror(errno));
    text.append(piece, static_cast<size_t>(n));
    if (text.size() > kMostBytes) throw Failed(too_large);  // it grows
  }
  if (!is_text(text)) throw Failed(path + " is no text in UTF-8");
  return text;
}

std::vector<std::string> files_that_fit(const std::string& pattern) {
  glob_t found = {};
  const int status = glob(home_path(pattern).c_str(), GLOB_NOSORT, nullptr, &found);
  const std::unique_ptr<glob_t, void (*)(glob_t*)> owner(&found, globfree);
  if (status == GLOB_NOSPACE) throw Failed("out of memory");
  std::vector<std::string> files;
  for (size_t i = 0; i < found.gl_pathc; ++i) {
    struct stat about;
    if (stat(found.gl_pathv[i], &about) == 0 && S_ISREG(about.st_mode)) files.emplace_back(found.gl_pathv[i]);
  }
  if (files.empty()) throw Failed("no file fits " + pattern);
  if (files.size() > kMostFiles)
    throw Failed(
        format("%zu files fit %s, and at most %zu are read", files.size(), pattern.c_str(), kMostFiles));
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<std::string> files_that_begin_with(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string folder = slash == path.npos ? "" : path.substr(0, slash + 1);
  const std::string start = path.substr(folder.size());
  const std::string there = folder.empty() ? "." : home_path(folder);
  const std::unique_ptr<DIR, int (*)(DIR*)> open(opendir(there.c_str()), closedir);
  std::vector<std::string> words;
  if (!open) return words;
  while (const dirent* entry = readdir(open.get())) {
    const std::string name = entry->d_name;
    if (!name.starts_with(start) || (name[0] == '.' && start.empty()) || name == "." || name == "..")
      continue;
    if (words.size() == kMostCompletions) break;
    words.push_back(folder + name + (is_folder(there + "/" + name) ? "/" : ""));
  }
  std::sort(words.begin(), words.end());
  return words;
}

// ---- what goes before the next message ----

void Talk::attach(const std::string& path) {
  const std::string text = read_text_file(home_path(path));
  attached_ += "--- " + path + " ---\n" + text + (text.ends_with('\n') ? "" : "\n");
  note(format("%s of %s go before your next message", size_text(text.size()).c_str(), path.c_str()));
}

void Talk::attach_all(const std::string& pattern) {
  const std::string before = attached_;
  try {
    for (const std::string& path : files_that_fit(pattern)) attach(path);
  } catch (const Failed&) {
    attached_ = before;
    throw;
  }
}

}  // namespace greta::cli
