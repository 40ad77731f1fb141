// The GPUs that the kernel's drivers show in /sys and /dev, and who may open them. No driver library is
// opened for it, so it tells what is wrong where a library finds nothing.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "platform/failure/status.h"

namespace greta {

bool may_read_and_write(const char* path);  // as its owner, group and permissions say
int open_error(const char* path);           // 0, or the errno of opening it for reading and writing

// Where the system's files are. Tests give a folder in place of "/", and their own answers to who may open.
struct SystemView {
  const char* root = "";
  bool (*may_open)(const char* path) = may_read_and_write;
  int (*try_open)(const char* path) = open_error;
  // Environment variables that are set and hide GPUs from a HIP runtime: "HIP_VISIBLE_DEVICES=1". Null: the
  // caller does not tell.
  const char* hiding = nullptr;
};

// A file through which a process reaches a driver.
struct DeviceFile {
  std::string path;  // "/dev/kfd"
  bool there = false;
  bool usable = false;       // this process may read and write it
  std::string owner, group;  // names, or numbers that have none
  uint32_t permissions = 0, group_id = 0;
};

struct SystemGpu {
  std::string pci;               // "0000:03:00.0"; "" if it is part of another device
  std::string driver;            // "amdgpu"; "" if the driver is not known
  std::string name;              // "AMD Instinct MI300X OAM"; mostly ""
  std::string target;            // "gfx942", from the compute driver (KFD); "" if that does not list it
  std::string id;                // vendor and device in hexadecimal, "1002:744c"; "" if it is not known
  DeviceFile render;             // "/dev/dri/renderD128"; path "" if there is none
  bool asleep = false;           // it is powered down while nobody uses it
  std::string firmware;          // "MES 0x83, MEC 0x20"; "" if it is not known
  uint64_t mes = 0;              // the version of MES, the firmware that schedules; 0: not known
  uint32_t part = 0, parts = 1;  // of a GPU that is divided: all its parts have one address
  // All in bytes. 0: not known.
  uint64_t memory = 0, memory_used = 0;            // its own memory; on an APU what the firmware set aside
  uint64_t visible = 0;                            // what the host sees of it at once
  uint64_t host_memory = 0, host_memory_used = 0;  // the host's memory that it may map (GTT)
  std::string clock, memory_clock;                 // "500 to 2100 MHz, now 132"; "" if not known

  bool is_amd() const { return driver == "amdgpu" || !target.empty(); }
};

enum class Container : uint8_t { kNone, kPodman, kOther };

struct SystemGpus {
  DeviceFile kfd;  // /dev/kfd, AMD's compute driver
  DeviceFile dxg;  // /dev/dxg, the GPU of Windows in WSL
  bool has_wsl_rocm =
      false;  // a library of ROCm is there that may use dxg, which GPUs of other makers have, too
  Container container = Container::kNone;  // what this process runs in
  bool is_flatpak = false;
  std::vector<std::string> groups;  // those of "render" and "video" that exist
  std::vector<SystemGpu> gpus;
  std::vector<SystemGpu> without_driver;  // AMD GPUs on the PCI bus that no driver serves: pci and id alone

  bool has_hip() const { return kfd.there || (dxg.there && has_wsl_rocm); }  // a HIP runtime may find a GPU
  const SystemGpu* find(const char* pci) const;                              // null if there is none
};

// Clocks are read where they are asked for and the GPU is awake, since reading them wakes it.
SystemGpus read_system_gpus(const SystemView& view, bool with_clocks = false);

// Fails with the reason why a HIP runtime finds no GPU, and what to do.
Status explain_no_hip_gpu(const SystemView& view);

// What lets this user open `file`: "sudo usermod -aG render,video $USER, then log in again".
std::string permission_advice(const SystemGpus& system, const DeviceFile& file);

// What is to be done about a GPU without a driver.
std::string driver_advice(const SystemGpu& gpu);

}  // namespace greta
