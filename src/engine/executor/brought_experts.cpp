#include "engine/executor/brought_experts.h"

#include <algorithm>

namespace greta {

std::vector<bool> brought_layers(const Model& model) {
  std::vector<bool> brought;
  for (uint32_t l = 0; l < model.shape.layers; ++l) brought.push_back(model.can_bring(l));
  return brought;
}

Weights with_brought(const Model& model) {
  Weights weights = model.weights();
  for (uint32_t l = 0; l < model.shape.layers; ++l) {
    if (!model.can_bring(l)) continue;
    const Layer& from = model.together.weights().layers[l];
    Layer& to = weights.layers[l];
    for (const auto matrix : {&Layer::expert_gate, &Layer::expert_up, &Layer::expert_down})
      to.*matrix = from.*matrix;
    for (const auto bias : {&Layer::expert_gate_bias, &Layer::expert_up_bias, &Layer::expert_down_bias})
      to.*bias = from.*bias;
  }
  return weights;
}

static uint64_t room_bytes(const Model& model, uint32_t device) {
  uint64_t most = 0;
  for (uint32_t l = 0; l < model.shape.layers; ++l)
    if (model.placement.layer(l) == device && model.can_bring(l))
      most = std::max(most, model.together.expert_room(model.gguf.source(), l));
  return most;
}

WeightUpload BroughtExperts::upload_to(const ModelDevice& device) {
  return {*device.kernels, device.filter, nullptr, kPieceBytes};
}

uint64_t BroughtExperts::bytes(const Model& model, uint32_t device) {
  const uint64_t room = room_bytes(model, device);
  const WeightUpload upload = upload_to(model.devices[device]);
  return room ? kRooms * room + WeightUpload::ring_bytes(model.together.expert_piece_bytes(upload, device))
              : 0;
}

BroughtExperts::BroughtExperts(Model& model, uint32_t device)
    : model_(model),
      device_(device),
      room_of_layer_(model.shape.layers),
      upload_(upload_to(model.devices[device])) {}

BroughtExperts::~BroughtExperts() {
  (void)upload_.finish();
  for (Room& room : rooms_) model_.devices[device_].device->destroy(room.read);
}

Status BroughtExperts::open() {
  Device& device = *model_.devices[device_].device;
  const uint64_t bytes = room_bytes(model_, device_);
  for (Room& room : rooms_) {
    GRETA_TRY(room.memory.allocate(device, bytes, Memory::Device));
    GRETA_TRY(device.create_event(&room.read, false));
  }
  uint8_t next = 0;
  for (uint32_t l = 0; l < model_.shape.layers; ++l) {
    if (model_.placement.layer(l) != device_ || !model_.can_bring(l)) continue;
    room_of_layer_[l] = next;
    next = uint8_t((next + 1) % kRooms);
    model_.together.put_experts(l, room_of(l).memory.all());
  }
  return upload_.open(model_.together.expert_piece_bytes(upload_, device_));
}

Status BroughtExperts::begin(uint32_t layer, Stream& stream) {
  Room& room = room_of(layer);
  if (room.has == layer) return {};
  if (room.is_read) GRETA_TRY(stream.wait(room.read));
  room.is_read = false;
  GRETA_TRY(upload_.finish());  // what a step that failed has left
  room.has = kNoLayer;
  loading_ = true;
  GRETA_TRY(model_.together.load_experts(model_.gguf.source(), layer, &upload_));
  room.has = layer;
  return {};
}

Status BroughtExperts::finish(uint32_t layer) {
  if (!loading_) return {};
  const Status status = upload_.finish();
  loading_ = !status.ok();
  if (!status.ok()) room_of(layer).has = kNoLayer;
  return status;
}

Status BroughtExperts::note_use(uint32_t layer, Stream& stream) {
  Room& room = room_of(layer);
  GRETA_TRY(stream.signal(room.read));
  room.is_read = true;
  return {};
}

void BroughtExperts::forget() {
  for (Room& room : rooms_) room.has = kNoLayer;
}

}  // namespace greta
