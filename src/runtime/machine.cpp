// Examines the machine. Nothing is opened but the drivers' libraries.
#include "runtime/machine.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "runtime/gfx_family.h"
#include "runtime/known_faults.h"

namespace greta {

namespace {

struct Listed {
  const Backend* backend;
  std::string id;
  DeviceInfo info;
  std::string reason;  // why it cannot be used; "" if it can
  bool present;        // false: it stands for a backend that has no device
};

class Examination {
 public:
  explicit Examination(const MachineParts& parts)
      : parts_(parts), system_(read_system_gpus(parts.options.system, true)) {}

  std::vector<Finding> run() {
    list_devices();
    build();
    system();
    if (has("hip")) compute_driver();
    for (const SystemGpu& gpu : system_.without_driver)
      add("gpu " + gpu.pci, "driver", "none", driver_advice(gpu));
    for (const SystemGpu& gpu : system_.gpus) this->gpu(gpu);
    for (const Listed& device : devices_) this->device(device);
    return std::move(findings_);
  }

 private:
  const MachineParts& parts_;
  const SystemGpus system_;
  std::vector<Listed> devices_;
  std::vector<Finding> findings_;

  void add(const std::string& subject, const char* key, const std::string& value,
           const std::string& advice = "") {
    if (!value.empty()) findings_.push_back({subject, key, value, advice});
  }

  void list_devices() {
    for (const Backend* backend : parts_.backends) {
      if (left_out(*backend, parts_.options)) continue;
      const uint32_t count = backend->count(parts_.options);
      for (uint32_t i = 0; i < std::max(1u, count); ++i) {
        Listed device = {backend, backend->name, {}, {}, count > 0};
        const Status usable = backend->describe(i, parts_.options, &device.info);
        if (!usable.ok()) device.reason = error_text();
        char id[kDeviceIdBytes];
        write_id(*backend, i, id);
        if (count) device.id = id;
        devices_.push_back(std::move(device));
      }
    }
  }

  bool has(std::string_view backend) const {
    return std::ranges::any_of(parts_.backends, [&](const Backend* b) { return b->name == backend; });
  }

  // The usable device of a backend that is this GPU; null if there is none. A runtime lists the parts of a
  // GPU, which have one address, in the order of the kernel.
  const Listed* device_of(const SystemGpu& gpu, std::string_view backend) const {
    uint32_t before = gpu.part;
    for (const Listed& device : devices_)
      if (device.backend->name == backend && is_of(device, gpu) && device.reason.empty() && !before--)
        return &device;
    return nullptr;
  }
  static bool is_of(const Listed& device, const SystemGpu& gpu) {
    return device.present && !device.info.cpu_type && *device.info.pci && device.info.pci == gpu.pci;
  }
  // "vulkan0, hip0"
  std::string ids_of(const SystemGpu& gpu) const {
    std::string ids;
    for (const Backend* backend : parts_.backends) {
      uint32_t at = 0;
      for (const Listed& device : devices_)
        if (device.backend == backend && is_of(device, gpu) && (gpu.parts < 2 || at++ == gpu.part))
          ids += (ids.empty() ? "" : ", ") + device.id;
    }
    return ids;
  }

  // Whether `auto` has the driver that it wants for this GPU.
  bool is_served(const SystemGpu& gpu) const {
    if (device_of(gpu, "hip")) return true;
    return device_of(gpu, "vulkan") && !(has("hip") && is_instinct(gpu.target));
  }
  // Whether HIP could serve a GPU that is not served.
  bool wants_hip() const {
    return std::ranges::any_of(system_.gpus, [&](const SystemGpu& g) { return g.is_amd() && !is_served(g); });
  }

  void build() {
    std::string names, targets;
    for (const Backend* backend : parts_.backends)
      names += (names.empty() ? "" : ", ") + std::string(backend->name);
    for (const std::string& target : parts_.targets) targets += (targets.empty() ? "" : ", ") + target;
    add("build", "backends", names);
    if (has("hip")) add("build", "code objects", targets.empty() ? "none" : targets);
  }

  void system() {
    SystemText text;
    const std::string root = parts_.options.system.root;
    if (text.read((root + "/etc/os-release").c_str())) {
      std::string name = text.line_after("PRETTY_NAME=");
      std::erase(name, '"');
      add("system", "name", name);
    }
    std::string kernel;
    if (text.read((root + "/proc/sys/kernel/osrelease").c_str())) kernel = text.line_after("");
    add("system", "kernel", kernel);
    constexpr const char* kContainers[] = {"", "podman", "yes"};
    add("system", "container", kContainers[size_t(system_.container)]);
    if (system_.is_flatpak)
      add("system", "sandbox", "flatpak, which has a Mesa of its own",
          std::ranges::all_of(system_.gpus, [&](const SystemGpu& gpu) { return is_served(gpu); })
              ? ""
              : "flatpak update (the extension org.freedesktop.Platform.GL is the Mesa that counts here)");
    if (std::ranges::any_of(system_.gpus, &SystemGpu::is_amd)) amdgpu(root, kernel);
    host();
  }

  void host() {
    const SystemHost host = read_system_host(parts_.options.system.root);
    add("system", "instruction sets", host.flags);
    add("system", "governor", host.governor);
    add("system", "huge pages", host.huge_pages,
        host.huge_pages != "never" ? ""
                                   : "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled: "
                                     "weights on the processor are read faster from huge pages");
    add("system", "memory limit", host.memory_limit);
    add("system", "processor limit", host.processor_limit);
  }

  // Parameters of the kernel's driver. Work that takes longer than lockup_timeout resets the GPU.
  void amdgpu(const std::string& root, const std::string& kernel) {
    const std::string folder = root + "/sys/module/amdgpu/parameters/";
    SystemText text;
    if (text.read((folder + "lockup_timeout").c_str())) {
      const std::string limit = text.line_after("");
      const bool is_usual = limit.empty() || limit == "-1";
      const char* const usual = atoi(kernel.c_str()) >= 7 ? "the kernel's own, 2 s since Linux 7.0"
                                                          : "the kernel's own, 10 s before Linux 7.0";
      add("amdgpu", "lockup_timeout", is_usual ? usual : limit + " ms");
    }
    if (text.read((folder + "user_queue").c_str())) add("amdgpu", "user_queue", text.line_after(""));
  }

  std::string permission(const DeviceFile& file) const {
    char text[512];
    format_text(text, sizeof text, "owner %s, group %s, permissions %03o, this user %s open it",
                file.owner.c_str(), file.group.c_str(), file.permissions, file.usable ? "may" : "may not");
    return text;
  }

  void compute_driver() {
    const DeviceFile& kfd = system_.kfd;
    if (system_.dxg.there) add("/dev/dxg", "access", permission(system_.dxg));
    std::string advice;
    const bool in_wsl = system_.dxg.there && system_.has_hip() && !any_hip();
    if ((wants_hip() || in_wsl) && !kfd.usable && !explain_no_hip_gpu(parts_.options.system).ok())
      advice = error_text();
    add("/dev/kfd", "access", kfd.there ? permission(kfd) : "it is not there", advice);
  }

  bool any_hip() const {
    return std::ranges::any_of(devices_, [](const Listed& device) {
      return device.present && device.reason.empty() && !strcmp(device.backend->name, "hip");
    });
  }

  void gpu(const SystemGpu& gpu) {
    std::string subject = "gpu " + (gpu.pci.empty() ? gpu.render.path : gpu.pci);
    if (gpu.parts > 1)
      subject += ", part " + std::to_string(gpu.part + 1) + " of " + std::to_string(gpu.parts);
    add(subject, "driver", gpu.driver);
    add(subject, "name", gpu.name);
    if (!gpu.target.empty()) target(subject, gpu.target.c_str(), is_served(gpu));
    if (gpu.render.there)
      add(subject, "node", gpu.render.path + ": " + permission(gpu.render),
          gpu.render.usable || is_served(gpu) ? "" : permission_advice(system_, gpu.render));
    memory(subject, "memory", gpu.memory, gpu.memory_used);
    bar(subject, gpu);
    memory(subject, "host memory", gpu.host_memory, gpu.host_memory_used);
    firmware(subject, gpu);
    if (gpu.asleep) add(subject, "power", "asleep, so that its clocks are not read");
    add(subject, "clock", gpu.clock);
    add(subject, "memory clock", gpu.memory_clock);
    const std::string ids = ids_of(gpu);
    std::string advice;
    if (!is_served(gpu) && !(gpu.is_amd() && has("hip")))
      advice = is_instinct(gpu.target) ? "build GRETA with HIP" : "install a Vulkan driver for it";
    if (needs_mesa(gpu)) advice = mesa_advice(gpu.target);
    add(subject, "devices", ids.empty() ? "none" : ids, advice);
  }

  // Without a resizable BAR the host sees 256 MiB of the memory at once, and uploads go through that.
  void bar(const std::string& subject, const SystemGpu& gpu) {
    if (!gpu.memory || !gpu.visible) return;
    const bool whole = gpu.visible >= gpu.memory;
    add(subject, "resizable BAR",
        whole ? "on" : "off: the host sees " + std::string(SizeText(gpu.visible).text) + " of the memory",
        whole ? "" : "turn on Resizable BAR (Smart Access Memory) and Above 4G Decoding in the firmware");
  }

  // Whether Vulkan's drivers list other devices, but not this GPU, though this user may open it.
  bool needs_mesa(const SystemGpu& gpu) const {
    const bool works = std::ranges::any_of(devices_, [](const Listed& device) {
      return device.present && !strcmp(device.backend->name, "vulkan");
    });
    return works && !gpu.target.empty() && !is_served(gpu) && !is_instinct(gpu.target) && gpu.render.usable &&
           !device_of(gpu, "vulkan");
  }

  // RADV's first versions that drive GPUs of a generation well enough for Vulkan 1.3.
  static std::string mesa_advice(std::string_view target) {
    constexpr std::string_view kLeast[][2] = {
        {"gfx12", "25.0"}, {"gfx115", "25.0"}, {"gfx110", "22.3"}, {"gfx103", "22.0"}};
    std::string version = "22.0";
    for (const auto& [start, least] : kLeast)
      if (target.starts_with(start)) version = least;
    return "install or update Mesa's Vulkan driver: " + std::string(target) + " needs Mesa " + version +
           " or newer (mesa-vulkan-drivers), and Vulkan lists no device that is this GPU";
  }

  // MES schedules all work from RDNA3 on, and some of its versions are known for hangs.
  void firmware(const std::string& subject, const SystemGpu& gpu) {
    char advice[160] = "";
    if (const char* fault = firmware_fault(gpu.target, gpu.mes))
      format_text(advice, sizeof advice, "update linux-firmware: with MES 0x%llx %s",
                  static_cast<unsigned long long>(gpu.mes & 0xfff), fault);
    add(subject, "firmware", gpu.firmware, advice);
  }

  // What is known of a driver: a fault that is worked around, or that there is a better one.
  void driver_faults(const Listed& device) {
    if (const char* fault = driver_fault(device.backend->name, device.info.driver))
      add(device.id, "known faults", fault);
    const auto is_better = [&](const Listed& other) {
      return other.backend == device.backend && !other.info.vendor_driver && other.reason.empty() &&
             !strcmp(other.info.pci, device.info.pci);
    };
    if (device.info.vendor_driver && std::ranges::none_of(devices_, is_better))
      add(device.id, "known faults", "this driver is slower than Mesa's",
          "install Mesa's driver RADV (mesa-vulkan-drivers)");
  }

  void memory(const std::string& subject, const char* key, uint64_t all, uint64_t used) {
    if (all) add(subject, key, std::string(SizeText(all).text) + ", " + SizeText(used).text + " in use");
  }

  // Which code of this build runs on a target.
  void target(const std::string& subject, const char* arch, bool is_served) {
    add(subject, "target", arch);
    if (!has("hip")) return;
    std::string code;
    for (const std::string& target : parts_.targets)
      if (runs_on(target, arch)) code += (code.empty() ? "" : ", ") + target;
    if (!code.empty()) return add(subject, "code object", code);
    add(subject, "code object", "none fits",
        is_served            ? ""
        : compiles_for(arch) ? "build with -DGRETA_HIP_TARGETS=" + std::string(arch)
                             : "use Vulkan, since the HIP kernels do not compile for it");
  }

  void device(const Listed& device) {
    const DeviceInfo& info = device.info;
    const std::string& id = device.id;
    const bool of_hip = !strcmp(device.backend->name, "hip");
    add(id, "name", info.name);
    add(id, "driver", info.driver);
    if (device.present) driver_faults(device);
    add(id, "library", info.library);
    add(id, "address", info.pci);
    if (*info.arch && of_hip && !system_.find(info.pci))
      target(id, info.arch, true);
    else
      add(id, "kind", info.arch);
    if (info.memory_bytes)
      add(id, "memory",
          SizeText(info.memory_bytes).text +
              std::string(info.unified_memory ? ", shared with the host" : ""));
    if (device.reason.empty())
      return add(id, "usable",
                 info.cpu_type && !device.backend->is_processor ? "on the processor, never by auto" : "yes");
    add(id, "usable", "no: " + device.reason, needs_action(device) ? device.reason : "");
  }

  // A driver that fails matters where a GPU is left without one.
  bool needs_action(const Listed& device) const {
    if (device.info.cpu_type) return false;
    const bool of_hip = !strcmp(device.backend->name, "hip");
    if (const SystemGpu* gpu = system_.find(device.info.pci)) return !is_served(*gpu);
    if (of_hip) return wants_hip();
    return std::ranges::any_of(
        system_.gpus, [&](const SystemGpu& gpu) { return !is_served(gpu) && !is_instinct(gpu.target); });
  }
};

}  // namespace

std::vector<Finding> examine_machine(const MachineParts& parts) { return Examination(parts).run(); }

}  // namespace greta
