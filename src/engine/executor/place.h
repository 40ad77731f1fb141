// Chooses which device has each piece of a model.
#pragma once
#include <functional>

#include "engine/executor/executor.h"

namespace greta {

// Places the model on those of the devices that have a piece. Indices of `wanted` are those of `devices`.
Status place_on(std::span<const ModelDevice> devices, const Placement& wanted, Model* model);

// Everything on the first device that has room for it, or else the first pieces there, in the order of a
// step, as many as fit, then those that fit on the next device, and the rest on the last one. Where that is
// the processor, experts of the last layers go there before whole layers do. `free_bytes`
// are those of the devices; options are those of the executor for which there must be room.
Status place_by_memory(std::span<const ModelDevice> devices, const ExecutorOptions& options,
                       Executor::FreeBytes free_bytes, Model* model);

// What a model takes that is on one device.
struct PieceSizes {
  bool fits = false;              // all of it; the rest is not known then
  std::vector<uint64_t> pieces;   // without experts
  std::vector<uint64_t> experts;  // of each layer
  uint64_t beside = 0;            // what is there beside pieces
  uint64_t crossing = 0;          // what a part of the model needs more
  uint64_t brought = 0;  // what a part without some experts needs more, to bring them for long prompts
  uint64_t apart = 0;    // what the output needs more where the embedding is on another device
};
// Places pieces on the devices one after the other, as many as fit, and the rest on one behind them, which
// also has the experts of all layers from `experts_end` on. `out` has the model's layers. Returns true if
// nothing but such experts is on the last device.
bool fill_devices(std::span<const PieceSizes> sizes, Executor::FreeBytes free_bytes, uint32_t experts_end,
                  Placement* out);

// Moves tensors: `device_of` gives the device for a tensor's name, or -1 where it stays. The matrices of a
// piece go together, and so do those of a layer's experts. Fails where some of them would be parted.
Status move_tensors(const Model& model, const std::function<int(const char* name)>& device_of,
                    Placement* placement);

// llama.cpp's: the last `count` of the layers and the output go to the first devices, by shares, and what
// comes before to the last device, the processor. The embedding is where the first layer is.
struct Offload {
  uint32_t count = 0;
  std::vector<double> shares;  // of the devices; the last one has none if the processor is meant
  uint32_t rest = 0;           // the device of what is not offloaded
};
Placement offload(uint32_t layers, const Offload& wanted);

}  // namespace greta
