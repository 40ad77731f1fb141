// The weights of a model: which tensors there are, where each is placed, and the bytes on the device.
//
// describe() needs only the file's header, so a memory plan can be made without loading. A device
// that can use mapped pages reads tensors in GGUF order in place; everything else is uploaded, and
// repacked on the device where the kernels want another layout.
#pragma once
#include <memory>

#include "engine/shape.h"

namespace greta {

struct Layer {
  Tensor attention_norm, query, key, value, attention_output, ffn_norm, gate, up, down;
};

struct Weights {
  Tensor token_embedding, output_norm, output;
  bool tied = false;           // output is token_embedding
  std::vector<Layer> layers;
  std::vector<float> rope_factors;  // [rope_width / 2] or empty
};

struct LoadProgress {
  int (*call)(void* user, uint64_t done_bytes, uint64_t total_bytes) = nullptr;  // non-zero cancels
  void* user = nullptr;
};

class TensorStore {
 public:
  // Finds and checks every tensor. The slices of `weights()` are empty until load().
  Status describe(const Gguf& gguf, const Arch& arch, const Shape& shape, const RowFilter& filter);
  Status load(Gguf& gguf, Device& device, const RowFilter& filter, const LoadProgress& progress);

  const Weights& weights() const { return weights_; }
  uint64_t device_bytes() const;             // to allocate
  uint64_t mapped_bytes() const;             // used in place
  uint64_t file_bytes() const;               // of all tensors used
  uint64_t token_bytes() const;              // that one decoded token reads
  uint64_t parameters() const;

 private:
  struct Placed {                            // the placement table: one row for each tensor in use
    const GgufTensor* source;
    Tensor* tensor;                          // in weights_
    bool in_place;                           // mapped pages serve
  };
  Status find(const Gguf& gguf, const char* name, Tensor* out, uint64_t depth, uint64_t n, bool multiplied,
              const RowFilter& filter);
  Status find_layer(const Gguf& gguf, const TensorNames& names, const Shape& shape, uint32_t index,
                    const RowFilter& filter);
  Status load_copied(Gguf& gguf, Device& device, const RowFilter& filter, const Placed& placed);
  Status pack(Device& device, const RowFilter& filter, const Tensor& from, const Tensor& to);

  Weights weights_;
  std::vector<Placed> placed_;
  bool maps_ = false;                        // the device reads mapped pages
  std::vector<std::unique_ptr<DeviceMemory>> mapped_;  // one for each part of the file
  std::unique_ptr<Pool> pool_;
};

}  // namespace greta
