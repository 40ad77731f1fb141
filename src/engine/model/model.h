// A model: its file's header, sizes, tokenizer and weights. Immutable once loaded, shared by executors.
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
  RowFilter filter;
  std::unique_ptr<RefusedKernels> refused = std::make_unique<RefusedKernels>();  // in `filter`
  Log log;
  std::vector<UnusedPart> unused;  // names are the file's
  uint64_t identity = 0;           // of the loaded file: metadata, tensor list, some bytes of each tensor

  const Weights& weights() const { return store.weights(); }
};

// Reads and checks all but the weights; they are loaded by load_model, or never for a memory plan.
Status describe_model(Source&& source, Device& device, bool exact, const Log& log, Model* out);

// After a plan could not be compiled: whether that was for kernels that the driver refuses, and a plan made
// anew does without them.
bool drop_refused(Model& model, std::span<const KernelRow* const> kernels);
Status load_model(Model* model, const Progress& progress);

// What the file calls its mix of types: "Q4_K_M", "F16", or the type of most weights.
const char* file_type_name(const Gguf& gguf);

}  // namespace greta
