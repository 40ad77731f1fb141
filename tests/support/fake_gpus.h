// A folder in place of "/" that shows GPUs as the kernel's drivers do.
#pragma once
#include <catch2/catch_test_macros.hpp>
#include <cerrno>
#include <cstring>

#include "platform/platform.h"
#include "support/fake_root.h"

struct FakeGpu {
  const char* pci;      // "0000:03:00.0"
  uint32_t render;      // 128: /dev/dri/renderD128
  uint32_t target = 0;  // 110000: gfx1100; 0: the compute driver does not list it
  const char* driver = "amdgpu";
};

struct FakeGpus : FakeRoot {
  inline static std::string forbidden;  // a path that may not be opened, as its permissions say
  inline static std::string refused;    // one whose opening fails all the same, with this error
  inline static int error = EACCES;

  greta::SystemView view() const {
    return {path.c_str(),
            [](const char* file) { return forbidden.empty() || !strstr(file, forbidden.c_str()); },
            [](const char* file) { return refused.empty() || !strstr(file, refused.c_str()) ? 0 : error; }};
  }
  FakeGpus() {
    forbidden.clear();
    refused.clear();
    write("/etc/passwd", "root:x:0:0:root:/root:/bin/sh\n");
    write("/etc/group", "daemon:x:1:\nrender:x:0:\nvideo:x:44:greta\n");
    write("/sys/class/kfd/kfd/topology/nodes/0/properties", "cpu_cores_count 16\nsimd_count 0\n");
  }
  void add_kfd() { add_file("/dev/kfd"); }
  void add_file(const std::string& file) {
    write(file, "");
    std::filesystem::permissions(path + file, std::filesystem::perms(0660));
  }
  void add(const FakeGpu& gpu) {
    const std::string render = "renderD" + std::to_string(gpu.render);
    add_file("/dev/dri/" + render);
    write(device(gpu) + "uevent", std::string("DRIVER=") + gpu.driver +
                                      "\nPCI_CLASS=30000\nPCI_ID=1002:744C\n" + "PCI_SLOT_NAME=" + gpu.pci +
                                      "\n");
    if (!gpu.target) return;
    uint32_t domain, bus, slot, function;
    REQUIRE(sscanf(gpu.pci, "%x:%x:%x.%x", &domain, &bus, &slot, &function) == 4);
    write("/sys/class/kfd/kfd/topology/nodes/" + std::to_string(gpu.render - 127) + "/properties",
          "cpu_cores_count 0\nsimd_count 192\ngfx_target_version " + std::to_string(gpu.target) +
              "\nvendor_id 4098\nlocation_id " + std::to_string(bus << 8 | slot << 3 | function) +
              "\ndomain " + std::to_string(domain) + "\ndrm_render_minor " + std::to_string(gpu.render) +
              "\n");
  }
  void add_memory(const FakeGpu& gpu, uint64_t own, uint64_t own_used, uint64_t host, uint64_t host_used) {
    write(device(gpu) + "mem_info_vram_total", std::to_string(own) + "\n");
    write(device(gpu) + "mem_info_vram_used", std::to_string(own_used) + "\n");
    write(device(gpu) + "mem_info_gtt_total", std::to_string(host) + "\n");
    write(device(gpu) + "mem_info_gtt_used", std::to_string(host_used) + "\n");
  }
  std::string device(const FakeGpu& gpu) const {
    return "/sys/class/drm/renderD" + std::to_string(gpu.render) + "/device/";
  }
};

inline constexpr FakeGpu kRadeon{"0000:03:00.0", 128, 110000};
inline constexpr FakeGpu kInstinct{"0000:c1:00.0", 129, 90402};
