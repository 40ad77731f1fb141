#include "engine/model/placement.h"

#include <algorithm>

namespace greta {

bool Placement::has(uint32_t wanted) const {
  return std::ranges::count(device, uint8_t(wanted)) || std::ranges::count(experts, uint8_t(wanted));
}

std::vector<Segment> segments_of(const Placement& placement, const std::vector<bool>& brings) {
  const uint32_t layers = placement.layers();
  std::vector<Segment> segments = {{placement.embedding(), Crossing::None, 0, 0, Crossing::None}};
  const auto go_to = [&](uint32_t device, Crossing with, uint32_t layer) {
    if (device == segments.back().device) return;
    segments.back().leaves = with;
    segments.push_back({device, with, layer, layer, Crossing::None});
  };
  for (uint32_t l = 0; l < layers; ++l) {
    go_to(placement.layer(l), Crossing::Residual, l);
    const bool brought = !brings.empty() && brings[l];
    if (brought && segments.back().brings != kNoLayer) {
      segments.back().leaves = Crossing::Stays;
      segments.push_back({placement.layer(l), Crossing::Stays, l, l, Crossing::None});
    }
    if (brought) segments.back().brings = l;
    segments.back().layers_end = l + 1;
    go_to(brought ? placement.layer(l) : placement.experts_of(l), Crossing::Chosen, l);
    segments.back().layers_end = l + 1;
    go_to(placement.layer(l), Crossing::Results, l);
    segments.back().layers_end = l + 1;
  }
  go_to(placement.output(), Crossing::Residual, layers);
  return segments;
}

Status check_placement(const Placement& placement, uint32_t layers, size_t devices) {
  if (placement.device.size() != size_t(layers) + 2)
    return fail(Code::Argument,
                "a placement of %zu pieces, but the model has an embedding, %u layers and an output",
                placement.device.size(), layers);
  if (!placement.experts.empty() && placement.experts.size() != layers)
    return fail(Code::Argument, "a placement of the experts of %zu layers, but the model has %u",
                placement.experts.size(), layers);
  for (const std::vector<uint8_t>* each : {&placement.device, &placement.experts})
    for (const uint8_t device : *each)
      if (device >= devices)
        return fail(Code::Argument, "a placement on device %u, but there are %zu", device, devices);
  for (uint32_t d = 0; d < devices; ++d)
    if (!placement.has(d))
      return fail(Code::Argument, "a placement without device %u, which has nothing to do", d);
  return {};
}

}  // namespace greta
