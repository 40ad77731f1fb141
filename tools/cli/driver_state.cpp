#include "driver_state.h"

#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string_view>

#include "bench/build_commit.h"
#include "console.h"
#include "greta.h"
#include "model.h"
#include "output_file.h"

extern char** environ;

namespace greta::cli {
namespace {

namespace fs = std::filesystem;

constexpr char kLibrary[] = "library ";

// Variables that change what drivers are there, or what they do.
constexpr const char* kDriverVariables[] = {
    "VK_",    "LD_",  "MESA_", "RADV_", "AMD",  "HSA_",   "HIP_", "ROC",     "GPU_",    "CUDA_",
    "NVIDIA_", "__NV", "__GLX", "XDG_",  "HOME", "GRETA_", "DRI_", "DISPLAY", "WAYLAND", "VIRTUAL_"};
// Of loaders: the files in these folders say which drivers there are.
constexpr const char* kFolders[] = {"/etc/vulkan/icd.d",
                                    "/etc/vulkan/implicit_layer.d",
                                    "/usr/share/vulkan/icd.d",
                                    "/usr/share/vulkan/implicit_layer.d",
                                    "/usr/local/share/vulkan/icd.d",
                                    "/usr/local/share/vulkan/implicit_layer.d",
                                    "/opt"};
constexpr const char* kFiles[] = {"/proc/self/exe", "/etc/ld.so.cache"};
constexpr const char* kNodes[] = {"/dev", "/dev/dri"};
constexpr const char* kTexts[] = {"/proc/sys/kernel/random/boot_id", "/proc/driver/nvidia/version",
                                  "/sys/module/amdgpu/srcversion"};

std::string whole_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return file ? std::string(std::istreambuf_iterator<char>(file), {}) : "";
}

std::string stamp_of(const std::string& path) {
  struct stat about = {};
  if (stat(path.c_str(), &about) != 0) return path + " none\n";
  return path + format(" %llu %llu %lld %lld.%09ld %o\n", static_cast<unsigned long long>(about.st_dev),
                       static_cast<unsigned long long>(about.st_ino), static_cast<long long>(about.st_size),
                       static_cast<long long>(about.st_mtim.tv_sec), about.st_mtim.tv_nsec, about.st_mode);
}

std::vector<std::string> files_in(const char* folder) {
  std::vector<std::string> files;
  std::error_code unknown;
  for (fs::directory_iterator at(folder, unknown), end; !unknown && at != end; at.increment(unknown))
    files.push_back(at->path().string());
  std::sort(files.begin(), files.end());
  return files;
}

bool is_gpu_node(const std::string& path) {
  const std::string_view name = std::string_view(path).substr(path.rfind('/') + 1);
  return name.starts_with("nvidia") || name == "kfd" || name == "dxg" || name.starts_with("renderD");
}

// Who may use a node; its times change whenever it is used.
std::string node_text(const std::string& path) {
  struct stat about = {};
  if (stat(path.c_str(), &about) != 0) return "";
  return path + format(" %llx %o %u %u %d\n", static_cast<unsigned long long>(about.st_rdev), about.st_mode,
                       about.st_uid, about.st_gid, access(path.c_str(), R_OK | W_OK));
}

std::string environment_text() {
  std::vector<std::string> lines;
  for (char** each = environ; *each; ++each) {
    const std::string_view line = *each;
    for (const char* prefix : kDriverVariables)
      if (line.starts_with(prefix)) {
        lines.emplace_back(line);
        break;
      }
  }
  std::sort(lines.begin(), lines.end());
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

}  // namespace

std::vector<std::string> mapped_libraries() {
  std::vector<std::string> libraries;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const size_t at = line.find('/');
    if (at != line.npos && line.find(".so", at) != line.npos) libraries.push_back(line.substr(at));
  }
  std::sort(libraries.begin(), libraries.end());
  libraries.erase(std::unique(libraries.begin(), libraries.end()), libraries.end());
  return libraries;
}

DriverState::DriverState(const std::string& folder) : path_(folder.empty() ? "" : folder + "/asked") {}

std::string DriverState::text(const std::string& device) const {
  std::string text = device + format("\n%u %s\n", greta_version(), kBuildCommit);
  utsname system;
  if (uname(&system) == 0) text += format("%s %s\n", system.release, system.version);
  text += format("%u %u\n", getuid(), getgid());
  for (const char* path : kTexts) text += whole_file(path) + "\n";
  text += environment_text();
  for (const char* folder : kNodes)
    for (const std::string& path : files_in(folder))
      if (is_gpu_node(path)) text += node_text(path);
  for (const char* path : kFiles) text += stamp_of(path);
  for (const char* folder : kFolders)
    for (const std::string& path : files_in(folder)) text += stamp_of(path);
  for (const std::string& path : libraries_) text += kLibrary + stamp_of(path);
  return text;
}

std::string DriverState::take() {
  if (path_.empty()) return "";
  const std::string told = whole_file(path_);
  std::error_code unknown;
  if (told.empty() || !fs::remove(path_, unknown)) return "";
  libraries_.clear();
  std::istringstream lines(told);
  std::string device;
  std::getline(lines, device);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(kLibrary)) continue;
    // A stamp has five words behind the path.
    size_t end = line.size();
    for (int word = 0; word < 5 && end != line.npos; ++word) end = line.rfind(' ', end - 1);
    if (end != line.npos && end > std::strlen(kLibrary))
      libraries_.push_back(line.substr(std::strlen(kLibrary), end - std::strlen(kLibrary)));
  }
  return !libraries_.empty() && text(device) == told ? device : "";
}

// Without such a file drivers are asked again, so errors are left alone.
void DriverState::remember(const std::string& device) const {
  if (path_.empty() || libraries_.empty()) return;
  try {
    make_folders(path_);
    OutputFile file(path_ + format(".%d", int(getpid())), OutputFile::Readers::Owner);
    const std::string now = text(device);
    file.write(now.data(), now.size());
    file.finish_as(path_);
  } catch (const Failed&) {
  }
}

}  // namespace greta::cli
