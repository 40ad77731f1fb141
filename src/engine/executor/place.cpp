#include "engine/executor/place.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string>

#include "engine/executor/memory.h"

namespace greta {

Status place_on(std::span<const ModelDevice> devices, const Placement& given, Model* model) {
  const uint32_t layers = model->shape.layers;
  if (given.device.size() != layers + 2 || (!given.experts.empty() && given.experts.size() != layers))
    return check_placement(given, layers, devices.size());
  const Placement wanted = without_needless(given, model->shape);
  std::vector<ModelDevice> used;
  std::vector<uint8_t> index(devices.size());
  for (size_t d = 0; d < devices.size(); ++d) {
    if (!wanted.has(uint32_t(d))) continue;
    index[d] = uint8_t(used.size());
    used.push_back(devices[d]);
  }
  Placement placement = wanted;
  for (std::vector<uint8_t>* each : {&placement.device, &placement.experts})
    for (uint8_t& device : *each) {
      if (device >= devices.size())
        return fail(Code::Argument, "a placement on device %u, but there are %zu", device, devices.size());
      device = index[device];
    }
  return place_model(used, placement, model);
}

namespace {

// What BroughtExperts take there for a model that is whole on one device, if its experts were apart.
uint64_t brought_bytes(const Model& model, const std::vector<uint64_t>& experts, uint32_t step_tokens) {
  if (model.bring_from == kNeverBring || (model.exact && !model.bring_from) || !model.shape.experts.count)
    return 0;
  const WeightUpload upload = BroughtExperts::upload_to(model.devices[0]);
  return 2 * std::ranges::max(experts) + WeightUpload::ring_bytes(model.store.expert_piece_bytes(upload, 0)) +
         pass_bytes(model.shape, step_tokens);
}

Status measure(const ExecutorOptions& options, uint64_t free_bytes, const Model& model, PieceSizes* out) {
  const uint64_t weights = model.store.device_bytes(), beside = free_bytes - std::min(free_bytes, weights);
  const Shape& s = model.shape;
  ExecutorOptions planned = options;
  ExecutorPlan plan;
  GRETA_TRY(Executor::plan(model, &planned, beside, &plan));
  out->fits = weights + plan.total() <= free_bytes;
  if (out->fits || s.stays_whole()) return {};
  planned = options;
  GRETA_TRY(Executor::plan(model, &planned, ~uint64_t(0), &plan));  // with a default context that is whole
  const TensorStore::PieceBytes bytes = model.store.piece_bytes(0, false);
  out->pieces = bytes.pieces;
  out->experts = bytes.experts;
  for (uint32_t l = 0; l < s.cached_layers(); ++l) out->pieces[l + 1] += plan.layer_bytes[l];
  const auto sum = [](const std::vector<uint64_t>& of) {
    return std::accumulate(of.begin(), of.end(), uint64_t(0));
  };
  out->beside = weights + plan.total() - sum(out->pieces) - sum(out->experts);
  uint64_t page = kPageTokens * sizeof(uint32_t);
  for (const CacheGroup& group : plan.groups.all()) page += group.page_bytes;
  const uint64_t values = uint64_t(plan.step_tokens) * crossing_values(s, Crossing::Chosen);
  out->crossing = 2 * (s.experts.count ? std::max(page, values * sizeof(float)) : page);
  out->crossing += residual_bytes(s, plan.step_tokens) +
                   residuals_crossing_bytes(model.first_device().info(), s, plan.step_tokens);
  out->brought = brought_bytes(model, bytes.experts, plan.step_tokens);
  out->apart = (model.weights().tied ? bytes.pieces[0] : 0) + (s.heads ? bytes.pieces[0] : 0);
  return {};
}

// A model in part on a slower device is slower, so people are told.
void tell_of_split(const ModelDevice& first, const Model& model) {
  if (model.devices.size() == 1 && model.devices[0].device == first.device) return;
  std::string places;
  for (uint32_t d = 0; d < model.devices.size(); ++d) {
    uint32_t layers = 0, experts = 0;
    for (uint32_t l = 0; l < model.shape.layers; ++l) {
      const bool here = model.placement.layer(l) == d;
      layers += here;
      experts += !here && model.placement.experts_of(l) == d;
    }
    const std::string on = std::string(" on ") + model.devices[d].id;
    if (layers || !experts) places += (places.empty() ? "" : ", ") + std::to_string(layers) + on;
    if (experts) places += (places.empty() ? "" : ", ") + ("the experts of " + std::to_string(experts)) + on;
  }
  model.log(LogLevel::Warning, "the model does not fit on %s: of its %u layers %s", first.id,
            model.shape.layers, places.c_str());
}

}  // namespace

bool fill_devices(std::span<const PieceSizes> sizes, Executor::FreeBytes free_bytes, uint32_t experts_end,
                  Placement* out) {
  const uint8_t last = uint8_t(sizes.size());
  const uint32_t layers = out->layers();
  out->device.assign(layers + 2, last);
  out->experts.assign(layers, last);
  uint32_t piece = 0;
  for (uint8_t d = 0; d < last; ++d) {
    const PieceSizes& size = sizes[d];
    if (!size.fits && size.pieces.empty()) continue;
    const uint64_t brought = experts_end < layers ? size.brought : 0;
    for (uint64_t used = size.beside + size.crossing + brought; piece < layers + 2; ++piece) {
      const bool is_layer = piece > 0 && piece <= layers;
      const bool experts = is_layer && piece - 1 < experts_end;
      const bool apart = piece == layers + 1 && out->device[0] != d;
      if (!size.fits)
        used += size.pieces[piece] + (experts ? size.experts[piece - 1] : 0) + (apart ? size.apart : 0);
      if (!size.fits && used > free_bytes[d]) break;
      out->device[piece] = d;
      if (experts) out->experts[piece - 1] = d;
    }
  }
  return piece == layers + 2;
}

// Experts go to the last device first where that is the processor: few of their weights are read for a token.
Status place_by_memory(std::span<const ModelDevice> devices, const ExecutorOptions& options,
                       Executor::FreeBytes free_bytes, Model* model) {
  const Placement whole = Placement::whole(model->shape.layers);
  const uint32_t layers = model->shape.layers;
  std::vector<PieceSizes> sizes(devices.size() - 1);
  for (size_t d = 0; d < sizes.size(); ++d) {
    GRETA_TRY(place_model(devices.subspan(d, 1), whole, model));
    GRETA_TRY(measure(options, free_bytes[d], *model, &sizes[d]));
    if (sizes[d].fits) break;
  }
  Placement wanted = whole;
  const bool experts_go = model->shape.experts.count && devices.back().device->info().cpu_type;
  bool placed = fill_devices(sizes, free_bytes, layers, &wanted);
  for (uint32_t end = layers; experts_go && !placed && end-- > 0;)
    placed = fill_devices(sizes, free_bytes, end, &wanted);
  GRETA_TRY(place_on(devices, wanted, model));
  tell_of_split(devices[0], *model);
  return {};
}

namespace {

// What a rule can move: the matrices of a piece of the model, or of a layer's experts.
struct Unit {
  const NamedTensor* first = nullptr;  // which says where it goes
  int device = -1;                     // -1: stays
};

const char* unit_name(const NamedTensor& tensor) {
  return tensor.of_experts ? "the experts of a layer are" : "a layer but for its experts is";
}

}  // namespace

Status move_tensors(const Model& model, const std::function<int(const char* name)>& device_of,
                    Placement* placement) {
  Weights weights;
  std::map<std::pair<uint32_t, bool>, Unit> units;
  const std::vector<NamedTensor> tensors = model_tensors(model.gguf, *model.arch, model.shape, &weights);
  for (const NamedTensor& tensor : tensors) {
    if (tensor.of_head || !model.gguf.find_tensor(tensor.name.c_str())) continue;  // it goes with the output
    const int device = device_of(tensor.name.c_str());
    if (tensor.wanted.use == Use::Vector) continue;  // it goes where the matrices are
    Unit& unit = units[{tensor.piece, tensor.of_experts}];
    if (!unit.first) {
      unit = {&tensor, device};
    } else if (unit.device != device) {
      const bool names = device != -1;
      const std::string& named = names ? tensor.name : unit.first->name;
      const std::string& other = names ? unit.first->name : tensor.name;
      return fail(Code::Unsupported, "%s would move, and not %s, or each to another device: %s on one device",
                  named.c_str(), other.c_str(), unit_name(tensor));
    }
  }
  const uint32_t layers = model.shape.layers;
  if (placement->experts.empty())
    for (uint32_t l = 0; l < layers; ++l) placement->experts.push_back(uint8_t(placement->layer(l)));
  for (const auto& [key, unit] : units)
    if (unit.device >= 0)
      (key.second ? placement->experts[key.first - 1] : placement->device[key.first]) = uint8_t(unit.device);
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
