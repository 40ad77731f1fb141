// An adapter on the devices of the model that it is for, and lists of adapters with their scales.
#pragma once
#include <atomic>
#include <memory>
#include <unordered_map>

#include "engine/adapter/adapter_file.h"
#include "engine/model/model.h"

namespace greta {

constexpr uint32_t kMaxAdapters = 1024;        // open for one model
constexpr uint32_t kMaxSequenceAdapters = 16;  // of one sequence
constexpr uint32_t kMaxStepAdapters = 64;      // of all sequences of a step

// Which layers a control vector acts on, first_layer .. last_layer. 0: from layer 1 on, and to the end.
struct AdapterOptions {
  uint32_t first_layer = 0, last_layer = 0;
};

// What is added to the products of one of the model's matrices: factor * b (a x).
struct LowRank {
  Tensor a, b;       // a [rank][depth], b [n][rank]; of experts, one for each
  float factor = 1;  // beside that of the whole adapter
};

class Adapter {
 public:
  // Checks the file against the model, and copies its matrices to the model's devices.
  static Status open(const Model& model, AdapterFile&& file, const AdapterOptions& options,
                     std::shared_ptr<Adapter>* out);

  const AdapterFile& file() const { return file_; }
  uint64_t identity() const { return identity_; }  // of the file and the range of layers
  float factor() const { return factor_; }         // of everything that it adds
  uint64_t device_bytes(uint32_t device) const { return bytes_[device]; }
  uint64_t device_bytes() const;

  // What it adds to the products of one of Model::weights(); null if nothing.
  const LowRank* find(const Tensor& weight) const;
  // What it adds to the embeddings: a is [vocabulary][rank], from which tokens choose rows.
  const LowRank* embedding() const { return embedding_.a.n ? &embedding_ : nullptr; }
  // What it adds to the output of a layer: [width][1]; null if nothing.
  const Tensor* direction(uint32_t layer) const {
    return layer < directions_.size() && there(directions_[layer]) ? &directions_[layer] : nullptr;
  }

  // The sessions and requests whose lists it is in.
  uint32_t users() const { return users_.load(); }
  bool closed() const { return closed_.load(); }
  // Its caller needs it no more. Plans that have its matrices go before they run again.
  void close() { closed_.store(true); }

 private:
  friend class AdapterList;
  class Binder;
  AdapterFile file_;
  uint64_t identity_ = 0;
  float factor_ = 1;
  std::unordered_map<const Tensor*, LowRank> products_;
  LowRank embedding_;
  std::vector<Tensor> directions_;  // by layer
  std::vector<std::unique_ptr<Pool>> pools_;
  std::vector<uint64_t> bytes_;  // by device
  mutable std::atomic<uint32_t> users_ = 0;
  std::atomic<bool> closed_ = false;
};

struct AdapterUse {
  std::shared_ptr<const Adapter> adapter;
  float scale = 1;
};

// The adapters of a session or a request. Those of scale 0 are left out, since they change nothing.
class AdapterList {
 public:
  // Null where nothing is left. Fails where one is there twice, or a scale is not finite.
  static Status make(std::span<const AdapterUse> uses, std::shared_ptr<const AdapterList>* out);
  explicit AdapterList(std::vector<AdapterUse> uses);
  ~AdapterList();
  AdapterList(const AdapterList&) = delete;
  AdapterList& operator=(const AdapterList&) = delete;

  std::span<const AdapterUse> uses() const { return uses_; }
  uint64_t identity() const { return identity_; }  // of all adapters and their scales; never 0

 private:
  std::vector<AdapterUse> uses_;
  uint64_t identity_ = 0;
};

inline uint64_t identity_of(const std::shared_ptr<const AdapterList>& list) {
  return list ? list->identity() : 0;
}

// The identity of what a model with these adapters computes; without any, that of the model.
uint64_t identity_with(uint64_t of_model, uint64_t of_adapters);

}  // namespace greta
