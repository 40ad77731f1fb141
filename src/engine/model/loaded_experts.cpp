// The experts' weights of single layers, which are loaded while steps run.
#include <algorithm>

#include "engine/model/tensor_store.h"
#include "engine/model/weight_parts.h"

namespace greta {

template <class Visit>
void TensorStore::each_expert(uint32_t layer, const Visit& visit) const {
  for (const Placed& placed : placed_)
    if (placed.of_experts && placed.piece == layer + 1) visit(placed);
}

uint64_t TensorStore::expert_room(const Source& source, uint32_t layer) const {
  uint64_t bytes = 0;
  bool whole = source.maps();  // else the file may have changed
  each_expert(layer, [&](const Placed& placed) {
    whole &= placed.held == Held::Apart && placed.factor == 1 && !placed.tensor->parts;
    bytes += padded_bytes(*placed.tensor);
  });
  return whole ? bytes : 0;
}

void TensorStore::put_experts(uint32_t layer, const Slice& room) {
  uint64_t at = room.offset;
  each_expert(layer, [&](const Placed& placed) {
    placed.tensor->slice = {room.buffer, at, bytes_of(*placed.tensor)};
    at += padded_bytes(*placed.tensor);
  });
}

Status TensorStore::load_experts(const Source& source, uint32_t layer, WeightUpload* upload) const {
  Status status;
  each_expert(layer, [&](const Placed& placed) {
    const GgufTensor& from = *placed.source;
    if (status.ok()) status = upload->add(source, from.part, from.offset + placed.offset, *placed.tensor);
  });
  return status;
}

uint64_t TensorStore::expert_piece_bytes(const WeightUpload& upload, uint32_t device) const {
  uint64_t most = 0;
  for (const Placed& placed : placed_)
    if (placed.of_experts && placed.device == device)
      most = std::max(most, upload.piece_bytes(*placed.tensor));
  return most;
}

}  // namespace greta
