/* A libvulkan.so.1 that plays a role. What it does stands in the file beside it, NAME.role, in lines:
 *   device 1002 744c 2 0000:03:00.0 3 24576 radv Mesa 25.2.0 | AMD Radeon (RADV)
 *          vendor, device, VkPhysicalDeviceType, address, VkDriverId, MiB, driver and version, name
 *   segv instance | hang devices | print instance | segv open        what happens, and in which call
 * Devices can be described; none can be opened. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <vulkan/vulkan_core.h>

struct device {
  unsigned vendor, id, type, driver_id, domain, bus, slot;
  unsigned long long memory;
  char driver[64], version[64], name[128];
};
static struct device devices[128];
static unsigned device_count;
static char deeds[16][2][32];
static int deed_count;

static void maybe(const char* call) {
  for (int i = 0; i < deed_count; ++i) {
    if (strcmp(deeds[i][1], call)) continue;
    const char* deed = deeds[i][0];
    if (!strcmp(deed, "segv")) raise(SIGSEGV);
    if (!strcmp(deed, "hang"))
      for (;;) pause();
    if (!strcmp(deed, "print"))
      printf("WARNING: radv is not a conformant Vulkan implementation\n"), fflush(stdout);
  }
}

__attribute__((constructor)) static void read_role(void) {
  Dl_info self;
  char path[4096], line[512];
  if (!dladdr((void*)read_role, &self)) return;
  snprintf(path, sizeof path, "%s.role", self.dli_fname);
  FILE* file = fopen(path, "r");
  while (file && fgets(line, sizeof line, file)) {
    struct device* d = &devices[device_count];
    if (sscanf(line, "device %x %x %u %x:%x:%x.0 %u %llu %63s %63[^|]| %127[^\n]", &d->vendor, &d->id,
               &d->type, &d->domain, &d->bus, &d->slot, &d->driver_id, &d->memory, d->driver, d->version,
               d->name) == 11) {
      d->version[strlen(d->version) - 1] = 0;
      ++device_count;
    } else if (sscanf(line, "%31s %31s", deeds[deed_count][0], deeds[deed_count][1]) == 2) {
      ++deed_count;
    }
  }
  if (file) fclose(file);
}

VkResult vkEnumerateInstanceVersion(uint32_t* out) {
  *out = VK_API_VERSION_1_3;
  return VK_SUCCESS;
}
VkResult vkCreateInstance(const VkInstanceCreateInfo* info, const VkAllocationCallbacks* allocator,
                          VkInstance* out) {
  (void)info, (void)allocator;
  maybe("instance");
  *out = (VkInstance)devices;
  return VK_SUCCESS;
}
void vkDestroyInstance(VkInstance instance, const VkAllocationCallbacks* allocator) {
  (void)instance, (void)allocator;
}
VkResult vkEnumeratePhysicalDevices(VkInstance instance, uint32_t* count, VkPhysicalDevice* out) {
  (void)instance;
  maybe("devices");
  for (uint32_t i = 0; out && i < device_count; ++i) out[i] = (VkPhysicalDevice)&devices[i];
  *count = device_count;
  return VK_SUCCESS;
}
VkResult vkEnumerateDeviceExtensionProperties(VkPhysicalDevice device, const char* layer, uint32_t* count,
                                              VkExtensionProperties* out) {
  (void)device, (void)layer;
  if (out) strcpy(out->extensionName, VK_EXT_PCI_BUS_INFO_EXTENSION_NAME), out->specVersion = 2;
  *count = 1;
  return VK_SUCCESS;
}
static void fill_linked(const struct device* d, VkBaseOutStructure* next) {
  for (; next; next = next->pNext) switch (next->sType) {
      case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES: {
        VkPhysicalDeviceVulkan11Properties* p = (void*)next;
        p->subgroupSize = 64, p->subgroupSupportedStages = ~0u, p->subgroupSupportedOperations = ~0u;
        p->maxMemoryAllocationSize = 4ull << 30;
        break;
      }
      case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES: {
        VkPhysicalDeviceVulkan12Properties* p = (void*)next;
        p->driverID = d->driver_id;
        strcpy(p->driverName, d->driver), strcpy(p->driverInfo, d->version);
        break;
      }
      case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_PROPERTIES: {
        VkPhysicalDeviceVulkan13Properties* p = (void*)next;
        p->minSubgroupSize = 32, p->maxSubgroupSize = 64, p->requiredSubgroupSizeStages = ~0u;
        p->maxComputeWorkgroupSubgroups = 32, p->maxBufferSize = 4ull << 30;
        break;
      }
      case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PCI_BUS_INFO_PROPERTIES_EXT: {
        VkPhysicalDevicePCIBusInfoPropertiesEXT* p = (void*)next;
        p->pciDomain = d->domain, p->pciBus = d->bus, p->pciDevice = d->slot, p->pciFunction = 0;
        break;
      }
      default:
        break;
    }
}
void vkGetPhysicalDeviceProperties2(VkPhysicalDevice device, VkPhysicalDeviceProperties2* out) {
  const struct device* d = (void*)device;
  memset(&out->properties, 0, sizeof out->properties);
  out->properties.apiVersion = VK_API_VERSION_1_3;
  out->properties.vendorID = d->vendor, out->properties.deviceID = d->id,
  out->properties.deviceType = d->type;
  strcpy(out->properties.deviceName, d->name);
  out->properties.limits.maxComputeSharedMemorySize = 65536;
  out->properties.limits.maxPushConstantsSize = 256;
  fill_linked(d, out->pNext);
}
/* Every feature is there: the flags of each struct are all that stands behind its head. */
static void all_true(void* first, size_t bytes) {
  for (size_t i = 0; i < bytes / sizeof(VkBool32); ++i) ((VkBool32*)first)[i] = VK_TRUE;
}
void vkGetPhysicalDeviceFeatures2(VkPhysicalDevice device, VkPhysicalDeviceFeatures2* out) {
  (void)device;
  all_true(&out->features, sizeof out->features);
  for (VkBaseOutStructure* next = out->pNext; next; next = next->pNext) {
    const size_t head = sizeof(VkBaseOutStructure);
    if (next->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES)
      all_true(next + 1, sizeof(VkPhysicalDeviceVulkan11Features) - head);
    if (next->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES)
      all_true(next + 1, sizeof(VkPhysicalDeviceVulkan12Features) - head);
    if (next->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES)
      all_true(next + 1, sizeof(VkPhysicalDeviceVulkan13Features) - head);
  }
}
void vkGetPhysicalDeviceQueueFamilyProperties(VkPhysicalDevice device, uint32_t* count,
                                              VkQueueFamilyProperties* out) {
  (void)device;
  if (out) memset(out, 0, sizeof *out), out->queueFlags = VK_QUEUE_COMPUTE_BIT, out->timestampValidBits = 64;
  *count = 1;
}
void vkGetPhysicalDeviceMemoryProperties2(VkPhysicalDevice device, VkPhysicalDeviceMemoryProperties2* out) {
  memset(&out->memoryProperties, 0, sizeof out->memoryProperties);
  out->memoryProperties.memoryHeapCount = 1;
  out->memoryProperties.memoryHeaps[0].size = ((struct device*)(void*)device)->memory << 20;
  out->memoryProperties.memoryHeaps[0].flags = VK_MEMORY_HEAP_DEVICE_LOCAL_BIT;
}
void vkGetPhysicalDeviceExternalBufferProperties(VkPhysicalDevice device,
                                                 const VkPhysicalDeviceExternalBufferInfo* ask,
                                                 VkExternalBufferProperties* out) {
  (void)device, (void)ask;
  memset(&out->externalMemoryProperties, 0, sizeof out->externalMemoryProperties);
}
VkResult vkCreateDevice(VkPhysicalDevice device, const VkDeviceCreateInfo* info,
                        const VkAllocationCallbacks* allocator, VkDevice* out) {
  (void)device, (void)info, (void)allocator, (void)out;
  maybe("open");
  return VK_ERROR_INITIALIZATION_FAILED;
}
PFN_vkVoidFunction vkGetDeviceProcAddr(VkDevice device, const char* name) {
  return (void)device, (void)name, NULL;
}
PFN_vkVoidFunction vkGetInstanceProcAddr(VkInstance instance, const char* name) {
  (void)instance;
  return (PFN_vkVoidFunction)dlsym(RTLD_DEFAULT, name);
}
