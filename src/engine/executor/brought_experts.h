// The weights of experts that lie on another device than their layer, brought to the layer's device for one
// step. They are read from the model's file as they were when the model was loaded, since each device wants a
// layout of its own: the host copies pieces of the file into pinned memory, and the device copies and packs
// them. There is room for two layers, so that the weights of one arrive while the step computes with the
// other.
#pragma once
#include "engine/model/model.h"

namespace greta {

// Of one device, and used from one thread at a time.
class BroughtExperts {
 public:
  // What is allocated for it; 0: no layer's experts can be brought to this device.
  static uint64_t bytes(const Model& model, uint32_t device);
  static WeightUpload upload_to(const ModelDevice& device);

  BroughtExperts(Model& model, uint32_t device);
  ~BroughtExperts();
  BroughtExperts(const BroughtExperts&) = delete;
  BroughtExperts& operator=(const BroughtExperts&) = delete;
  // Allocates, and tells model.together where the weights of each layer will be.
  Status open();

  // Begins to load a layer's experts, unless they are there. It first waits, on `stream`, for the steps that
  // still read what was in their place.
  Status begin(uint32_t layer, Stream& stream);
  Status finish(uint32_t layer);                    // waits until they are there
  Status note_use(uint32_t layer, Stream& stream);  // what was recorded on the stream reads them
  void forget();                                    // what is there, so that it is loaded again

 private:
  static constexpr uint32_t kRooms = 2;
  // Large ones, since between two pieces the readers wait for each other.
  static constexpr uint64_t kPieceBytes = 16 << 20;
  struct Room {
    DeviceMemory memory;
    Event read;               // the last launch that reads it
    bool is_read = false;     // it was signalled, and nobody has waited for it
    uint32_t has = kNoLayer;  // the layer whose weights are there, or on their way
  };
  Room& room_of(uint32_t layer) { return rooms_[room_of_layer_[layer]]; }

  Model& model_;
  const uint32_t device_;
  std::vector<uint8_t> room_of_layer_;
  Room rooms_[kRooms];
  bool loading_ = false;
  WeightUpload upload_;  // declared last, since its streams are destroyed before what they write
};

// The model's weights with those of experts that are brought (model.together), where they are read.
Weights with_brought(const Model& model);
std::vector<bool> brought_layers(const Model& model);

}  // namespace greta
