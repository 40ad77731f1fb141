#include "engine/model/model.h"

#include <algorithm>

#include "graph/graph.h"
#include "text/text.h"

namespace greta {

// Compiles the kernels that pack weights. If the driver refuses one, its type stays in the file's order,
// since no plainer kernel can pack it. This must be known before memory is planned.
static Status try_packing(Model& m) {
  for (bool complete = false; !complete;) {
    KernelSet kernels(*m.kernels);
    for (const GgufTensor& tensor : m.gguf.tensors())
      if (const KernelRow* row = packing_row(tensor.type, preferred_layout(tensor.type, m.filter), m.filter))
        kernels.want(*row, {});
    const Status compiled = kernels.compile();
    complete = compiled.ok();
    if (!complete && !drop_refused(m, kernels.refused())) return compiled;
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
  m.device = &kernels.device();
  m.kernels = &kernels;
  m.filter = {&m.device->info(), exact, &kernels.refused()};
  m.log = log;
  GRETA_TRY(m.gguf.open(std::move(source)));
  GRETA_TRY(file_arch(m.gguf, &m.arch));
  std::string_view title;
  GRETA_TRY(m.gguf.get_string("general.name", &title));
  m.name = title;
  KeysRead keys;
  GRETA_TRY(read_shape(m.gguf, *m.arch, &m.shape, &keys));
  if (!exact) GRETA_TRY(kernels.try_matrices(log));
  GRETA_TRY(try_packing(m));
  GRETA_TRY(m.store.describe(m.gguf, *m.arch, m.shape, m.filter));
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

Status load_model(Model* model, const Progress& progress) {
  GRETA_TRY(model->store.load(model->gguf, *model->kernels, model->filter, progress));
  return identify(model->gguf, &model->identity);
}

bool drop_refused(Model& model, std::span<const KernelRow* const> kernels) {
  for (const KernelRow* row : kernels) model.kernels->refused().add(*row);
  if (!kernels.empty())
    model.log(LogLevel::Warning, "%zu kernel%s not used: %s", kernels.size(),
              kernels.size() > 1 ? "s are" : " is", error_text());
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
