#include "platform/files/folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string_view>
#include <utility>

#include "platform/files/file_size_signal.h"
#include "platform/text/format_text.h"

namespace greta {

namespace {

bool write_all(int file, std::span<const uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t wrote = write(file, bytes.data(), bytes.size());
    if (wrote < 0 && errno != EINTR) return false;
    if (wrote > 0) bytes = bytes.subspan(size_t(wrote));
  }
  return true;
}

// Errors are ignored here, since opening the file in the folder reports them.
void make_folders(const std::string& path) {
  for (size_t end = path.find('/', 1); end != std::string::npos; end = path.find('/', end + 1))
    mkdir(path.substr(0, end).c_str(), 0700);
}

bool has_name(int file, const std::string& path) {
  struct stat opened, named;
  return fstat(file, &opened) == 0 && lstat(path.c_str(), &named) == 0 && opened.st_dev == named.st_dev &&
         opened.st_ino == named.st_ino;
}

// Removes a file that is not being written. Who holds its lock while the name is its own may remove it, and
// nobody else writes to it.
void remove_leftover(const std::string& path) {
  const int file = ::open(path.c_str(), O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) return;
  if (flock(file, LOCK_EX | LOCK_NB) == 0 && has_name(file, path)) unlink(path.c_str());
  close(file);
}

// Makes a file and locks it, as far as the file system has locks. Returns -1 and errno if that fails.
int make_locked(const std::string& path) {
  const auto make = [&] { return ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600); };
  int file = make();
  if (file < 0 && errno == EEXIST) {  // of a program that had this number before
    remove_leftover(path);
    file = make();
  }
  if (file < 0 || ((flock(file, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) && has_name(file, path)))
    return file;
  close(file);  // it was taken for a leftover in the moment before it was locked
  errno = EAGAIN;
  return -1;
}

// In an ending, a question mark stands for a hexadecimal digit.
bool ends_with(std::string_view name, std::string_view ending) {
  if (name.size() < ending.size()) return false;
  name.remove_prefix(name.size() - ending.size());
  return std::ranges::equal(name, ending, [](char is, char wanted) {
    return wanted == '?' ? std::string_view("0123456789abcdef").find(is) != std::string_view::npos
                         : is == wanted;
  });
}

// "a.end.4711" is written to before it becomes "a.end".
bool is_being_written(std::string_view name, std::string_view ending) {
  const size_t dot = name.rfind('.');
  return dot != name.npos && dot + 1 < name.size() && ends_with(name.substr(0, dot), ending) &&
         name.find_first_not_of("0123456789", dot + 1) == name.npos;
}

// Calls visit(path, info) for each regular file of a folder that is this user's.
template <class Visit>
void visit_files(const std::string& folder, const Visit& visit) {
  const std::unique_ptr<DIR, int (*)(DIR*)> open(opendir(folder.c_str()), closedir);
  while (const dirent* entry = open ? readdir(open.get()) : nullptr) {
    struct stat info;
    const std::string path = folder + "/" + entry->d_name;
    if (lstat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && info.st_uid == geteuid())
      visit(path, info);
  }
}

}  // namespace

Status replace_file(const std::string& path, std::initializer_list<std::span<const uint8_t>> parts) {
  make_folders(path);
  const std::string next = path + "." + std::to_string(getpid());  // two processes may write at once
  const HiddenFileSizeSignal hidden;
  const int file = make_locked(next);
  bool written = file >= 0;
  for (const std::span<const uint8_t>& part : parts) written = written && write_all(file, part);
  // Closing a copy tells what the file system notices at the end, and leaves the lock.
  const int copy = written ? fcntl(file, F_DUPFD_CLOEXEC, 0) : -1;
  written = copy >= 0 && close(copy) == 0 && rename(next.c_str(), path.c_str()) == 0;
  const int error = errno;
  if (file >= 0 && !written) unlink(next.c_str());
  if (file >= 0) close(file);
  return written ? Status{} : fail(Code::File, "cannot write '%s': %s", path.c_str(), errno_text(error));
}

void remove_leftovers(const std::string& folder, const char* ending) {
  visit_files(folder, [&](const std::string& path, const struct stat&) {
    if (is_being_written(path, ending)) remove_leftover(path);
  });
}

std::vector<FolderFile> list_files(const std::string& folder, const char* ending) {
  std::vector<FolderFile> files;
  visit_files(folder, [&](const std::string& path, const struct stat& info) {
    if (!ends_with(path, ending) && !is_being_written(path, ending)) return;
    files.push_back(
        {path, uint64_t(info.st_size), int64_t(info.st_mtim.tv_sec) * 1'000'000'000 + info.st_mtim.tv_nsec});
  });
  std::ranges::sort(files, {}, [](const FolderFile& file) { return std::pair(file.written_ns, file.path); });
  return files;
}

void touch_file(const std::string& path) { utimensat(AT_FDCWD, path.c_str(), nullptr, AT_SYMLINK_NOFOLLOW); }

void remove_file(const std::string& path) { unlink(path.c_str()); }

}  // namespace greta
