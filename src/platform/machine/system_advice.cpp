// Why GPUs that the kernel shows cannot be used, and what to do.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "platform/machine/system_gpus.h"
#include "platform/text/format_text.h"

namespace greta {

constexpr uint32_t kNobody = 65534;  // what a group that a container does not have is shown as

// A rule for the device manager that lets the group render use a file.
static std::string udev_rule(const SystemGpus& system, const DeviceFile& file) {
  const char* const device = file.path == system.kfd.path ? R"(SUBSYSTEM=="kfd", KERNEL=="kfd")"
                                                          : R"(SUBSYSTEM=="drm", KERNEL=="renderD*")";
  return std::string(system.container == Container::kNone ? "" : "on the host, ") + "put the line " + device +
         R"(, GROUP="render", MODE="0660" into /etc/udev/rules.d/70-amdgpu.rules, then: )" +
         "sudo udevadm control --reload && sudo udevadm trigger";
}

std::string permission_advice(const SystemGpus& system, const DeviceFile& file) {
  const bool has_name = file.group.find_first_not_of("0123456789") != file.group.npos;
  if (file.group_id == kNobody || file.group == "nogroup")
    return "start the container with --group-add keep-groups (podman with crun), as a user who is in the "
           "group "
           "of the file on the host";
  if ((file.permissions & 0060) != 0060 || (has_name && file.group == "root")) return udev_rule(system, file);
  if (system.container == Container::kPodman) return "start the container with --group-add keep-groups";
  if (system.container != Container::kNone || !has_name)
    return "start the container with --group-add " + std::to_string(file.group_id);
  std::string groups = file.group;
  for (const std::string& group : system.groups)  // a render node may belong to either
    if (std::ranges::count(system.groups, file.group) && group != file.group) groups += "," + group;
  return "sudo usermod -aG " + groups + " $USER, then log in again";
}

std::string driver_advice(const SystemGpu& gpu) {
  return "the kernel has no driver for this AMD GPU (" + gpu.id +
         "): its kernel or its firmware may be too old (a Radeon RX 9000 needs Linux 6.12 and linux-firmware "
         "of "
         "2025), or amdgpu may be blocked; see sudo dmesg | grep amdgpu";
}

static Status not_permitted(const SystemGpus& system, const DeviceFile& file) {
  return fail(Code::Unsupported, "this user may not open %s, which belongs to the group %s (%s)",
              file.path.c_str(), file.group.c_str(), permission_advice(system, file).c_str());
}

// Where owner and permissions allow what is refused all the same.
static Status refused(const SystemGpus& system, const DeviceFile& file, int error) {
  const char* const path = file.path.c_str();
  if (error == EPERM && system.container != Container::kNone)
    return fail(Code::Unsupported, "this container may not use %s: start it with --device %s", path, path);
  if (error == EACCES || error == EPERM)
    return fail(
        Code::Unsupported,
        "%s may not be opened, though its permissions allow it: AppArmor, SELinux or a sandbox forbids it "
        "(SELinux: sudo setsebool -P container_use_devices 1; snap: sudo snap connect NAME:opengl; see "
        "sudo dmesg)",
        path);
  return fail(Code::Unsupported, "%s does not open (error %d): its driver has failed (see sudo dmesg)", path,
              error);
}

static Status explain_wsl(const SystemGpus& system) {
  return fail(
      Code::Unsupported,
      "%s: for an AMD GPU install AMD's Adrenalin driver in Windows, and ROCm 7.13 or newer with "
      "librocdxg in WSL; an older ROCm also needs HSA_ENABLE_DXG_DETECTION=1",
      system.has_wsl_rocm ? "ROCm finds no GPU through WSL's /dev/dxg" : "WSL's /dev/dxg has no ROCm");
}

static Status explain_no_kfd(const SystemGpus& system, bool has_amd) {
  if (has_amd)
    return fail(Code::Unsupported,
                "there is no /dev/kfd, though there is an AMD GPU; a container must be started with --device "
                "/dev/kfd --device /dev/dri, and a kernel must have the driver amdgpu with HSA_AMD");
  if (!system.without_driver.empty())
    return fail(Code::Unsupported, "there is no /dev/kfd: %s",
                driver_advice(system.without_driver[0]).c_str());
  if (system.dxg.there) return explain_wsl(system);
  return fail(
      Code::Unsupported,
      "there is no /dev/kfd, so this machine has no AMD GPU, or its driver amdgpu is not loaded (sudo "
      "modprobe amdgpu)");
}

// The first file of an AMD GPU that keeps a process from it.
static Status check_files(const SystemView& view, const SystemGpus& system) {
  const std::string root = view.root;
  if (!system.kfd.usable) return not_permitted(system, system.kfd);
  for (const SystemGpu& gpu : system.gpus) {
    if (!gpu.is_amd() || gpu.render.path.empty()) continue;
    if (!gpu.render.there)
      return fail(Code::Unsupported,
                  "%s is not there, which the GPU %s needs: start the container with "
                  "--device /dev/dri",
                  gpu.render.path.c_str(), gpu.pci.c_str());
    if (!gpu.render.usable) return not_permitted(system, gpu.render);
    if (const int error = view.try_open((root + gpu.render.path).c_str()))
      return refused(system, gpu.render, error);
  }
  if (const int error = view.try_open((root + system.kfd.path).c_str()))
    return refused(system, system.kfd, error);
  return {};
}

Status explain_no_hip_gpu(const SystemView& view) {
  const SystemGpus system = read_system_gpus(view);
  std::vector<std::string> targets;
  bool has_amd = false;
  for (const SystemGpu& gpu : system.gpus) {
    has_amd |= gpu.is_amd();
    if (!gpu.target.empty() && !std::ranges::count(targets, gpu.target)) targets.push_back(gpu.target);
  }
  if (!system.kfd.there) return explain_no_kfd(system, has_amd);
  GRETA_TRY(check_files(view, system));
  if (targets.empty())
    return fail(Code::Unsupported,
                "/dev/kfd is there, but the kernel shows no AMD GPU that computes (see dmesg)");
  std::string names;
  for (const std::string& target : targets) names += (names.empty() ? "" : ", ") + target;
  if (view.hiding && *view.hiding)
    return fail(
        Code::Unsupported,
        "the HIP runtime hides the GPUs that the kernel shows (%s), since the environment has %s: unset it",
        names.c_str(), view.hiding);
  return fail(
      Code::Unsupported,
      "the HIP runtime finds none of the GPUs that the kernel shows (%s): install a ROCm that knows them",
      names.c_str());
}

}  // namespace greta
