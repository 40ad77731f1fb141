// The weights of a model: which tensors there are, where each is placed, and their bytes on the device.
//
// describe() needs only the file's header, so a memory plan can be made without loading. Weights are copied
// into the device's memory, and repacked there where the kernels want another layout. If the file may be
// mapped or lies in memory, and the device can use such pages, tensors in GGUF order are read in place; if
// the device then refuses the pages, all its weights are copied. A tensor larger than an arena lies in parts.
// Each tensor is on the device that the placement gives its piece of the model.
#pragma once
#include <deque>
#include <memory>

#include "engine/model/placement.h"
#include "engine/model/stacked_matrices.h"
#include "engine/model/weight_upload.h"

namespace greta {

class TensorStore {
 public:
  using Devices = std::span<const ModelDevice>;

  // Finds and checks every tensor. The slices of `weights()` are empty until load(). It may be called again
  // for another placement before load(). With `in_place` mapped pages are used where they can be.
  Status describe(Gguf& gguf, const Arch& arch, const Shape& shape, Devices devices,
                  const Placement& placement, bool in_place = true);
  Status load(Gguf& gguf, Devices devices, const Progress& progress);

  const Weights& weights() const { return weights_; }
  // The tensors that the model wants, of which the file may lack some. They point into weights().
  const std::vector<NamedTensor>& named() const { return named_; }
  uint64_t device_bytes(uint32_t device) const;  // what load() allocates there
  uint64_t host_bytes() const;  // what it allocates in the host's memory, for devices to read there
  struct PieceBytes {
    std::vector<uint64_t> pieces;   // of each piece of the model, without experts
    std::vector<uint64_t> experts;  // of each layer
  };
  PieceBytes piece_bytes(uint32_t device, bool in_place) const;  // with those that are used in place, or not
  uint64_t mapped_bytes(uint32_t device) const;                  // what is used there in place
  uint64_t device_bytes() const { return on_all(&TensorStore::device_bytes); }
  uint64_t mapped_bytes() const { return on_all(&TensorStore::mapped_bytes); }
  uint64_t head_bytes() const;   // of device_bytes(): what is there for the layer that drafts tokens
  uint64_t file_bytes() const;   // the size of all tensors in use
  uint64_t token_bytes() const;  // what one decoded token reads
  // How many of device_bytes() would not be needed if the file were mapped.
  uint64_t mapping_saves(const Source& source, Devices devices) const;
  uint64_t parameters() const;
  // On a device: the parameters that one token is multiplied with, by the experts in use, and the most of
  // these in one matrix, or in one layer's experts.
  uint64_t token_parameters(uint32_t device) const;
  uint64_t largest_product(uint32_t device) const;

  // The experts of a layer can be loaded while steps run, any number of times, into memory of the caller's on
  // the device that was described for them. That takes expert_room() bytes; 0: these cannot be loaded so.
  uint64_t expert_room(const Source& source, uint32_t layer) const;
  void put_experts(uint32_t layer,
                   const Slice& room);  // says where, before plans are made and before loading
  Status load_experts(const Source& source, uint32_t layer, WeightUpload* upload) const;
  // The bytes of an upload's pieces for all experts on a device; 0: there are none.
  uint64_t expert_piece_bytes(const WeightUpload& upload, uint32_t device) const;

 private:
  struct Placed {  // a tensor in use and where it comes from
    const GgufTensor* source;
    Tensor* tensor;          // in weights_
    uint64_t offset, bytes;  // in the source's data: some of its rows, or all
    bool in_place;           // it is read from mapped pages
    bool routed;             // a token is multiplied with only a few of its matrices
    Held held;               // how the file holds its matrices
    uint64_t stride;         // bytes from one matrix, or piece of one, to the next, unless it is Held::Apart
    uint64_t pieces;         // of a matrix that is Held::Woven, else 1
    uint32_t piece, device;
    bool of_experts;  // of its layer
    bool of_head;     // of the layer that drafts tokens
    bool again;       // another tensor has the same bytes on another device
    bool on_host;     // its memory is the host's, and the device's is another
    float factor;     // of all its values
  };
  Status find(Gguf& gguf, const NamedTensor& named, const RowFilter& filter, uint32_t device);
  Status find_factors(const Gguf& gguf, TensorName name, uint32_t pairs, std::vector<float>* out);
  Status find_positions(const Gguf& gguf, const Arch& arch, const Shape& shape);
  std::unique_ptr<Pool> make_pool(Device& device, uint32_t index, bool on_host) const;
  template <class Amount>
  uint64_t token_share(Amount amount) const;  // the sum over tensors, in which only experts in use count
  struct Mapped {  // pages of the file that the device reads, with some tensors that follow each other
    uint32_t part;
    uint64_t offset, bytes;
    DeviceMemory memory;
  };
  struct OnDevice {
    bool maps = false;          // the device reads mapped pages or the caller's memory
    std::deque<Mapped> mapped;  // a deque, since slices point to its buffers
    std::unique_ptr<Pool> pool, host_pool;
  };
  template <class Visit>
  void each_expert(uint32_t layer, const Visit& visit) const;
  static bool can_stay(const Source& source, const Placed& placed, const DeviceInfo& device);
  uint64_t on_all(uint64_t (TensorStore::*bytes)(uint32_t) const) const;
  Status import_pages(Source& source, Device& device, uint32_t index);
  Slice mapped(const OnDevice& on, uint32_t part, uint64_t offset, uint64_t bytes,
               const DeviceInfo& device) const;
  Status copy_all(const DeviceInfo& device, uint32_t index);
  Status cut_to(uint64_t limit, Tensor* tensor);
  struct Loader {  // of one device
    const DeviceInfo& device;
    WeightUpload upload;
    StackedMatrices stacked;
    Loader(const ModelDevice& to, LoadMeter* meter)
        : device(*to.filter.device), upload(*to.kernels, to.filter, meter), stacked(*to.kernels, to.filter) {}
  };
  Status load_copied(Gguf& gguf, const Placed& placed, Loader* loader);

  Weights weights_;
  std::deque<std::vector<Tensor>> parts_;  // of tensors that one buffer cannot hold
  std::vector<NamedTensor> named_;
  std::vector<Placed> placed_;
  uint32_t experts_used_ = 1;
  std::vector<OnDevice> on_;  // by device
};

}  // namespace greta
