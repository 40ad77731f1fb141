#include "backends/hip/runtimes.h"

#include <dirent.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>

namespace greta {

constexpr std::string_view kLibrary = "libamdhip64.so";
constexpr int kNewestHip = 12;  // names beyond it are found in folders, whose files are listed

namespace {

using Names = std::vector<std::string>;

// The numbers in a name: {7, 15} of "core-7.15".
std::vector<uint64_t> numbers(const std::string& name) {
  std::vector<uint64_t> found;
  for (const char* at = name.c_str(); *(at += strcspn(at, "0123456789"));) {
    char* end;
    found.push_back(strtoull(at, &end, 10));
    at = end;
  }
  return found;
}

// The entries of a folder that begin with `start`, the highest version first: 10.0 before 9.4.
Names newest_first(const std::string& folder, std::string_view start) {
  struct Close {
    void operator()(DIR* open) const { closedir(open); }
  };
  Names names;
  const std::unique_ptr<DIR, Close> open(opendir(folder.c_str()));
  while (const dirent* entry = open ? readdir(open.get()) : nullptr)
    if (std::string_view(entry->d_name).starts_with(start)) names.push_back(entry->d_name);
  std::ranges::sort(names, std::greater(),
                    [](const std::string& name) { return std::pair(numbers(name), name); });
  return names;
}

// The major number of "libamdhip64.so.7"; kOldestHip for the name without one, and 0 for other names, such as
// that of the file itself, "libamdhip64.so.7.15.26333".
int major_of(std::string_view name) {
  name.remove_prefix(kLibrary.size());
  if (name.empty()) return kOldestHip;
  if (name[0] != '.' || name.size() > 4 || name.find_first_not_of("0123456789", 1) != name.npos) return 0;
  return atoi(name.data() + 1);
}

// What a folder holds is put behind `list`, old versions behind `old`.
struct Found {
  Names list, old;

  void add_folder(const std::string& folder) {
    Names unnumbered;
    for (const std::string& name : newest_first(folder, kLibrary)) {
      const int major = major_of(name);
      if (!major) continue;
      Names& to = name == kLibrary ? unnumbered : major < kOldestHip ? old : list;
      to.push_back(folder + "/" + name);
    }
    list.insert(list.end(), unnumbered.begin(), unnumbered.end());
  }
  void add_root(const std::string& root) {
    for (const char* below : {"/lib", "/lib64", ""}) add_folder(root + below);
  }
  void add_names() {
    const std::string name(kLibrary);
    for (int major = kNewestHip; major >= kOldestHip; --major)
      list.push_back(name + "." + std::to_string(major));
    list.push_back(name);
    old.push_back(name + ".5");
  }
  void add_packages(const std::string& root) {
    add_folder(root + "/opt/rocm/lib");
    for (const std::string& version : newest_first(root + "/opt/rocm", "core-"))
      add_folder(root + "/opt/rocm/" + version + "/lib");
    for (const std::string& version : newest_first(root + "/opt", "rocm-"))
      add_folder(root + "/opt/" + version + "/lib");
  }
  void add_environment(const std::string& folder) {
    for (const std::string& python : newest_first(folder + "/lib", "python"))
      add_folder(folder + "/lib/" + python + "/site-packages/_rocm_sdk_core/lib");
  }
};

}  // namespace

Names hip_runtimes(const DeviceOptions& options) {
  Found found;
  const std::string folders = options.rocm_folders ? options.rocm_folders : "";
  for (size_t at = 0; at < folders.size();) {
    const size_t end = std::min(folders.find(':', at), folders.size());
    if (end > at) found.add_root(folders.substr(at, end - at));
    at = end + 1;
  }
  found.add_names();
  found.add_packages(options.system.root);
  if (const char* environment = options.virtual_environment; environment && *environment)
    found.add_environment(environment);
  found.list.insert(found.list.end(), found.old.begin(), found.old.end());
  return std::move(found.list);
}

}  // namespace greta
