// A model: its file's header, sizes, tokenizer and weights. It does not change once it is loaded.
#pragma once
#include <memory>

#include "engine/model/file_audit.h"
#include "engine/model/spans.h"
#include "engine/model/tensor_store.h"
#include "text/text.h"

namespace greta {

constexpr uint32_t kNeverBring = ~0u;

struct Model {
  Gguf gguf;
  std::string name;  // general.name
  const Arch* arch = nullptr;
  Shape shape;
  TensorStore store;
  TensorStore
      together;  // as if experts were with their layers, of those that are apart: for loading them there
  std::unique_ptr<Tokenizer> tokenizer;
  std::vector<ModelDevice> devices;  // on which it has pieces
  Placement placement;
  // Steps of so many tokens and more bring experts that are apart to their layers' devices. 0: an executor
  // measures where that is faster; kNeverBring: no step does.
  uint32_t bring_from = 0;
  bool exact = false;  // only plain kernels
  Log log;
  Spans spans;
  std::vector<UnusedPart> unused;  // its names lie in the file's header
  uint64_t identity = 0;  // a checksum of the file's metadata, tensor list and some bytes of each tensor

  Device& first_device() const { return *devices[0].device; }
  const Weights& weights() const { return store.weights(); }
  // Whether the experts of a layer, which are apart, can be brought to the layer's device for a step.
  bool can_bring(uint32_t layer) const {
    return placement.experts_of(layer) != placement.layer(layer) &&
           together.expert_room(gguf.source(), layer) > 0;
  }
};

// Reads and checks everything but the weights. That is enough for a memory plan. The model is on one device.
Status describe_model(Source&& source, DeviceKernels& kernels, bool exact, const Log& log, Model* out);
// Leaves out places of experts that a layer does not have.
Placement without_needless(Placement placement, const Shape& shape);
// Gives a model that is not loaded yet another placement, on these devices, of which the filters are not
// read.
Status place_model(std::span<const ModelDevice> devices, const Placement& placement, Model* model);
// Makes a model that is not loaded yet use the layer of its file that drafts tokens, which is loaded with it.
// It lies with the output, and has a copy of the embedding there if that is on another device.
Status use_head(Model* model);
Status load_model(Model* model, const Progress& progress);

// Excludes kernels that the driver refused from later plans on the device. Returns true if making the plan
// anew may help.
bool drop_refused(const ModelDevice& device, std::span<const KernelRow* const> kernels, const Log& log);

// Puts the device's name before the text of a failure, where there are several.
Status on_device(const Model& model, uint32_t device, Status status);

// The file's name for its mix of tensor types ("Q4_K_M", "F16"), or the type of most weights.
const char* file_type_name(const Gguf& gguf);

}  // namespace greta
