#include "engine/model/model.h"

#include <algorithm>
#include <set>

#include "graph/graph.h"
#include "text/text.h"

namespace greta {

// Compiles the kernels that pack weights. If the driver refuses one, its type stays in the file's order,
// since no plainer kernel can pack it.
static Status try_packing(const Gguf& gguf, const ModelDevice& on, const Log& log) {
  for (bool complete = false; !complete;) {
    KernelSet kernels(*on.kernels);
    for (const GgufTensor& tensor : gguf.tensors())
      if (const KernelRow* row =
              packing_row(tensor.type, preferred_layout(tensor.type, on.filter), on.filter))
        kernels.want(*row, {});
    const Status compiled = kernels.compile();
    complete = compiled.ok();
    if (!complete && !drop_refused(on, kernels.refused(), log)) return compiled;
  }
  return {};
}

// Logs the parts that are not used. Only some unknown keys are named, since a file may have very many.
static void log_unused(std::span<const UnusedPart> parts, const Log& log) {
  constexpr uint32_t kMostWarnings = 16;
  uint32_t unknown = 0;
  for (const UnusedPart& part : parts) {
    const bool warn = part.verdict == UnusedPart::Verdict::Unknown;
    if (warn && ++unknown > kMostWarnings) continue;
    log(warn ? LogLevel::Warning : LogLevel::Info, "%s %s is not used: %s", part.tensor ? "tensor" : "key",
        Quoted(part.name).c_str(), part.reason);
  }
  if (unknown > kMostWarnings)
    log(LogLevel::Warning, "%u more keys are not used: this version does not know them",
        unknown - kMostWarnings);
}

Status describe_model(Source&& source, DeviceKernels& kernels, bool exact, const Log& log, Model* out) {
  Model& m = *out;
  m.exact = exact;
  m.log = log;
  GRETA_TRY(m.gguf.open(std::move(source)));
  GRETA_TRY(file_arch(m.gguf, &m.arch));
  std::string_view title;
  GRETA_TRY(m.gguf.get_string("general.name", &title));
  m.name = title;
  KeysRead keys;
  GRETA_TRY(read_shape(m.gguf, *m.arch, &m.shape, &keys));
  const ModelDevice device{&kernels.device(), &kernels, {}, ""};
  GRETA_TRY(place_model({&device, 1}, Placement::whole(m.shape.layers), &m));
  GRETA_TRY(refuse_gaps(m.gguf, *m.arch, m.shape));
  m.unused = unused_parts(m.gguf, *m.arch, m.shape, keys);
  GRETA_TRY(refuse_unused(m.gguf, *m.arch, m.unused));
  log_unused(m.unused, log);
  m.tokenizer = std::make_unique<Tokenizer>();
  GRETA_TRY(m.tokenizer->open(m.gguf, log));
  if (m.tokenizer->size() > m.shape.vocab)
    return fail(Code::File, "%s: a vocabulary of %u tokens, but %s has %u rows", m.gguf.name(),
                m.tokenizer->size(), m.arch->tensors.token_embedding.text, m.shape.vocab);
  return {};
}

// Computes what distinguishes two files, without reading them whole. It includes some weights, since
// fine-tunes of one model often differ only there.
static Status identify(const Gguf& gguf, uint64_t* out) {
  Checksum sum;
  for (const GgufValue& value : gguf.values()) {
    sum.add(value.key.data(), value.key.size());
    sum.add(value.data, value.bytes);
  }
  for (const GgufTensor& tensor : gguf.tensors()) {
    uint8_t sample[64];
    const uint64_t bytes = std::min<uint64_t>(tensor.bytes, sizeof sample);
    GRETA_TRY(gguf.source().read_at(tensor.part, tensor.offset + (tensor.bytes - bytes) / 2, sample, bytes));
    sum.add(tensor.name.data(), tensor.name.size());
    sum.add(&tensor.type, sizeof tensor.type);
    sum.add(tensor.ne, sizeof tensor.ne);
    sum.add(sample, bytes);
  }
  *out = sum.value();
  return {};
}

Placement without_needless(Placement placement, const Shape& shape) {
  bool apart = false;
  for (uint32_t l = 0; l < placement.experts.size(); ++l) {
    if (!shape.each[l].experts) placement.experts[l] = uint8_t(placement.layer(l));
    apart |= placement.experts_of(l) != placement.layer(l);
  }
  if (!apart) placement.experts.clear();
  return placement;
}

Status place_model(std::span<const ModelDevice> devices, const Placement& wanted, Model* model) {
  Model& m = *model;
  GRETA_TRY(check_placement(wanted, m.shape.layers, devices.size()));
  const Placement placement = without_needless(wanted, m.shape);
  GRETA_TRY(check_placement(placement, m.shape.layers, devices.size()));
  if (devices.size() > 1 && m.shape.stays_whole())
    return fail(
        Code::Unsupported,
        "layers of this model share caches or embeddings, so it cannot be split over %zu devices: give "
        "it one of them",
        devices.size());
  m.devices.assign(devices.begin(), devices.end());
  m.placement = placement;
  for (uint32_t d = 0; d < devices.size(); ++d) {
    ModelDevice& on = m.devices[d];
    on.filter = {&on.device->info(), m.exact, &on.kernels->refused(), &on.kernels->tuned()};
  }
  m.together = {};
  if (!placement.experts.empty()) {
    // A type for which the layers' device has no kernels is no fault: these experts stay where they are.
    const Status described =
        m.together.describe(m.gguf, *m.arch, m.shape, m.devices, {placement.device, {}}, false);
    if (!described.ok()) m.together = {}, clear_error_text();
  }
  return m.store.describe(m.gguf, *m.arch, m.shape, m.devices, placement);
}

Status use_head(Model* model) {
  Model& m = *model;
  Shape& s = m.shape;
  if (!s.draft_layers)
    return fail(Code::Unsupported, "%s: it has no layer that drafts tokens (%s.nextn_predict_layers)",
                m.gguf.name(), m.arch->name);
  if (!m.arch->drafts || !s.attending().attends())
    return fail(Code::Unsupported, "%s: the layers of a %s that draft tokens cannot be used", m.gguf.name(),
                m.arch->name);
  const auto last = std::ranges::find_if(s.each.rbegin(), s.each.rend(), &LayerShape::attends);
  LayerShape head = *last;
  // Where a layer has one block alone, this one has two: attention, and the block of the last one with
  // experts.
  const auto ffn = std::ranges::find_if(s.each.rbegin(), s.each.rend(), &LayerShape::has_ffn);
  if (ffn != s.each.rend()) head.experts = ffn->experts, head.ffn_width = ffn->ffn_width;
  s.each.push_back(head);
  s.heads = 1;
  GRETA_TRY(place_model(std::vector(m.devices), Placement(m.placement), &m));
  Weights weights;
  std::set<std::string, std::less<>> used;
  for (const NamedTensor& each : model_tensors(m.gguf, *m.arch, s, &weights)) used.insert(each.name);
  std::erase_if(m.unused, [&](const UnusedPart& part) { return part.tensor && used.contains(part.name); });
  return {};
}

Status on_device(const Model& model, uint32_t device, Status status) {
  return model.devices.size() > 1 ? within(status, "device %s", model.devices[device].id) : status;
}

// Multiplies matrices and compiles what packs the model's weights, unless that is known of its devices.
// Without kernels that a driver refuses, or that multiply wrong, the model is placed there anew.
static Status try_kernels(Model* model) {
  Model& m = *model;
  bool refused = false;
  for (uint32_t d = 0; d < m.devices.size(); ++d) {
    const ModelDevice& on = m.devices[d];
    if (!m.exact) GRETA_TRY(on_device(m, d, on.kernels->try_matrices(m.log)));
    GRETA_TRY(on_device(m, d, try_packing(m.gguf, on, m.log)));
    refused |= on.kernels->refused().any();
  }
  return refused ? place_model(std::vector(m.devices), Placement(m.placement), model) : Status{};
}

Status load_model(Model* model, const Progress& progress) {
  GRETA_TRY(try_kernels(model));
  GRETA_TRY(model->store.load(model->gguf, model->devices, progress));
  return identify(model->gguf, &model->identity);
}

bool drop_refused(const ModelDevice& device, std::span<const KernelRow* const> kernels, const Log& log) {
  for (const KernelRow* row : kernels) device.kernels->refused().add(*row);
  if (!kernels.empty())
    log(LogLevel::Warning, "%zu kernel%s not used: %s", kernels.size(), kernels.size() > 1 ? "s are" : " is",
        error_text());
  return !kernels.empty();
}

static const char* most_weights(const Gguf& gguf) {
  uint64_t count[uint32_t(QuantType::count)] = {};
  for (const GgufTensor& tensor : gguf.tensors()) count[uint32_t(tensor.type)] += tensor.bytes;
  uint32_t best = 0;
  for (uint32_t i = 1; i < uint32_t(QuantType::count); ++i)
    if (count[i] > count[best]) best = i;
  return quant_info(QuantType(best)).name;
}

const char* file_type_name(const Gguf& gguf) {
  uint32_t id = ~0u;
  if (!gguf.get_u32("general.file_type", &id).ok()) return most_weights(gguf);
  switch (id) {
#define FILE_TYPE(number, name) \
  case number:                  \
    return #name;
#include "engine/model/file_types.def"
#undef FILE_TYPE
    default:
      return most_weights(gguf);
  }
}

}  // namespace greta
