// The GPUs that the kernel's drivers show in /sys and /dev, and who may open them. No driver library is
// opened for it, so it tells what is wrong where a library finds nothing.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "platform/status.h"

namespace greta {

bool may_read_and_write(const char* path);

// Where the system's files are. Tests give a folder in place of "/", and their own answer to who may open.
struct SystemView {
  const char* root = "";
  bool (*may_open)(const char* path) = may_read_and_write;
};

// A file through which a process reaches a driver.
struct DeviceFile {
  std::string path;  // "/dev/kfd"
  bool there = false;
  bool usable = false;       // this process may read and write it
  std::string owner, group;  // names, or numbers that have none
  uint32_t permissions = 0;
};

struct SystemGpu {
  std::string pci;     // "0000:03:00.0"; "" if it is part of another device
  std::string driver;  // "amdgpu"; "" if the driver is not known
  std::string name;    // "AMD Instinct MI300X OAM"; mostly ""
  std::string target;  // "gfx942", from the compute driver (KFD); "" if that does not list it
  DeviceFile render;   // "/dev/dri/renderD128"; path "" if there is none
  // All in bytes. 0: not known.
  uint64_t memory = 0, memory_used = 0;            // its own memory; on an APU what the firmware set aside
  uint64_t host_memory = 0, host_memory_used = 0;  // the host's memory that it may map (GTT)
  std::string clock, memory_clock;                 // "500 to 2100 MHz, now 132"; "" if not known

  bool is_amd() const { return driver == "amdgpu" || !target.empty(); }
};

struct SystemGpus {
  DeviceFile kfd;  // /dev/kfd, AMD's compute driver
  DeviceFile dxg;  // /dev/dxg, the GPU of Windows in WSL
  std::vector<SystemGpu> gpus;

  bool has_hip() const { return kfd.there || dxg.there; }  // a HIP runtime may find a GPU
  const SystemGpu* find(const char* pci) const;            // null if there is none
};

SystemGpus read_system_gpus(const SystemView& view);

// Fails with the reason why a HIP runtime finds no GPU, and what to do.
Status explain_no_hip_gpu(const SystemView& view);

// The command that lets a user open `file`: "sudo usermod -aG render,video $USER, then log in again".
std::string permission_advice(const DeviceFile& file);

}  // namespace greta
