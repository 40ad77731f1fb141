// Which device has each piece of a model: its embedding, each of its layers with their cache, its output.
#pragma once
#include <vector>

#include "graph/graph.h"

namespace greta {

// One of the devices that a model runs on.
struct ModelDevice {
  Device* device = nullptr;
  DeviceKernels* kernels = nullptr;  // of the device
  RowFilter filter;                  // of the rows that are not refused
  const char* id = "";               // names it in errors: "vulkan0"; it must outlive the model
  uint32_t number = 0;               // which of the caller's devices it is
};

struct Placement {
  std::vector<uint8_t> device;  // indices of Model::devices: of the embedding, of each layer, of the output

  static Placement whole(uint32_t layers) { return {std::vector<uint8_t>(layers + 2, 0)}; }
  uint32_t embedding() const { return device.front(); }
  uint32_t layer(uint32_t index) const { return device[index + 1]; }
  uint32_t output() const { return device.back(); }
};

// Neighbouring pieces on one device. A step runs the segments one after the other.
struct Segment {
  uint32_t device = 0;
  bool embeds = true;                          // begins with the embedding
  uint32_t first_layer = 0, layers_end = ~0u;  // layers first_layer .. layers_end - 1
  bool ends = true;                            // ends with the output
};

std::vector<Segment> segments_of(const Placement& placement);

// Fails unless the placement has all pieces of a model with so many layers, on devices that there are, and
// each of these has a piece.
Status check_placement(const Placement& placement, uint32_t layers, size_t devices);

}  // namespace greta
