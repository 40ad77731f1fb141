// Reads what a physical device is and can do.
#include "backends/vulkan/physical.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace greta {

namespace {

constexpr uint32_t kAmd = 0x1002, kNvidia = 0x10de;

struct Vendor {
  uint32_t id;
  const char* name;
};
constexpr Vendor kVendors[] = {
    {kAmd, "amd"},        {kNvidia, "nvidia"}, {0x8086, "intel"}, {0x13b5, "arm"},
    {0x5143, "qualcomm"}, {0x106b, "apple"},   {0x1010, "img"},   {0x10005, "mesa"},
};

// The subgroup operations that kernels use.
constexpr VkSubgroupFeatureFlags kSubgroupOperations =
    VK_SUBGROUP_FEATURE_BASIC_BIT | VK_SUBGROUP_FEATURE_VOTE_BIT | VK_SUBGROUP_FEATURE_ARITHMETIC_BIT |
    VK_SUBGROUP_FEATURE_BALLOT_BIT | VK_SUBGROUP_FEATURE_SHUFFLE_BIT;

// Properties that are queried together. Those of an extension are linked only if the device has it.
struct Properties {
  VkPhysicalDeviceProperties2 core;
  VkPhysicalDeviceVulkan11Properties v11;
  VkPhysicalDeviceVulkan12Properties v12;
  VkPhysicalDeviceVulkan13Properties v13;
  VkPhysicalDeviceShaderSMBuiltinsPropertiesNV nvidia;
  VkPhysicalDeviceShaderCorePropertiesAMD amd;
  VkPhysicalDeviceShaderCoreProperties2AMD amd2;
  VkPhysicalDeviceExternalMemoryHostPropertiesEXT host;
  VkPhysicalDevicePCIBusInfoPropertiesEXT pci;
  bool has_pci;
};

class Extensions {
 public:
  Extensions(const VulkanInstance& instance, VkPhysicalDevice device) {
    uint32_t count = 0;
    instance.vkEnumerateDeviceExtensionProperties(device, nullptr, &count, nullptr);
    list_.resize(count);
    instance.vkEnumerateDeviceExtensionProperties(device, nullptr, &count, list_.data());
    list_.resize(count);
  }
  bool has(const char* name) const {
    return std::any_of(list_.begin(), list_.end(),
                       [&](const VkExtensionProperties& e) { return !strcmp(e.extensionName, name); });
  }

 private:
  std::vector<VkExtensionProperties> list_;
};

// A list "a, b, c" for a message.
struct Reasons {
  char text[512] = "";
  void add(const char* reason) {
    const size_t used = strlen(text);
    format_text(text + used, sizeof text - used, "%s%s", used ? ", " : "", reason);
  }
};

void read_properties(const VulkanInstance& instance, VkPhysicalDevice device, const Extensions& extensions,
                     Properties* out) {
  *out = {};
  out->core.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
  out->v11.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES;
  out->v12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES;
  out->v13.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_PROPERTIES;
  out->nvidia.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_SM_BUILTINS_PROPERTIES_NV;
  out->amd.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_CORE_PROPERTIES_AMD;
  out->amd2.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_CORE_PROPERTIES_2_AMD;
  out->host.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_MEMORY_HOST_PROPERTIES_EXT;
  out->pci.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PCI_BUS_INFO_PROPERTIES_EXT;
  out->core.pNext = &out->v11;
  out->v11.pNext = &out->v12;
  out->v12.pNext = &out->v13;
  void** end = &out->v13.pNext;
  const auto link = [&end](void* properties, void** next) { *end = properties, end = next; };
  if (extensions.has(VK_NV_SHADER_SM_BUILTINS_EXTENSION_NAME)) link(&out->nvidia, &out->nvidia.pNext);
  if (extensions.has(VK_AMD_SHADER_CORE_PROPERTIES_EXTENSION_NAME)) link(&out->amd, &out->amd.pNext);
  if (extensions.has(VK_AMD_SHADER_CORE_PROPERTIES_2_EXTENSION_NAME)) link(&out->amd2, &out->amd2.pNext);
  if (extensions.has(VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME)) link(&out->host, &out->host.pNext);
  out->has_pci = extensions.has(VK_EXT_PCI_BUS_INFO_EXTENSION_NAME);
  if (out->has_pci) link(&out->pci, &out->pci.pNext);
  instance.vkGetPhysicalDeviceProperties2(device, &out->core);
}

uint32_t unit_count(const Properties& p, bool cpu_type) {
  if (p.nvidia.shaderSMCount) return p.nvidia.shaderSMCount;
  if (p.amd2.activeComputeUnitCount) return p.amd2.activeComputeUnitCount;
  const uint32_t amd =
      p.amd.shaderEngineCount * p.amd.shaderArraysPerEngineCount * p.amd.computeUnitsPerShaderArray;
  if (amd) return amd;
  return cpu_type ? cpu_count() : 32;  // a middling GPU, since the driver does not tell
}

void describe_identity(const Properties& p, VulkanPhysical* out) {
  const VkPhysicalDeviceProperties& core = p.core.properties;
  DeviceInfo& info = out->info;
  memcpy(out->cache_uuid, core.pipelineCacheUUID, sizeof out->cache_uuid);
  memcpy(out->driver_uuid, p.v11.driverUUID, sizeof out->driver_uuid);
  out->vendor_id = core.vendorID;
  out->device_id = core.deviceID;
  out->driver_version = core.driverVersion;
  char uuid[2 * VK_UUID_SIZE + 1] = "";
  for (uint32_t i = 0; i < VK_UUID_SIZE; ++i) format_text(uuid + 2 * i, 3, "%02x", out->driver_uuid[i]);
  format_text(info.driver, sizeof info.driver, "%.32s %.40s (%08x %s)", p.v12.driverName, p.v12.driverInfo,
              core.driverVersion, uuid);
  char vendor[16];
  format_text(vendor, sizeof vendor, "%x", core.vendorID);
  for (const Vendor& known : kVendors)
    if (known.id == core.vendorID) format_text(vendor, sizeof vendor, "%s", known.name);
  format_text(info.arch, sizeof info.arch, "vulkan:%s:%x", vendor, core.deviceID);
  if (p.has_pci)
    format_text(info.pci, sizeof info.pci, "%04x:%02x:%02x.%x", p.pci.pciDomain, p.pci.pciBus,
                p.pci.pciDevice, p.pci.pciFunction);
  info.runs_ahead = true;
  // RADV is faster than these, and Mesa is alive.
  info.vendor_driver =
      p.v12.driverID == VK_DRIVER_ID_AMD_PROPRIETARY || p.v12.driverID == VK_DRIVER_ID_AMD_OPEN_SOURCE;
  info.unit_count = unit_count(p, info.cpu_type);
  info.shared_bytes = core.limits.maxComputeSharedMemorySize;
  out->limits = core.limits;
}

// Imports are rounded to the driver's alignment. If that is at most a page, memory beside them exists.
void choose_import(const VulkanInstance& instance, const Properties& p, VulkanPhysical* out) {
  const uint64_t alignment = p.host.minImportedHostPointerAlignment;
  if (!alignment || alignment > page_bytes()) return;
  auto ask =
      tagged<VkPhysicalDeviceExternalBufferInfo>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_BUFFER_INFO);
  ask.usage = kBufferUsage;
  ask.handleType = kHostPages;
  auto answer = tagged<VkExternalBufferProperties>(VK_STRUCTURE_TYPE_EXTERNAL_BUFFER_PROPERTIES);
  instance.vkGetPhysicalDeviceExternalBufferProperties(out->handle, &ask, &answer);
  const VkExternalMemoryFeatureFlags can = answer.externalMemoryProperties.externalMemoryFeatures;
  if (can & VK_EXTERNAL_MEMORY_FEATURE_IMPORTABLE_BIT) out->import_alignment = alignment;
}

// Whether the driver reads its clock beside the one of now_ns().
bool has_host_clock(const VulkanInstance& instance, VkPhysicalDevice device) {
  const auto list = reinterpret_cast<PFN_vkGetPhysicalDeviceCalibrateableTimeDomainsEXT>(
      instance.find("vkGetPhysicalDeviceCalibrateableTimeDomainsEXT"));
  uint32_t count = 0;
  if (!list || list(device, &count, nullptr) != VK_SUCCESS) return false;
  std::vector<VkTimeDomainEXT> domains(count);
  if (list(device, &count, domains.data()) != VK_SUCCESS) return false;
  domains.resize(std::min<size_t>(count, domains.size()));
  return std::ranges::count(domains, VK_TIME_DOMAIN_DEVICE_EXT) &&
         std::ranges::count(domains, VK_TIME_DOMAIN_CLOCK_MONOTONIC_EXT);
}

// Prefers a queue with a clock, then one that does not draw, since that does not disturb a desktop.
bool choose_queue(const VulkanInstance& instance, VulkanPhysical* out) {
  uint32_t count = 0;
  instance.vkGetPhysicalDeviceQueueFamilyProperties(out->handle, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  instance.vkGetPhysicalDeviceQueueFamilyProperties(out->handle, &count, families.data());
  int best = -1;
  for (uint32_t i = 0; i < count; ++i) {
    const VkQueueFamilyProperties& family = families[i];
    if (!(family.queueFlags & VK_QUEUE_COMPUTE_BIT)) continue;
    const int score =
        (family.timestampValidBits ? 2 : 0) + (family.queueFlags & VK_QUEUE_GRAPHICS_BIT ? 0 : 1);
    if (score <= best) continue;
    best = score;
    out->queue_family = i;
    out->timestamp_bits = family.timestampValidBits;
  }
  return best >= 0;
}

// Kernels are compiled for one subgroup size: 32 on NVIDIA, 64 on AMD if it can be set, else the driver's.
void choose_lanes(const Properties& p, VulkanPhysical* out, Reasons* missing) {
  out->info.wave_min = p.v13.minSubgroupSize;
  out->info.wave_max = p.v13.maxSubgroupSize;
  out->subgroups_max = p.v13.maxComputeWorkgroupSubgroups;
  out->lanes_settable = p.v13.requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT;
  out->lanes = p.v11.subgroupSize;
  const uint32_t vendor = p.core.properties.vendorID;
  const uint32_t wanted = vendor == kAmd ? 64 : vendor == kNvidia ? 32 : p.v11.subgroupSize;
  if (out->lanes_settable) out->lanes = std::clamp(wanted, out->info.wave_min, out->info.wave_max);
  if (!out->lanes_settable && out->info.wave_min != out->info.wave_max)
    missing->add("subgroups of a size that can be asked for");
  if (out->lanes < 4) missing->add("subgroups of at least 4 lanes");
  if ((p.v11.subgroupSupportedOperations & kSubgroupOperations) != kSubgroupOperations)
    missing->add("subgroup operations basic, vote, arithmetic, ballot, shuffle");
  if (!(p.v11.subgroupSupportedStages & VK_SHADER_STAGE_COMPUTE_BIT))
    missing->add("subgroup operations in compute shaders");
}

bool multiplies_halves(const CooperativeMatrixProperties& p, uint32_t sums) {
  return p.a_type == kComponentFloat16 && p.b_type == kComponentFloat16 && p.c_type == sums &&
         p.result_type == sums && p.scope == kScopeSubgroup && !p.saturating;
}

// Chooses the largest f16 x f16 -> f32 matrix that a subgroup multiplies.
void choose_matrix(const VulkanInstance& instance, VulkanPhysical* out) {
  const auto query = reinterpret_cast<GetCooperativeMatrixProperties>(
      instance.find("vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR"));
  if (!query) return;
  uint32_t count = 0;
  query(out->handle, &count, nullptr);
  std::vector<CooperativeMatrixProperties> list(
      count, tagged<CooperativeMatrixProperties>(kCooperativeMatrixPropertiesType));
  query(out->handle, &count, list.data());
  list.resize(std::min<size_t>(count, list.size()));
  for (const CooperativeMatrixProperties& p : list) {
    uint32_t(&best)[3] = out->matrix;
    if (!multiplies_halves(p, kComponentFloat32)) continue;
    if (uint64_t(p.m) * p.n * p.k <= uint64_t(best[0]) * best[1] * best[2]) continue;
    best[0] = p.m, best[1] = p.n, best[2] = p.k;
  }
  const uint32_t(&best)[3] = out->matrix;
  for (const CooperativeMatrixProperties& p : list)
    if (multiplies_halves(p, kComponentFloat16) && p.m == best[0] && p.n == best[1] && p.k == best[2])
      out->has_half_sums = true;
}

void read_features(const VulkanInstance& instance, const Properties& p, VulkanPhysical* out,
                   Reasons* missing) {
  FeatureChain has(*out);
  instance.vkGetPhysicalDeviceFeatures2(out->handle, &has.core);
#define REQUIRE(member, feature) \
  if (!has.member.feature) missing->add(#feature);
#define WANT(member, feature)
#include "backends/vulkan/features.def"
  if (has.matrix.cooperativeMatrix) choose_matrix(instance, out);
  out->has_statistics &= has.executables.pipelineExecutableInfo == VK_TRUE;
  // On a processor, lavapipe lets a subgroup's barrier wait for the whole group, which may not reach it.
  const bool half_sums = out->has_half_sums && out->matrix[0] == 16 && !out->info.cpu_type;
  // Emulated dot products are slower than kernels without them; on a processor they are used for the tests.
  const bool dot = has.v13.shaderIntegerDotProduct &&
                   (out->info.cpu_type || p.v13.integerDotProduct4x8BitPackedSignedAccelerated);
  // Chains were measured to be right and faster than barriers on NVIDIA's driver; lavapipe serves the tests.
  const VkDriverId driver = p.v12.driverID;
  out->stays_loaded = driver == VK_DRIVER_ID_NVIDIA_PROPRIETARY;
  const bool tried = driver == VK_DRIVER_ID_NVIDIA_PROPRIETARY || driver == VK_DRIVER_ID_MESA_LLVMPIPE;
  // RADV spills 58 registers of such a subgroup on RDNA 3, whose operands take twice the room.
  const bool many = out->matrix[0] > 0 && tried;
  const struct {
    bool has;
    VulkanFeature bit;
  } bits[] = {{dot, kVulkanIntDot},
              {out->matrix[0] > 0, kVulkanCoopMatrix},
              {half_sums, kVulkanCoopMatrixHalf},
              {many, kVulkanCoopMatrixMany},
              {tried, kVulkanChain}};
  for (const auto& [is_there, bit] : bits)
    if (is_there) out->info.features |= bit;
}

void read_memory(const VulkanInstance& instance, const Properties& p, VulkanPhysical* out, Reasons* missing) {
  auto memory =
      tagged<VkPhysicalDeviceMemoryProperties2>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2);
  instance.vkGetPhysicalDeviceMemoryProperties2(out->handle, &memory);
  out->memory = memory.memoryProperties;
  // Where the memory is the host's, all heaps are parts of it, and those that are called local may be the
  // smaller ones. A buffer lies in one of them.
  uint64_t local = 0, all = 0, largest = 0;
  for (uint32_t i = 0; i < out->memory.memoryHeapCount; ++i) {
    const VkMemoryHeap& heap = out->memory.memoryHeaps[i];
    all += heap.size;
    largest = std::max<uint64_t>(largest, heap.size);
    if (heap.flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) local = std::max<uint64_t>(local, heap.size);
  }
  if (!local) missing->add("device-local memory");
  out->info.memory_bytes = out->info.unified_memory ? all : local;
  if (!out->info.cpu_type) out->info.reserve_bytes = reserve_of(out->info.memory_bytes);
  const uint64_t most = std::min({uint64_t(p.v11.maxMemoryAllocationSize), uint64_t(p.v13.maxBufferSize),
                                  out->info.unified_memory ? largest : local});
  out->info.max_allocation_bytes = most / kBufferAlignment * kBufferAlignment;
}

}  // namespace

const char* advice_when_lost(uint32_t vendor_id, const char* release) {
  if (vendor_id != kAmd) return "";
  if (atoi(release) < 7) return "; sudo dmesg | grep amdgpu tells what the kernel saw";
  return "; sudo dmesg | grep amdgpu tells what the kernel saw. Linux 7.0 and newer reset an AMD GPU when "
         "one "
         "piece of work takes 2 s; amdgpu.lockup_timeout=10000 on the kernel's command line allows 10 s";
}

FeatureChain::FeatureChain(const VulkanPhysical& physical)
    : core(tagged<VkPhysicalDeviceFeatures2>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, &v11)),
      v11(tagged<VkPhysicalDeviceVulkan11Features>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES,
                                                   &v12)),
      v12(tagged<VkPhysicalDeviceVulkan12Features>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES,
                                                   &v13)),
      v13(tagged<VkPhysicalDeviceVulkan13Features>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES)),
      matrix(tagged<CooperativeMatrixFeatures>(kCooperativeMatrixFeaturesType)),
      executables(tagged<VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR>(
          VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR)) {
  if (physical.has_matrix) v13.pNext = &matrix;
  if (physical.has_statistics) executables.pNext = std::exchange(v13.pNext, &executables);
}

void enable_features(const VulkanInstance& instance, const VulkanPhysical& physical, FeatureChain* out) {
  FeatureChain has(physical);
  instance.vkGetPhysicalDeviceFeatures2(physical.handle, &has.core);
#define REQUIRE(member, feature) out->member.feature = VK_TRUE;
#define WANT(member, feature) out->member.feature = has.member.feature;
#include "backends/vulkan/features.def"
  out->matrix.cooperativeMatrix = has.matrix.cooperativeMatrix;
  out->executables.pipelineExecutableInfo = has.executables.pipelineExecutableInfo;
}

Status inspect(const VulkanInstance& instance, VkPhysicalDevice handle, uint32_t features_mask,
               VulkanPhysical* out) {
  *out = {};
  out->handle = handle;
  auto basic = tagged<VkPhysicalDeviceProperties2>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2);
  instance.vkGetPhysicalDeviceProperties2(handle, &basic);
  format_text(out->info.name, sizeof out->info.name, "%.127s", basic.properties.deviceName);
  format_text(out->info.backend, sizeof out->info.backend, "vulkan");
  out->info.weight_alignment = 16;  // the widest load of kernels/vulkan
  const VkPhysicalDeviceType type = basic.properties.deviceType;
  out->info.cpu_type = type == VK_PHYSICAL_DEVICE_TYPE_CPU;
  out->info.unified_memory = out->info.cpu_type || type == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU;
  const uint32_t version = basic.properties.apiVersion;
  if (version < VK_API_VERSION_1_3)
    return fail(Code::Unsupported, "its driver has Vulkan %u.%u, 1.3 is needed",
                VK_API_VERSION_MAJOR(version), VK_API_VERSION_MINOR(version));

  const Extensions extensions(instance, handle);
  out->has_matrix = extensions.has(kCooperativeMatrixExtension);
  out->has_budget = extensions.has(VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
  out->has_statistics = extensions.has(VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME);
  out->has_common_clock =
      extensions.has(VK_EXT_CALIBRATED_TIMESTAMPS_EXTENSION_NAME) && has_host_clock(instance, handle);
  out->has_memory_fd = extensions.has(VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME);
  out->has_semaphore_fd = extensions.has(VK_KHR_EXTERNAL_SEMAPHORE_FD_EXTENSION_NAME);
  Properties properties;
  read_properties(instance, handle, extensions, &properties);
  Reasons missing;
  describe_identity(properties, out);
  if (!choose_queue(instance, out)) missing.add("a compute queue");
  choose_lanes(properties, out, &missing);
  read_features(instance, properties, out, &missing);
  read_memory(instance, properties, out, &missing);
  choose_import(instance, properties, out);
  out->info.features &= features_mask;
  if (out->limits.maxPushConstantsSize < kMaxBlockBytes) missing.add("push constants of 128 bytes");
  if (*missing.text) return fail(Code::Unsupported, "its driver lacks %s", missing.text);
  return {};
}

}  // namespace greta
