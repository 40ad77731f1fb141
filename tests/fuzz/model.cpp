// Any bytes as a model: what it would not use, its shape, its vocabulary and its memory plan, its weights and
// a few steps. It must not crash, and it must not allocate what the file does not have. Changes keep most of
// a file right (gguf_changes.h), so that they reach the sizes.
//
// Input: a GGUF file. The corpus is that of models in tests/golden/architectures.
#include "engine/engine.h"
#include "engine/model/file_audit.h"
#include "gguf_changes.h"
#include "runtime/runtime.h"

using namespace greta;

namespace {

constexpr uint64_t kMostBytes = 64 << 20;
constexpr uint32_t kMostLayers = 64;  // deeper models only take longer

DeviceKernels& cpu() {
  static Device& device = *[] {
    Device* opened = nullptr;
    DeviceOptions options;
    options.threads = 1;
    if (!open_device("cpu", options, &opened).ok()) __builtin_trap();
    return opened;
  }();
  static DeviceKernels& kernels = *new DeviceKernels(device);
  return kernels;
}

void step(Model& model) {
  ExecutorOptions options;
  options.context = 32;
  options.sequences = 1;
  ExecutorPlan plan;
  if (!Executor::plan(model, &options, kMostBytes, &plan).ok() || plan.total() > kMostBytes) return;
  if (model.shape.layers > kMostLayers || !load_model(&model, {}).ok()) return;
  std::unique_ptr<Executor> made;
  if (!Executor::open(model, options, kMostBytes, &made).ok()) return;
  const std::shared_ptr<Executor> executor = std::move(made);
  std::unique_ptr<Session> session;
  if (!Session::open(executor, &session).ok()) return;
  const int32_t tokens[] = {0, int32_t(model.shape.vocab - 1), int32_t(model.shape.vocab / 2)};
  const float* logits = nullptr;
  if (!session->eval(tokens, OutputRows::Last, &logits).ok()) return;
  GenerateOptions generate;
  generate.max_tokens = 2;
  GenerateResult result;
  (void)!session->generate({tokens, 1}, generate, &result).ok();
}

void audit(const uint8_t* data, size_t size) {
  Source source;
  Gguf gguf;
  std::vector<UnusedPart> parts;
  if (!source.open_memory(data, size).ok() || !gguf.open(std::move(source)).ok()) return;
  if (!audit_file(gguf, &parts).ok()) return;
  for (const UnusedPart& part : parts)
    if (part.name.empty()) __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Source source;
  Model model;
  if (size) audit(data, size);
  if (size == 0 || !source.open_memory(data, size).ok()) return 0;
  if (!describe_model(std::move(source), cpu(), size % 2, Log{}, &model).ok()) return 0;
  step(model);
  return 0;
}

extern "C" __attribute__((weak)) size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t most);

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed) {
  fuzz::Random random(seed);
  fuzz::GgufParts file;
  if (random() % 8 == 0 || !file.take(data, size)) return LLVMFuzzerMutate(data, size, most);
  for (uint32_t changes = 1 + random() % 3; changes; --changes) {
    const uint32_t kind = random() % 8;
    if (kind < 4)
      fuzz::change_value(&file, random);
    else if (kind < 7)
      fuzz::change_tensor(&file, random);
    else
      fuzz::change_weights(&file, random);
  }
  const std::string changed = file.file();
  if (changed.size() > most) return LLVMFuzzerMutate(data, size, most);
  memcpy(data, changed.data(), changed.size());
  return changed.size();
}
