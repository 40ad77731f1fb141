// The weights of a model: which tensors there are, where each is placed, and the bytes on the device.
//
// describe() needs only the file's header, so a memory plan can be made without loading. Weights are copied
// into memory of the device, and repacked there where the kernels want another layout. Where a file may be
// mapped, or is memory, and the device can use such pages, it reads tensors in GGUF order in place; where it
// then refuses pages, all is copied. A tensor larger than an arena may be lies in parts.
#pragma once
#include <deque>
#include <memory>

#include "engine/model/stacked_matrices.h"
#include "engine/model/weight_upload.h"

namespace greta {

class TensorStore {
 public:
  // Finds and checks every tensor. The slices of `weights()` are empty until load().
  Status describe(Gguf& gguf, const Arch& arch, const Shape& shape, const RowFilter& filter);
  Status load(Gguf& gguf, Device& device, const RowFilter& filter, const Progress& progress);

  const Weights& weights() const { return weights_; }
  uint64_t device_bytes() const;  // to allocate
  uint64_t mapped_bytes() const;  // used in place
  uint64_t mapping_saves(const Source& source,
                         const DeviceInfo& device) const;  // of device_bytes(), if a file were mapped
  uint64_t file_bytes() const;                             // of all tensors used
  uint64_t token_bytes() const;                            // that one decoded token reads
  uint64_t parameters() const;
  uint64_t token_parameters() const;  // that one token is multiplied with: of the experts, those used
  uint64_t largest_product()
      const;  // of them, those of the largest matrix, or matrices of experts, of a layer

 private:
  struct Placed {  // the placement table: one row for each tensor in use
    const GgufTensor* source;
    Tensor* tensor;          // in weights_
    uint64_t offset, bytes;  // in the tensor's data: a part of its rows, or all
    bool in_place;           // mapped pages serve
    bool routed;             // of its matrices a token is multiplied with few
    Held held;               // how the file has its matrices,
    uint64_t stride;         // and where they are not apart, bytes from one to the next
  };
  Status find(Gguf& gguf, const char* name, const WantedTensor& wanted, const RowFilter& filter);
  Status find_factors(const Gguf& gguf, TensorName name, uint32_t pairs, std::vector<float>* out);
  template <class Amount>
  uint64_t token_share(Amount amount) const;  // sum over tensors, of experts only those used
  struct Mapped {  // pages of the file that the device reads: some tensors that follow each other
    uint32_t part;
    uint64_t offset, bytes;
    DeviceMemory memory;
  };
  static bool can_stay(const Source& source, const Placed& placed, const DeviceInfo& device);
  Status import_pages(Source& source, Device& device);
  Slice mapped(uint32_t part, uint64_t offset, uint64_t bytes, const DeviceInfo& device) const;
  Status copy_all(const DeviceInfo& device);
  Status cut_to(uint64_t limit, Tensor* tensor);
  Status load_copied(Gguf& gguf, const Placed& placed, const DeviceInfo& device, WeightUpload* upload,
                     StackedMatrices* stacked);

  Weights weights_;
  std::deque<std::vector<Tensor>> parts_;  // of tensors that one buffer cannot hold
  std::vector<Placed> placed_;
  uint32_t experts_used_ = 1;
  bool maps_ = false;          // the device reads mapped pages, or the caller's memory
  std::deque<Mapped> mapped_;  // buffers stay where they are: slices point to them
  std::unique_ptr<Pool> pool_;
};

}  // namespace greta
