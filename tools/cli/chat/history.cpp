// The file of the history. It has a line for each entry; a line end within an entry is written as \n.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "chat/line_editor.h"
#include "output_file.h"

namespace greta::cli {
namespace {

constexpr size_t kMaxFileBytes = 4 << 20;

std::string history_path() {
  std::string folder;
  const char* state = std::getenv("XDG_STATE_HOME");
  const char* home = std::getenv("HOME");
  if (state && state[0] == '/') {
    folder = state;
  } else if (home && home[0] == '/') {
    folder = std::string(home) + "/.local/state";
  } else {
    return {};
  }
  return folder + "/greta/history";
}

std::string as_one_line(const std::string& line) {
  std::string out;
  for (const char c : line) out += c == '\n' ? "\\n" : c == '\\' ? "\\\\" : std::string(1, c);
  return out;
}

std::string with_line_breaks(const std::string& line) {
  std::string out;
  for (size_t i = 0; i < line.size(); ++i) {
    const bool escaped = line[i] == '\\' && i + 1 < line.size();
    if (escaped) ++i;
    out += escaped && line[i] == 'n' ? '\n' : line[i];
  }
  return out;
}

struct OpenFile {
  int fd;
  ~OpenFile() {
    if (fd >= 0) close(fd);
  }
};

std::string read_whole(const std::string& path) {
  const OpenFile file{open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  struct stat about;
  if (file.fd < 0 || fstat(file.fd, &about) != 0 || !S_ISREG(about.st_mode)) return {};
  // Of a longer file the end is read.
  const off_t start = about.st_size > off_t(kMaxFileBytes) ? about.st_size - off_t(kMaxFileBytes) : 0;
  if (lseek(file.fd, start, SEEK_SET) < 0) return {};
  std::string text;
  char piece[65536];
  for (ssize_t n; text.size() < kMaxFileBytes && (n = read(file.fd, piece, sizeof piece)) > 0;) {
    text.append(piece, static_cast<size_t>(n));
  }
  return text;
}

// Writes all at once, so that programs which run at the same time do not mix their lines. Returns false if
// some of it was not written.
bool write_file(const std::string& path, const std::string& text, int flags) {
  const OpenFile file{open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK | flags, 0600)};
  return file.fd >= 0 && write(file.fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
         ((flags & O_EXCL) == 0 || fsync(file.fd) == 0);
}

}  // namespace

History::History() : path_(history_path()) {
  if (path_.empty()) return;
  const std::string text = read_whole(path_);
  for (size_t start = 0; start < text.size();) {
    const size_t end = std::min(text.find('\n', start), text.size());
    if (end > start && end - start <= kMaxLineBytes)
      lines_.push_back(with_line_breaks(text.substr(start, end - start)));
    start = end + 1;
  }
  if (lines_.size() <= kMaxLines) return;
  lines_.erase(lines_.begin(), lines_.end() - kMaxLines);
  std::string kept;
  for (const std::string& line : lines_) kept += as_one_line(line) + "\n";
  const std::string next = path_ + "." + std::to_string(getpid());
  // Where the disk is full, the longer history stays.
  if (!write_file(next, kept, O_EXCL) || rename(next.c_str(), path_.c_str()) != 0) unlink(next.c_str());
}

bool History::add(const std::string& line) {
  if (line.empty() || line.size() > kMaxLineBytes || (!lines_.empty() && lines_.back() == line)) return false;
  lines_.push_back(line);
  if (path_.empty()) return true;
  make_folders(path_);
  write_file(path_, as_one_line(line) + "\n", O_APPEND);
  return true;
}

}  // namespace greta::cli
