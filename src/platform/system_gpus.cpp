#include "platform/system_gpus.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "platform/format_text.h"
#include "platform/system_text.h"

namespace greta {

bool may_read_and_write(const char* path) { return !faccessat(AT_FDCWD, path, R_OK | W_OK, AT_EACCESS); }

namespace {

// The names of a folder's entries that begin with `start`, by the number behind it.
std::vector<std::string> numbered(const std::string& folder, const char* start) {
  struct Close {
    void operator()(DIR* open) const { closedir(open); }
  };
  std::vector<std::string> names;
  const std::unique_ptr<DIR, Close> open(opendir(folder.c_str()));
  const size_t length = strlen(start);
  while (const dirent* entry = open ? readdir(open.get()) : nullptr) {
    const char* digits = entry->d_name + length;
    if (!strncmp(entry->d_name, start, length) && *digits && !digits[strspn(digits, "0123456789")])
      names.push_back(entry->d_name);
  }
  std::ranges::sort(names, {}, [&](const std::string& name) { return atol(name.c_str() + length); });
  return names;
}

uint64_t known(uint64_t number) { return number == SystemText::kNone ? 0 : number; }

class Reader {
 public:
  explicit Reader(const SystemView& view) : view_(view), root_(view.root) {}

  DeviceFile device(const std::string& path) {
    DeviceFile file;
    file.path = path;
    struct stat info;
    if (stat((root_ + path).c_str(), &info)) return file;
    file.there = true;
    file.usable = view_.may_open((root_ + path).c_str());
    file.owner = name_of("/etc/passwd", info.st_uid);
    file.group = name_of("/etc/group", info.st_gid);
    file.permissions = info.st_mode & 0777;
    return file;
  }

  // GPUs with a render node, in the order of its numbers.
  std::vector<SystemGpu> drawing() {
    std::vector<SystemGpu> gpus;
    for (const std::string& node : numbered(root_ + "/sys/class/drm", "renderD")) {
      const std::string folder = "/sys/class/drm/" + node + "/device/";
      SystemGpu gpu;
      if (read(folder + "uevent")) {
        gpu.driver = text_.line_after("DRIVER=");
        gpu.pci = text_.line_after("PCI_SLOT_NAME=");
      }
      gpu.render = device("/dev/dri/" + node);
      gpu.memory = number(folder + "mem_info_vram_total");
      gpu.memory_used = number(folder + "mem_info_vram_used");
      gpu.host_memory = number(folder + "mem_info_gtt_total");
      gpu.host_memory_used = number(folder + "mem_info_gtt_used");
      gpu.clock = clock(folder + "pp_dpm_sclk");
      gpu.memory_clock = clock(folder + "pp_dpm_mclk");
      if (read(folder + "product_name")) gpu.name = text_.line_after("");
      gpus.push_back(std::move(gpu));
    }
    return gpus;
  }

  // Adds what the compute driver knows of them. A node without SIMD units is a processor.
  void add_computing(std::vector<SystemGpu>* gpus) {
    const std::string nodes = "/sys/class/kfd/kfd/topology/nodes/";
    for (const std::string& node : numbered(root_ + nodes, "")) {
      if (!read(nodes + node + "/properties") || !known(text_.number_after("simd_count "))) continue;
      const uint64_t place = known(text_.number_after("location_id "));
      const uint64_t render = known(text_.number_after("drm_render_minor "));
      char pci[32];
      format_text(pci, sizeof pci, "%04x:%02x:%02x.%x", unsigned(known(text_.number_after("domain "))),
                  unsigned(place >> 8 & 0xff), unsigned(place >> 3 & 0x1f), unsigned(place & 7));
      const std::string path = "/dev/dri/renderD" + std::to_string(render);
      auto gpu = std::ranges::find(*gpus, path, [](const SystemGpu& g) { return g.render.path; });
      if (gpu == gpus->end()) gpu = std::ranges::find(*gpus, pci, &SystemGpu::pci);
      if (gpu == gpus->end()) {  // a container may hide its render node
        gpus->push_back({});
        gpu = gpus->end() - 1;
        gpu->pci = pci;
        if (render) gpu->render = device(path);
      }
      gpu->target = target(known(text_.number_after("gfx_target_version ")));
    }
  }

 private:
  const SystemView& view_;
  std::string root_;
  SystemText text_;

  bool read(const std::string& path) { return text_.read((root_ + path).c_str()); }
  uint64_t number(const std::string& path) { return read(path) ? known(text_.number_after("")) : 0; }

  // 90010 is gfx90a: decimal digits of the major number, then two each of the minor one and the stepping.
  static std::string target(uint64_t version) {
    if (!version) return "";
    char name[32];
    format_text(name, sizeof name, "gfx%u%x%x", unsigned(version / 10000), unsigned(version / 100 % 100),
                unsigned(version % 100));
    return name;
  }

  // Lines are "1: 2100Mhz", from the lowest to the highest; a "*" stands behind the one that is in use.
  std::string clock(const std::string& path) {
    if (!read(path)) return "";
    uint64_t lowest = 0, highest = 0, now = 0;
    for (const char* at = text_.data; (at = strstr(at, ": "));) {
      const uint64_t value = strtoull(at += 2, nullptr, 10);
      if (!lowest) lowest = value;
      highest = value;
      if (memchr(at, '*', strcspn(at, "\n"))) now = value;
    }
    if (!highest) return "";
    char line[96];
    format_text(line, sizeof line, "%llu to %llu MHz, now %llu", (unsigned long long)lowest,
                (unsigned long long)highest, (unsigned long long)now);
    return line;
  }

  // Lines of both files are "name:x:number:..".
  std::string name_of(const char* file, uint32_t id) {
    const std::string number = std::to_string(id);
    if (!read(file)) return number;
    for (const char* line = text_.data; *line; line += strcspn(line, "\n"), line += *line == '\n') {
      const char* password = line + strcspn(line, ":\n");
      if (*password != ':') continue;
      const char* digits = password + 1 + strcspn(password + 1, ":\n");
      if (*digits == ':' && !number.compare(0, std::string::npos, digits + 1, strcspn(digits + 1, ":\n")))
        return {line, password};
    }
    return number;
  }
};

}  // namespace

const SystemGpu* SystemGpus::find(const char* pci) const {
  const auto found = std::ranges::find(gpus, pci, &SystemGpu::pci);
  return *pci && found != gpus.end() ? &*found : nullptr;
}

SystemGpus read_system_gpus(const SystemView& view) {
  Reader reader(view);
  SystemGpus system;
  system.kfd = reader.device("/dev/kfd");
  system.dxg = reader.device("/dev/dxg");
  system.gpus = reader.drawing();
  reader.add_computing(&system.gpus);
  return system;
}

std::string permission_advice(const DeviceFile& file) {
  // On most systems both groups exist, and a render node may belong to either.
  const bool usual = file.group == "render" || file.group == "video";
  return "sudo usermod -aG " + (usual ? "render,video" : file.group) + " $USER, then log in again";
}

static Status not_permitted(const DeviceFile& file) {
  return fail(Code::Unsupported, "this user may not open %s, which belongs to the group %s (%s)",
              file.path.c_str(), file.group.c_str(), permission_advice(file).c_str());
}

Status explain_no_hip_gpu(const SystemView& view) {
  const SystemGpus system = read_system_gpus(view);
  std::string targets;
  bool has_amd = false;
  for (const SystemGpu& gpu : system.gpus) {
    has_amd |= gpu.is_amd();
    if (!gpu.target.empty()) targets += (targets.empty() ? "" : ", ") + gpu.target;
  }
  if (!system.has_hip())
    return has_amd
               ? fail(Code::Unsupported,
                      "there is no /dev/kfd, though there is an AMD GPU; a container must be started with "
                      "--device /dev/kfd --device /dev/dri, and a kernel must have the driver amdgpu with "
                      "HSA_AMD")
               : fail(Code::Unsupported,
                      "there is no /dev/kfd, so this machine has no AMD GPU, or its driver amdgpu is not "
                      "loaded (sudo modprobe amdgpu)");
  if (system.kfd.there && !system.kfd.usable) return not_permitted(system.kfd);
  for (const SystemGpu& gpu : system.gpus)
    if (gpu.is_amd() && gpu.render.there && !gpu.render.usable) return not_permitted(gpu.render);
  if (!targets.empty())
    return fail(Code::Unsupported,
                "the HIP runtime hides the GPUs that the kernel shows (%s); unset HIP_VISIBLE_DEVICES, "
                "ROCR_VISIBLE_DEVICES and GPU_DEVICE_ORDINAL, or install a ROCm that knows them",
                targets.c_str());
  return fail(Code::Unsupported, "%s is there, but the kernel shows no AMD GPU that computes (see dmesg)",
              system.kfd.there ? "/dev/kfd" : "/dev/dxg");
}

}  // namespace greta
