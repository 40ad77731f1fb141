// How the mocks stand in front of the real libvulkan: each defines replaced(), which answers for a function
// with one of its own, or with the real one.
#pragma once
#define VK_NO_PROTOTYPES
#include <dlfcn.h>
#include <vulkan/vulkan_core.h>

#include <cstring>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

PFN_vkGetInstanceProcAddr real_instance_proc;
PFN_vkGetDeviceProcAddr real_device_proc;

PFN_vkVoidFunction replaced(const char* name, PFN_vkVoidFunction real);

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL device_proc(VkDevice device, const char* name) {
  return replaced(name, real_device_proc(device, name));
}

}  // namespace

EXPORT VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL vkGetInstanceProcAddr(VkInstance instance, const char* name) {
  if (!real_instance_proc) {
    void* loader = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!loader) return nullptr;
    real_instance_proc = reinterpret_cast<PFN_vkGetInstanceProcAddr>(dlsym(loader, "vkGetInstanceProcAddr"));
  }
  const PFN_vkVoidFunction real = real_instance_proc(instance, name);
  if (strcmp(name, "vkGetDeviceProcAddr")) return replaced(name, real);
  real_device_proc = reinterpret_cast<PFN_vkGetDeviceProcAddr>(real);
  return reinterpret_cast<PFN_vkVoidFunction>(device_proc);
}
