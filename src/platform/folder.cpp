#include "platform/folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <utility>

#include "platform/format_text.h"

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

}  // namespace

Status replace_file(const std::string& path, std::initializer_list<std::span<const uint8_t>> parts) {
  make_folders(path);
  const std::string next = path + "." + std::to_string(getpid());  // two processes may write at once
  const int file = ::open(next.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  bool written = file >= 0;
  for (const std::span<const uint8_t>& part : parts) written = written && write_all(file, part);
  const int error = errno;
  if (file >= 0) written = close(file) == 0 && written;
  if (written && rename(next.c_str(), path.c_str()) == 0) return {};
  const int last = written ? errno : error;
  if (file >= 0) unlink(next.c_str());
  return fail(Code::File, "cannot write '%s': %s", path.c_str(), errno_text(last));
}

std::vector<FolderFile> list_files(const std::string& folder, const char* ending) {
  std::vector<FolderFile> files;
  const std::unique_ptr<DIR, int (*)(DIR*)> open(opendir(folder.c_str()), closedir);
  while (const dirent* entry = open ? readdir(open.get()) : nullptr) {
    struct stat info;
    const std::string path = folder + "/" + entry->d_name;
    if (!path.ends_with(ending) || lstat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    files.push_back({path, uint64_t(info.st_size),
                     int64_t(info.st_mtim.tv_sec) * 1'000'000'000 + info.st_mtim.tv_nsec});
  }
  std::ranges::sort(files, {}, [](const FolderFile& file) { return std::pair(file.written_ns, file.path); });
  return files;
}

void touch_file(const std::string& path) { utimensat(AT_FDCWD, path.c_str(), nullptr, AT_SYMLINK_NOFOLLOW); }

void remove_file(const std::string& path) { unlink(path.c_str()); }

}  // namespace greta
