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
  std::vector<uint8_t> experts = {};  // of the experts of each layer; empty: all are where their layer is

  static Placement whole(uint32_t layers) { return {std::vector<uint8_t>(layers + 2, 0), {}}; }
  uint32_t layers() const { return uint32_t(device.size()) - 2; }
  uint32_t embedding() const { return device.front(); }
  uint32_t layer(uint32_t index) const { return device[index + 1]; }
  uint32_t experts_of(uint32_t index) const { return experts.empty() ? layer(index) : experts[index]; }
  uint32_t output() const { return device.back(); }
  bool has(uint32_t wanted) const;  // whether a piece is there, or the experts of a layer
};

// What goes from a segment to the next one.
enum class Crossing : uint8_t {
  None,      // the first segment begins with the tokens, and the last one ends with the outputs
  Residual,  // [tokens][width]: what layers read, in a place of its own on both devices
  Chosen,    // what a layer's experts read, [tokens][width], which of them do, and with which weights
  Results,   // [tokens][width]: what these experts make
  Stays,     // nothing: the next segment is on the same device, where the residual is in its place
};

constexpr uint32_t kNoLayer = ~0u;

// Neighbouring pieces on one device. A step runs the segments one after the other. Where the experts of a
// layer are apart, the layer lies in three segments: up to its experts, these alone, and what is behind them.
struct Segment {
  uint32_t device = 0;
  Crossing arrives = Crossing::None;
  uint32_t first_layer = 0, layers_end = ~0u;  // layers first_layer .. layers_end - 1
  Crossing leaves = Crossing::None;
  uint32_t brings = kNoLayer;  // the layer whose experts are brought to the device before it runs

  bool embeds() const { return arrives == Crossing::None; }
  bool ends() const { return leaves == Crossing::None; }
  bool has_experts_alone() const { return arrives == Crossing::Chosen; }
  // Whether the residual has a place of its own: it crosses, or stays on the device while experts run on
  // another one or come.
  bool keeps_residual() const {
    const auto keeps = [](Crossing c) { return c == Crossing::Residual || c == Crossing::Stays; };
    return arrives == Crossing::Results || leaves == Crossing::Chosen || keeps(arrives) || keeps(leaves);
  }
};

// With `brings`, by layer, the experts of these layers are brought to their layer's device for the step. Then
// no segment has more than one such layer, so that the next one's can be brought meanwhile.
std::vector<Segment> segments_of(const Placement& placement, const std::vector<bool>& brings = {});

// Fails unless the placement has all pieces of a model with so many layers, on devices that there are, and
// each of these has a piece.
Status check_placement(const Placement& placement, uint32_t layers, size_t devices);

}  // namespace greta
