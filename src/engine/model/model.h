// A model: its file's header, sizes, tokenizer and weights. It does not change once it is loaded.
#pragma once
#include <memory>

#include "engine/model/file_audit.h"
#include "engine/model/tensor_store.h"
#include "text/text.h"

namespace greta {

struct Model {
  Gguf gguf;
  std::string name;  // general.name
  const Arch* arch = nullptr;
  Shape shape;
  TensorStore store;
  std::unique_ptr<Tokenizer> tokenizer;
  Device* device = nullptr;
  DeviceKernels* kernels = nullptr;  // of the device
  RowFilter filter;                  // of the rows that are not refused
  Log log;
  std::vector<UnusedPart> unused;  // its names lie in the file's header
  uint64_t identity = 0;  // a checksum of the file's metadata, tensor list and some bytes of each tensor

  const Weights& weights() const { return store.weights(); }
};

// Reads and checks everything but the weights. That is enough for a memory plan.
Status describe_model(Source&& source, DeviceKernels& kernels, bool exact, const Log& log, Model* out);
Status load_model(Model* model, const Progress& progress);

// Excludes kernels that the driver refused from later plans on the device. Returns true if making the plan
// anew may help.
bool drop_refused(Model& model, std::span<const KernelRow* const> kernels);

// The file's name for its mix of tensor types ("Q4_K_M", "F16"), or the type of most weights.
const char* file_type_name(const Gguf& gguf);

}  // namespace greta
