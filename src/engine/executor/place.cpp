#include "engine/executor/place.h"

#include <algorithm>
#include <numeric>
#include <string>

namespace greta {

Status place_on(std::span<const ModelDevice> devices, const Placement& wanted, Model* model) {
  std::vector<ModelDevice> used;
  std::vector<uint8_t> index(devices.size());
  for (size_t d = 0; d < devices.size(); ++d) {
    if (!std::ranges::count(wanted.device, uint8_t(d))) continue;
    index[d] = uint8_t(used.size());
    used.push_back(devices[d]);
  }
  Placement placement = wanted;
  for (uint8_t& device : placement.device) {
    if (device >= devices.size())
      return fail(Code::Argument, "a placement on device %u, but there are %zu", device, devices.size());
    device = index[device];
  }
  return place_model(used, placement, model);
}

namespace {

// What a model takes that is on one device.
struct Sizes {
  std::vector<uint64_t> pieces;
  uint64_t beside = 0;    // what is there beside pieces
  uint64_t crossing = 0;  // what a part of the model needs more
};

Status measure(const ExecutorOptions& options, uint64_t free_bytes, const Model& model, Sizes* out,
               bool* fits) {
  const uint64_t weights = model.store.device_bytes(), beside = free_bytes - std::min(free_bytes, weights);
  ExecutorOptions planned = options;
  ExecutorPlan plan;
  GRETA_TRY(Executor::plan(model, &planned, beside, &plan));
  *fits = weights + plan.total() <= free_bytes;
  if (*fits) return {};
  planned = options;
  GRETA_TRY(Executor::plan(model, &planned, ~uint64_t(0), &plan));  // with a default context that is whole
  out->pieces = model.store.piece_bytes();
  for (uint32_t l = 0; l < model.shape.layers; ++l) out->pieces[l + 1] += plan.layer_bytes[l];
  out->beside = weights + plan.total() - std::accumulate(out->pieces.begin(), out->pieces.end(), uint64_t(0));
  uint64_t page = kPageTokens * sizeof(uint32_t);
  for (const CacheGroup& group : plan.groups.all()) page += group.page_bytes;
  out->crossing = 2 * std::max(page, uint64_t(plan.step_tokens) * model.shape.width * sizeof(float));
  return {};
}

// A model in part on a slower device is slower, so people are told.
void tell_of_split(const ModelDevice& first, const Model& model) {
  if (model.devices.size() == 1 && model.devices[0].device == first.device) return;
  std::string places;
  for (uint32_t d = 0; d < model.devices.size(); ++d) {
    uint32_t layers = 0;
    for (uint32_t l = 0; l < model.shape.layers; ++l) layers += model.placement.layer(l) == d;
    places += (d ? ", " : "") + std::to_string(layers) + " on " + model.devices[d].id;
  }
  model.log(LogLevel::Warning, "the model does not fit on %s: of its %u layers %s", first.id,
            model.shape.layers, places.c_str());
}

}  // namespace

Status place_by_memory(std::span<const ModelDevice> devices, const ExecutorOptions& options,
                       Executor::FreeBytes free_bytes, Model* model) {
  const Placement whole = Placement::whole(model->shape.layers);
  Placement wanted = whole;
  const size_t count = wanted.device.size();
  size_t first = 0;  // the piece that is placed next
  for (size_t d = 0; d < devices.size() && first < count; ++d) {
    if (d + 1 == devices.size()) {
      std::fill(wanted.device.begin() + ptrdiff_t(first), wanted.device.end(), uint8_t(d));
      break;
    }
    Sizes sizes;
    bool fits = false;
    GRETA_TRY(place_model(devices.subspan(d, 1), whole, model));
    GRETA_TRY(measure(options, free_bytes[d], *model, &sizes, &fits));
    if (fits && first == 0) return tell_of_split(devices[0], *model), Status{};
    if (!fits && model->shape.stays_whole()) continue;
    for (uint64_t used = sizes.beside + sizes.crossing; !fits && first < count; ++first) {
      used += sizes.pieces[first];
      if (used > free_bytes[d]) break;
      wanted.device[first] = uint8_t(d);
    }
    if (fits) {  // so do the pieces that are left
      std::fill(wanted.device.begin() + ptrdiff_t(first), wanted.device.end(), uint8_t(d));
      break;
    }
  }
  GRETA_TRY(place_on(devices, wanted, model));
  tell_of_split(devices[0], *model);
  return {};
}

Placement offload(uint32_t layers, const Offload& wanted) {
  Placement p = Placement::whole(layers);
  const uint32_t places = layers + 1, count = std::min(wanted.count, places), first = places - count;
  const double sum = std::accumulate(wanted.shares.begin(), wanted.shares.end(), 0.0);
  for (uint32_t place = 0; place < places; ++place) {
    uint8_t& device = p.device[place + 1];
    device = uint8_t(wanted.rest);
    if (place < first) continue;
    const double at = double(place - first) / count;
    double share = 0;
    for (device = 0; device + 1u < wanted.shares.size(); ++device)
      if ((share += wanted.shares[device] / sum) > at) break;
  }
  p.device[0] = p.device[1];
  return p;
}

}  // namespace greta
