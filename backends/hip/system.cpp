#include "backends/hip/system.h"

#include <algorithm>

namespace greta {

bool hip_may_be_there(const DeviceOptions& options) { return read_system_gpus(options.system).has_hip(); }

void hip_describe_hidden(const DeviceOptions& options, DeviceInfo* out) {
  const SystemGpus system = read_system_gpus(options.system);
  const SystemGpu* shown = nullptr;
  for (const SystemGpu& gpu : system.gpus)
    if (!gpu.target.empty() && (!shown || (!is_instinct(shown->target) && is_instinct(gpu.target))))
      shown = &gpu;
  if (!shown) return;
  format_text(out->arch, sizeof out->arch, "%.31s", shown->target.c_str());
  format_text(out->pci, sizeof out->pci, "%.15s", shown->pci.c_str());
}

void hip_pci(const HipProperties& properties, char (&out)[16]) {
  format_text(out, sizeof out, "%04x:%02x:%02x.0", properties.pci_domain & 0xffff, properties.pci_bus & 0xff,
              properties.pci_device & 0xff);
}

uint64_t hip_memory_bytes(const HipProperties& properties, const SystemGpu* gpu) {
  if (!properties.integrated || !gpu) return properties.memory_bytes;
  return std::max({properties.memory_bytes, gpu->memory, gpu->host_memory});
}

uint64_t hip_memory_free(const HipProperties& properties, const SystemGpu* gpu, uint64_t driver_free) {
  if (!properties.integrated || !gpu) return driver_free;
  const uint64_t own = gpu->memory - std::min(gpu->memory, gpu->memory_used);
  const uint64_t lent = gpu->host_memory - std::min(gpu->host_memory, gpu->host_memory_used);
  return std::max({driver_free, own, std::min(lent, memory_available_bytes())});
}

}  // namespace greta
