#include "engine/model/placement.h"

#include <algorithm>

namespace greta {

std::vector<Segment> segments_of(const Placement& placement) {
  const uint32_t layers = uint32_t(placement.device.size()) - 2;
  std::vector<Segment> segments = {{placement.embedding(), true, 0, 0, false}};
  for (uint32_t piece = 1; piece < placement.device.size(); ++piece) {
    if (placement.device[piece] != segments.back().device) {
      const uint32_t at = segments.back().layers_end;
      segments.push_back({placement.device[piece], false, at, at, false});
    }
    segments.back().layers_end = std::min(piece, layers);
  }
  segments.back().ends = true;
  return segments;
}

Status check_placement(const Placement& placement, uint32_t layers, size_t devices) {
  if (placement.device.size() != size_t(layers) + 2)
    return fail(Code::Argument,
                "a placement of %zu pieces, but the model has an embedding, %u layers and an output",
                placement.device.size(), layers);
  for (const uint8_t device : placement.device)
    if (device >= devices)
      return fail(Code::Argument, "a placement on device %u, but there are %zu", device, devices);
  for (size_t d = 0; d < devices; ++d)
    if (!std::ranges::count(placement.device, uint8_t(d)))
      return fail(Code::Argument, "a placement without device %zu, which has nothing to do", d);
  return {};
}

}  // namespace greta
