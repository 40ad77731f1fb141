#include "backends/hip/system.h"

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

}  // namespace greta
