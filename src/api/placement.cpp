// The functions of greta.h for models on several devices.
#include <algorithm>
#include <cmath>

#include "api/handles.h"

using namespace greta;

RuntimeDevice& greta_runtime::of(const Model& model, size_t index) {
  return devices[model.devices[index].number];
}

std::vector<uint64_t> greta_runtime::free_bytes(const Model& model) {
  std::vector<uint64_t> free;
  for (size_t d = 0; d < model.devices.size(); ++d) free.push_back(of(model, d).free_bytes());
  return free;
}

namespace {

std::vector<ModelDevice> model_devices(greta_runtime& runtime) {
  std::vector<ModelDevice> devices;
  for (RuntimeDevice& each : runtime.devices)
    devices.push_back({each.device.get(), each.kernels.get(), {}, each.id, uint32_t(devices.size())});
  return devices;
}

bool leaves_it_to_memory(const greta_placement& given) {
  return enum_number(given.kind) == GRETA_PLACEMENT_AUTO && !given.host_experts && !given.device_of;
}

Status place_by_memory_of(greta_runtime& runtime, std::span<const ModelDevice> devices,
                          const ExecutorOptions& executor, Model* out) {
  std::vector<uint64_t> free;
  for (const ModelDevice& each : devices) free.push_back(runtime.devices[each.number].free_bytes());
  return devices.size() == 1 ? place_on(devices, Placement::whole(out->shape.layers), out)
                             : place_by_memory(devices, executor, free, out);
}

Status place_list(const greta_placement& given, uint32_t layers, size_t devices, Placement* out) {
  GRETA_TRY(need(given.devices, "devices"));
  if (given.device_count != layers + 2)
    return fail(Code::Argument,
                "a placement of %u pieces, but the model has %u: an embedding, %u layers and an output",
                given.device_count, layers + 2, layers);
  *out = Placement::whole(layers);
  for (uint32_t i = 0; i < given.device_count; ++i) {
    if (given.devices[i] >= devices)
      return fail(Code::Argument, "piece %u is placed on device %u, but the runtime has %zu", i,
                  given.devices[i], devices);
    out->device[i] = uint8_t(given.devices[i]);
  }
  return {};
}

// The processor among the devices of the runtime; as many as there are, if it is not among them.
uint32_t find_processor(const greta_runtime& runtime) {
  const Backend* host = processor();
  uint32_t d = 0;
  while (d < runtime.devices.size() && !(host && !strcmp(runtime.devices[d].id, host->name))) ++d;
  return d;
}

// What is not offloaded is for the processor, which has no share.
Status place_offloaded(const greta_placement& given, uint32_t layers, greta_runtime& runtime,
                       Placement* out) {
  const uint32_t host = find_processor(runtime);
  Offload wanted{given.offloaded, {}, host < runtime.devices.size() ? host : ~0u};
  std::vector<uint32_t> others;
  for (uint32_t d = 0; d < runtime.devices.size(); ++d)
    if (d != host) others.push_back(d);
  if (given.share_count) GRETA_TRY(need(given.shares, "shares"));
  if (given.share_count > std::max<size_t>(1, others.size()))
    return fail(Code::Argument, "%u shares, but %zu devices beside the processor", given.share_count,
                others.size());
  if (others.empty()) return *out = Placement::whole(layers), Status{};
  double sum = 0;
  for (uint32_t i = 0; i < others.size(); ++i) {
    const double share = !given.share_count      ? double(runtime.devices[others[i]].free_bytes())
                         : i < given.share_count ? given.shares[i]
                                                 : 0;
    if (!(share >= 0) || std::isinf(share))
      return fail(Code::Argument, "share %u is %g, expected a number of 0 or more", i, share);
    wanted.shares.push_back(share);
    sum += share;
  }
  if (!(sum > 0)) return fail(Code::Argument, "all shares are 0: no device would have a layer");
  if (wanted.count <= layers && wanted.rest == ~0u)
    return fail(Code::Argument,
                "%u of %u layers and the output are offloaded, and no processor is among the devices for the "
                "rest: open it, too (\"%s,cpu\")",
                wanted.count, layers + 1, runtime.first().id);
  *out = offload(layers, wanted);
  // Shares count devices without the processor.
  for (uint32_t place = 0; place <= layers; ++place)
    if (place + wanted.count > layers) out->device[place + 1] = uint8_t(others[out->device[place + 1]]);
  out->device[0] = out->device[1];
  return {};
}

Status move_apart(const greta_placement& given, const Model& model, const greta_runtime& runtime,
                  Placement* placement) {
  const uint32_t layers = model.shape.layers, host = find_processor(runtime);
  if (given.host_experts && host == runtime.devices.size())
    return fail(Code::Argument,
                "experts are to be on the processor, which is not among the devices: open it, "
                "too (\"%s,cpu\")",
                runtime.devices[0].id);
  for (uint32_t l = 0; l < layers; ++l)
    placement->experts.push_back(uint8_t(l < given.host_experts ? host : placement->layer(l)));
  if (!given.device_of) return {};
  int wrong = -1;
  const auto device_of = [&](const char* name) {
    const int device = call_back("device_of", [&] { return given.device_of(given.device_of_user, name); });
    if (device < -1 || device >= int(runtime.devices.size())) wrong = device;
    return device < 0 ? -1 : device;
  };
  const Status moved = move_tensors(model, device_of, placement);
  if (wrong != -1)
    return fail(Code::Argument, "device_of gave device %d, but the runtime has %zu", wrong,
                runtime.devices.size());
  return moved;
}

// "layers 0-3, layer 5", of those that are `here`
template <class Here>
void write_layers(const char* one, const char* several, uint32_t layers, const Here& here,
                  std::string* text) {
  for (uint32_t first = 0, end = 0; first < layers; first = end + 1) {
    for (end = first; end < layers && here(end);) ++end;
    if (end == first) continue;
    if (!text->empty()) *text += ", ";
    *text += (end == first + 1 ? one : several) + std::to_string(first);
    if (end > first + 1) *text += "-" + std::to_string(end - 1);
  }
}

// "embedding, layers 0-11, output, draft head, experts of layers 12-15"
void write_pieces(const Model& model, uint32_t device, char (&out)[128]) {
  const Placement& placement = model.placement;
  std::string text;
  const uint32_t layers = placement.layers();
  if (placement.embedding() == device) text = "embedding";
  write_layers("layer ", "layers ", layers, [&](uint32_t l) { return placement.layer(l) == device; }, &text);
  if (placement.output() == device) {
    text += text.empty() ? "output" : ", output";
    if (model.shape.heads) text += ", draft head";
  }
  const auto experts_alone = [&](uint32_t l) {
    return placement.experts_of(l) == device && placement.layer(l) != device;
  };
  write_layers("experts of layer ", "experts of layers ", layers, experts_alone, &text);
  format_text(out, sizeof out, "%s", text.c_str());
}

}  // namespace

Status greta::describe_placed(greta_runtime& runtime, Source&& source, const greta_placement* given,
                              const ExecutorOptions& executor, const Log& log, Model* out) {
  greta_placement wanted;
  GRETA_TRY(read_options(given, &wanted));
  GRETA_TRY(check_reserved(wanted.reserved));
  std::vector<ModelDevice> devices = model_devices(runtime);
  const bool by_memory = leaves_it_to_memory(wanted);
  if (by_memory && !std::ranges::all_of(runtime.devices, &RuntimeDevice::left_out))
    std::erase_if(devices, [&](const ModelDevice& each) { return runtime.devices[each.number].left_out; });
  GRETA_TRY(describe_model(std::move(source), *devices[0].kernels, runtime.exact, log, out));
  if (executor.draft_head) GRETA_TRY(use_head(out));
  out->bring_from = wanted.bring_experts_from;
  Placement placement = Placement::whole(out->shape.layers);
  const bool apart = wanted.host_experts || wanted.device_of;
  if (by_memory) return place_by_memory_of(runtime, devices, executor, out);
  int kind = enum_number(wanted.kind);
  if (kind == GRETA_PLACEMENT_AUTO) {
    kind = GRETA_PLACEMENT_OFFLOAD;
    wanted.offloaded = UINT32_MAX;
  }
  switch (kind) {
    case GRETA_PLACEMENT_OFFLOAD:
      GRETA_TRY(place_offloaded(wanted, out->shape.layers, runtime, &placement));
      break;
    case GRETA_PLACEMENT_LIST:
      GRETA_TRY(place_list(wanted, out->shape.layers, devices.size(), &placement));
      break;
    default:
      return fail(Code::Argument, "kind is %d, which is not one of greta_placement_kind", kind);
  }
  if (apart) GRETA_TRY(move_apart(wanted, *out, runtime, &placement));
  return place_on(devices, placement, out);
}

bool greta::placed_by_memory(const greta_placement* given) {
  greta_placement wanted;
  return read_options(given, &wanted).ok() && leaves_it_to_memory(wanted);
}

bool greta::leave_out_lost(greta_runtime& runtime) {
  bool any = false;
  for (RuntimeDevice& each : runtime.devices) {
    if (each.left_out || prove_memory(*each.device).ok()) continue;
    any = each.left_out = true;
    runtime.log(LogLevel::Warning, "device %s was lost, and is left out: %s", each.id, error_text());
  }
  return any && !std::ranges::all_of(runtime.devices, &RuntimeDevice::left_out);
}

greta_status greta_placement_plan(greta_runtime* runtime, const greta_file* file,
                                  const greta_executor_options* given, const greta_placement* placement,
                                  int (*on_device)(void* user, const greta_device_plan* plan), void* user) {
  return fenced([&]() -> Status {
    GRETA_TRY(need_device(runtime));
    GRETA_TRY(need(file, "file"));
    if (!on_device) return fail(Code::Argument, "on_device is NULL");
    ExecutorOptions options;
    GRETA_TRY(read_executor_options(given, &options));
    Source source;
    GRETA_TRY(file->source.open(&source));
    Model model;
    GRETA_TRY(describe_placed(*runtime, std::move(source), placement, options, Log{}, &model));
    const std::vector<uint64_t> free = runtime->free_bytes(model);
    ExecutorPlan executor;
    GRETA_TRY(Executor::plan(model, &options, beside_weights(model, free), &executor));
    for (uint32_t d = 0; d < free.size(); ++d) {
      greta_device_plan plan = {};
      plan.struct_size = sizeof plan;
      plan.device = model.devices[d].number;
      plan.context = executor.context;
      format_text(plan.id, sizeof plan.id, "%s", model.devices[d].id);
      write_pieces(model, d, plan.pieces);
      TensorStore::PieceBytes bytes = model.store.piece_bytes(d, true);
      for (uint32_t l = 0; l < model.shape.cached_layers(); ++l)
        if (model.placement.layer(l) == d) bytes.pieces[l + 1] += executor.layer_bytes[l];
      plan.piece_bytes = bytes.pieces.data();
      plan.expert_bytes = bytes.experts.data();
      plan.layers = model.shape.layers;
      plan.weights_bytes = model.store.device_bytes(d);
      plan.mapped_bytes = model.store.mapped_bytes(d);
      plan.cache_bytes = executor.on[d].cache;
      plan.arena_bytes = executor.on[d].arena;
      plan.tables_bytes = executor.on[d].tables;
      plan.total_bytes = plan.weights_bytes + executor.on[d].total();
      plan.free_bytes = free[d];
      plan.fits = plan.total_bytes <= plan.free_bytes;
      if (call_back("on_device", [&] { return on_device(user, &plan); }))
        return fail(Code::Cancelled, "the callback stopped the plan at %s", plan.id);
    }
    return {};
  });
}
