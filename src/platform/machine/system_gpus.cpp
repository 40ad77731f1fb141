#include "platform/machine/system_gpus.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "platform/machine/system_text.h"
#include "platform/text/format_text.h"

namespace greta {

bool may_read_and_write(const char* path) { return !faccessat(AT_FDCWD, path, R_OK | W_OK, AT_EACCESS); }

int open_error(const char* path) {
  const int file = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return errno;
  close(file);
  return 0;
}

namespace {

// The names of a folder's entries that begin with `start`.
std::vector<std::string> entries(const std::string& folder, const char* start) {
  struct Close {
    void operator()(DIR* open) const { closedir(open); }
  };
  std::vector<std::string> names;
  const std::unique_ptr<DIR, Close> open(opendir(folder.c_str()));
  while (const dirent* entry = open ? readdir(open.get()) : nullptr)
    if (!strncmp(entry->d_name, start, strlen(start))) names.push_back(entry->d_name);
  std::ranges::sort(names);
  return names;
}

// Those with a number behind `start`, in its order.
std::vector<std::string> numbered(const std::string& folder, const char* start) {
  std::vector<std::string> names = entries(folder, start);
  const size_t length = strlen(start);
  std::erase_if(names, [&](const std::string& name) {
    return name.size() == length || name.find_first_not_of("0123456789", length) != name.npos;
  });
  std::ranges::sort(names, {}, [&](const std::string& name) { return atol(name.c_str() + length); });
  return names;
}

uint64_t known(uint64_t number) { return number == SystemText::kNone ? 0 : number; }

class Reader {
 public:
  Reader(const SystemView& view, bool with_clocks)
      : view_(view), root_(view.root), with_clocks_(with_clocks) {}

  DeviceFile device(const std::string& path) {
    DeviceFile file;
    file.path = path;
    struct stat info;
    if (stat((root_ + path).c_str(), &info)) return file;
    file.there = true;
    file.usable = view_.may_open((root_ + path).c_str());
    file.owner = name_of("/etc/passwd", info.st_uid);
    file.group = name_of("/etc/group", info.st_gid);
    file.group_id = info.st_gid;
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
        gpu.id = lowered(text_.line_after("PCI_ID="));
      }
      gpu.render = device("/dev/dri/" + node);
      gpu.memory = number(folder + "mem_info_vram_total");
      gpu.visible = number(folder + "mem_info_vis_vram_total");
      gpu.memory_used = number(folder + "mem_info_vram_used");
      gpu.host_memory = number(folder + "mem_info_gtt_total");
      gpu.host_memory_used = number(folder + "mem_info_gtt_used");
      gpu.asleep = read(folder + "power/runtime_status") && text_.line_after("") == "suspended";
      if (with_clocks_ && !gpu.asleep) {
        gpu.clock = clock(folder + "pp_dpm_sclk");
        gpu.memory_clock = clock(folder + "pp_dpm_mclk");
      }
      add_firmware(folder + "fw_version/", &gpu);
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
      auto gpu = render ? by_node(gpus, path) : gpus->end();
      if (gpu == gpus->end()) gpu = by_address(gpus, pci);
      if (gpu == gpus->end()) {  // a container may hide its render node
        gpus->push_back({});
        gpu = gpus->end() - 1;
        gpu->pci = pci;
        if (render) gpu->render = device(path);
      }
      if (gpu->pci.empty()) gpu->pci = pci;  // parts of a GPU are no devices of the bus
      gpu->target = target(known(text_.number_after("gfx_target_version ")));
    }
  }

  // Devices of AMD that draw or compute (classes 03 and 12) and that no driver has taken. Audio is no GPU.
  std::vector<SystemGpu> without_driver() {
    const std::string folder = root_ + "/sys/bus/pci/devices/";
    std::vector<SystemGpu> found;
    for (const std::string& address : entries(folder, "")) {
      const std::string device = "/sys/bus/pci/devices/" + address + "/";
      if (!read(device + "vendor") || text_.line_after("") != "0x1002" || !read(device + "class")) continue;
      const std::string kind = text_.line_after("").substr(0, 4);
      struct stat info;
      if ((kind != "0x03" && kind != "0x12") || !stat((root_ + device + "driver").c_str(), &info)) continue;
      SystemGpu gpu;
      gpu.pci = address;
      if (read(device + "device")) gpu.id = "1002:" + text_.line_after("").substr(2);
      found.push_back(std::move(gpu));
    }
    return found;
  }

  void surroundings(SystemGpus* system) {
    struct stat info;
    const auto there = [&](const char* path) { return !stat((root_ + path).c_str(), &info); };
    system->is_flatpak = there("/.flatpak-info");
    system->container = there("/run/.containerenv")                               ? Container::kPodman
                        : there("/.dockerenv") || there("/run/systemd/container") ? Container::kOther
                                                                                  : Container::kNone;
    for (const char* group : {"render", "video"})
      if (read("/etc/group") && text_.number_after((group + std::string(":x:")).c_str()) != SystemText::kNone)
        system->groups.push_back(group);
    for (const char* folder : {"/opt/rocm/lib", "/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/local/lib"})
      for (const char* library : {"librocdxg.so", "libamdhip64.so"})
        system->has_wsl_rocm |= !entries(root_ + folder, library).empty();
  }

 private:
  const SystemView& view_;
  std::string root_;
  bool with_clocks_;
  SystemText text_;

  using Gpus = std::vector<SystemGpu>;
  static Gpus::iterator by_node(Gpus* gpus, const std::string& path) {
    return std::ranges::find(*gpus, path, [](const SystemGpu& g) { return g.render.path; });
  }
  static Gpus::iterator by_address(Gpus* gpus, const char* pci) {
    return std::ranges::find(*gpus, pci, &SystemGpu::pci);
  }
  static std::string lowered(std::string text) {
    for (char& letter : text) letter = char(letter >= 'A' && letter <= 'Z' ? letter - 'A' + 'a' : letter);
    return text;
  }

  void add_firmware(const std::string& folder, SystemGpu* gpu) {
    constexpr const char* kFiles[][2] = {
        {"MES", "mes_fw_version"}, {"MEC", "mec_fw_version"}, {"SMC", "smc_fw_version"}};
    for (const auto& [name, file] : kFiles) {
      if (!read(folder + file)) continue;
      const uint64_t version = strtoull(text_.data, nullptr, 16);
      if (!version) continue;
      if (!strcmp(name, "MES")) gpu->mes = version;
      char part[64];
      format_text(part, sizeof part, "%s%s 0x%llx", gpu->firmware.empty() ? "" : ", ", name,
                  (unsigned long long)version);
      gpu->firmware += part;
    }
  }

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

// Numbers the parts of GPUs that are divided. They lie behind one address, or each has its own function of
// it.
static void number_parts(std::vector<SystemGpu>* gpus) {
  for (SystemGpu& gpu : *gpus) {
    if (gpu.pci.empty()) continue;
    gpu.parts = 0;
    for (const SystemGpu& other : *gpus) {
      if (other.pci != gpu.pci) continue;
      ++gpu.parts;
      if (&other < &gpu) ++gpu.part;
    }
  }
}

SystemGpus read_system_gpus(const SystemView& view, bool with_clocks) {
  Reader reader(view, with_clocks);
  SystemGpus system;
  system.kfd = reader.device("/dev/kfd");
  system.dxg = reader.device("/dev/dxg");
  reader.surroundings(&system);
  system.gpus = reader.drawing();
  reader.add_computing(&system.gpus);
  system.without_driver = reader.without_driver();
  number_parts(&system.gpus);
  return system;
}

}  // namespace greta
