// Chooses which device has each piece of a model.
#pragma once
#include "engine/executor/executor.h"

namespace greta {

// Places the model on those of the devices that have a piece. Indices of `wanted` are those of `devices`.
Status place_on(std::span<const ModelDevice> devices, const Placement& wanted, Model* model);

// Everything on the first device that has room for it, or else the first pieces there, in the order of a
// step, as many as fit, then those that fit on the next device, and the rest on the last one. `free_bytes`
// are those of the devices; options are those of the executor for which there must be room.
Status place_by_memory(std::span<const ModelDevice> devices, const ExecutorOptions& options,
                       Executor::FreeBytes free_bytes, Model* model);

// llama.cpp's: the last `count` of the layers and the output go to the first devices, by shares, and what
// comes before to the last device, the processor. The embedding is where the first layer is.
struct Offload {
  uint32_t count = 0;
  std::vector<double> shares;  // of the devices; the last one has none if the processor is meant
  uint32_t rest = 0;           // the device of what is not offloaded
};
Placement offload(uint32_t layers, const Offload& wanted);

}  // namespace greta
