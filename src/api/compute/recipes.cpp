#include "api/compute/recipes.h"

#include "api/compute/objects.h"

namespace greta {

namespace {

// Where an operand stands in the buffer that stands for all of them; none is longer.
constexpr uint64_t kOperandBytes = uint64_t(1) << 40;
// What lies behind the counts of live rows of each product, and before the numbered rows.
constexpr uint64_t kLiveBytes = 256, kAllLiveBytes = kMaxStepTokens * kLiveBytes;

uint64_t hash_of(const Call& call, uint32_t bucket) {
  uint64_t hash = uint64_t(call.op);
  for (const uint64_t part :
       {uint64_t(bucket), uint64_t(call.width), uint64_t(call.weight.n), uint64_t(call.weight.depth),
        uint64_t(call.weight.type), uint64_t(call.gemm.m), uint64_t(call.gemm.n), uint64_t(call.gemm.k)})
    hash = (hash ^ part) * 0x9e3779b97f4a7c15u;
  return hash;
}

}  // namespace

bool takes_counters(Op op) {
  return multiplies(op) || op == Op::Attention || op == Op::Route || op == Op::Sample;
}

void give_scratch(Call& call, uint32_t bucket, GretaGraph& graph) {
  const Call::Attention& shape = call.attention;
  uint64_t bytes = 0;
  if (call.op == Op::Attention && bucket <= kMaxSplitTokens)
    bytes = attention_scratch_bytes(uint64_t(bucket), shape.heads, shape.value_width);
  if (call.op == Op::Attention && shape.rows == AttentionRows::Lone)
    bytes = std::max<uint64_t>(
        bytes,
        attention_lone_scratch_bytes(uint64_t(bucket), shape.heads, shape.kv_heads, shape.value_width));
  if (bytes) call.slot[kScratch] = graph.temporary(bytes);
  if (call.op == Op::Sample)
    call.slot[kScratch] = graph.temporary(bucket * sample_scratch_bytes(uint64_t(call.sample.vocab)));
}

Recipes::Recipes(greta_runtime& runtime, RuntimeDevice& on, Memories& memories)
    : on_(on),
      filter_{&on.device->info(), runtime.exact, &on.kernels->refused()},
      log_(runtime.log),
      spans_(runtime.spans),
      memories_(memories),
      kernels_(*on.kernels) {}

Recipes::~Recipes() = default;

// A driver that refuses some kernels is asked for others.
Status Recipes::plan(const Call& call, uint32_t bucket, std::shared_ptr<const Recipe>* out) {
  const Span span(spans_, SpanKind::Plan, "plan");
  GRETA_TRY(on_.kernels->try_matrices(log_));
  for (;;) {
    auto recipe = std::make_shared<Recipe>(Recipe{call, bucket, std::make_unique<GretaGraph>(filter_)});
    GretaGraph& graph = *recipe->graph;
    Call with_scratch = call;
    give_scratch(with_scratch, bucket, graph);
    GRETA_TRY(graph.add({&with_scratch, 1}, bucket));
    GRETA_TRY(graph.finish());
    GRETA_TRY(graph.bind(kernels_, {&arena_, 0, graph.arena_bytes()}));
    const Status compiled = [&] {
      const Span compiling(spans_, SpanKind::Compile, "compile");
      return kernels_.compile();
    }();
    if (compiled.ok()) {
      *out = std::move(recipe);
      return {};
    }
    if (kernels_.refused().empty()) return compiled;
    for (const KernelRow* row : kernels_.refused()) on_.kernels->refused().add(*row);
  }
}

Status Recipes::bind(GretaGraph& graph, const Slice& arena) {
  const std::lock_guard<std::mutex> lock(mutex_);
  GRETA_TRY(graph.bind(kernels_, arena));
  const Span compiling(spans_, SpanKind::Compile, "compile");
  return kernels_.compile();
}

void Recipes::forget_one() {
  const auto oldest = std::min_element(recipes_.begin(), recipes_.end(), [](const auto& a, const auto& b) {
    return a.second.used < b.second.used;
  });
  recipes_.erase(oldest);
}

size_t Recipes::count() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return recipes_.size();
}

Status Recipes::find(const Call& given, uint32_t bucket, std::shared_ptr<const Recipe>* out) {
  Call call = given;
  for (uint32_t s = 0; s < kSlotCount; ++s)
    if (given.slot[s].buffer) call.slot[s] = {&operands_, s * kOperandBytes, kOperandBytes};
  call.slot[kStep] = {&operands_, kStep * kOperandBytes, kOperandBytes};
  if (takes_counters(call.op)) call.slot[kCounters] = {&operands_, kCounters * kOperandBytes, kOperandBytes};
  const Tensor& weight = call.weight;
  if (weight.slice.buffer)
    call.weight.slice = {&operands_, kWeightOperand * kOperandBytes,
                         tensor_bytes(weight.type, weight.layout, weight.n, weight.depth, weight.count)};
  const uint64_t hash = hash_of(call, bucket);
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto [first, last] = recipes_.equal_range(hash);
  for (auto each = first; each != last; ++each)
    if (each->second.recipe->bucket == bucket && each->second.recipe->call == call) {
      each->second.used = ++uses_;
      *out = each->second.recipe;
      return {};
    }
  GRETA_TRY(plan(call, bucket, out));
  if (recipes_.size() >= kMost) forget_one();
  recipes_.emplace(hash, Kept{*out, ++uses_});
  return {};
}

// Uploads the two tables.
Status Recipes::make_rows() {
  if (rows_) return {};
  auto rows = std::make_unique<BufferObject>(memories_, GRETA_MEMORY_DEVICE);
  std::vector<uint8_t> bytes(kAllLiveBytes + sizeof(StepState));
  for (uint32_t n = 1; n <= kMaxStepTokens; ++n)
    reinterpret_cast<StepState*>(bytes.data() + (n - 1) * kLiveBytes)->token_count = n;
  StepState numbered = {};
  numbered.token_count = kMaxStepTokens;
  for (uint32_t t = 0; t < kMaxStepTokens; ++t) numbered.row[t] = {t, t, 0, kNoOutput};
  memcpy(bytes.data() + kAllLiveBytes, &numbered, sizeof numbered);
  GRETA_TRY(memories_.take(GRETA_MEMORY_DEVICE, bytes.size(), &rows->slice));
  GRETA_TRY(upload_once(*on_.device, rows->slice, bytes));
  rows_ = std::move(rows);
  return {};
}

Status Recipes::live_rows(uint32_t count, Slice* out) {
  const std::lock_guard<std::mutex> lock(mutex_);
  GRETA_TRY(make_rows());
  *out = {rows_->slice.buffer, rows_->slice.offset + (count - 1) * kLiveBytes, kLiveBytes};
  return {};
}

Status Recipes::numbered_rows(Slice* out) {
  const std::lock_guard<std::mutex> lock(mutex_);
  GRETA_TRY(make_rows());
  *out = {rows_->slice.buffer, rows_->slice.offset + kAllLiveBytes, sizeof(StepState)};
  return {};
}

Slice Recipes::actual(const Slice& planned, const Operands& operands, const Slice& scratch) const {
  if (planned.buffer == &arena_) return {scratch.buffer, scratch.offset + planned.offset, planned.bytes};
  if (planned.buffer != &operands_) return planned;
  const Slice& operand = operands[planned.offset / kOperandBytes];
  const uint64_t inner = planned.offset % kOperandBytes;
  return {operand.buffer, operand.offset + inner, std::min(planned.bytes, operand.bytes - inner)};
}

Status Recipes::record(const Recipe& recipe, const Operands& operands, const Slice& scratch, uint32_t rows,
                       StreamObject& stream) const {
  Launch launch;
  for (const GretaGraph::Command& command : recipe.graph->commands()) {
    stream.calls.assign(command.calls.begin(), command.calls.end());
    for (Call& call : stream.calls) {
      for (Slice& slice : call.slot) slice = actual(slice, operands, scratch);
      call.weight.slice = actual(call.weight.slice, operands, scratch);
    }
    make_launch(stream.calls, *command.row, command.bucket, filter_.device, &launch);
    launch.kernel = command.launch.kernel;
    GRETA_TRY(stream.dispatch(launch));
    stream.pending.add(command.cost(rows, rows, 0));
  }
  if (stream.pending.flops <= kSubmitFlops * filter_.device->unit_count) return {};
  return stream.submit();
}

}  // namespace greta
