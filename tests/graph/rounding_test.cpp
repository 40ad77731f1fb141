// Who rounds what a matmul reads: the launch that makes it, where a row does both, else a launch of its own.
// Plans of the rows of a GPU's backend, made without a device.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <cstdio>
#include <cstring>

#include "engine/engine.h"

using namespace greta;

namespace {

constexpr uint32_t kWidth = 512;

struct Plan {
  Buffer memory;
  DeviceInfo info;
  GretaGraph graph{{&info}};
  uint64_t used = 128;
  const CallMaker make{{&memory, 0, 64}, {&memory, 64, 64}};

  // A device that runs `row`.
  explicit Plan(const KernelRow& row) {
    snprintf(info.backend, sizeof info.backend, "%s", row.backend);
    snprintf(info.arch, sizeof info.arch, "%s", row.target);
    info.features = ~0u;
    info.shared_bytes = 32768;
    info.unit_count = 8;
    memory.bytes = 1 << 26;
  }
  Slice take(uint64_t bytes) {
    used = round_up(used, 256) + bytes;  // as buffers begin
    return {&memory, used - bytes, bytes};
  }
  Slice row() { return graph.temporary(kWidth * sizeof(float)); }
  Tensor tensor(QuantType type, uint32_t n, uint32_t depth = kWidth, uint32_t count = 1) {
    const Layout layout = preferred_layout(type, {&info});
    return {type, layout, n, depth, count, take(tensor_bytes(type, layout, n, depth, count))};
  }
  Call matmul(const Slice& x, const Slice& y, QuantType type = QuantType::q4_k) {
    return make.matmul(tensor(type, kWidth), x, y);
  }
  Call norm(const Tensor& gain, const Slice& x, const Slice& y) { return make.norm(gain, x, y, 0); }
  Call add(const Slice& to, const Slice& x) { return make.add(to, x, to, kWidth); }
  void emit(std::initializer_list<Call> calls) { REQUIRE(graph.add({calls.begin(), calls.size()}, 1).ok()); }
  // "matmul+add+convert" of step i.
  std::string ops(size_t i) const {
    std::string text;
    for (const Call& each : graph.commands()[i].calls)
      text += (text.empty() ? "" : "+") + std::string(op_name(each.op));
    return text;
  }
};

// The row of decode's products, of each backend, or the one that is named, and each target of a GPU that this
// build is for, in turn.
const KernelRow& built_row(const char* backend = "") {
  std::vector<const KernelRow*> built;
  for (const KernelRow& row : kernel_table())
    if (!strcmp(row.name, "matmul_rows_q4_k_planes") && row.op_count == 1 &&
        (!*backend || !strcmp(row.backend, backend)))
      built.push_back(&row);
  if (built.empty()) SKIP("built without the decode rows");
  return *GENERATE_COPY(from_range(built));
}

std::string describe(const KernelRow& row) { return std::string(row.backend) + " " + row.target; }

}  // namespace

TEST_CASE("the launch that makes x rounds it, once for all that read it", "[graph]") {
  Plan plan(built_row());
  const Slice x = plan.row(), h = plan.row(), y = plan.row();
  const Tensor gain = plan.tensor(QuantType::f32, 1);
  plan.emit({plan.matmul(x, y), plan.add(h, y)});
  for (int i = 0; i < 2; ++i) {
    const Slice normed = plan.row();
    plan.emit({plan.norm(gain, h, normed), plan.matmul(normed, plan.row())});
  }
  REQUIRE(plan.graph.finish().ok());
  REQUIRE(plan.graph.commands().size() == 4);
  CHECK(plan.ops(0) == "convert");  // no launch has made x
  CHECK(plan.ops(1) == "matmul+add+convert");
  CHECK(plan.ops(2) == "norm+matmul");
  CHECK(plan.ops(3) == "norm+matmul");
  CHECK(plan.graph.commands()[2].barrier_before);
  CHECK_FALSE(plan.graph.commands()[3].barrier_before);
  // Both read what step 1 has rounded, with their gain in it.
  const Call& rounded = plan.graph.commands()[1].calls.back();
  for (size_t i : {2, 3}) CHECK(plan.graph.commands()[i].calls[0].slot[kX] == rounded.slot[kY]);
  CHECK(rounded.weight == gain);
}

TEST_CASE("what another launch has changed since, or another gain asks for, is rounded anew", "[graph]") {
  Plan plan(built_row());
  const Slice x = plan.row(), h = plan.row(), y = plan.row(), other = plan.row();
  const Tensor gains[] = {plan.tensor(QuantType::f32, 1), plan.tensor(QuantType::f32, 1)};
  plan.emit({plan.matmul(x, y), plan.add(h, y)});
  plan.emit({plan.add(h, other)});
  for (const Tensor& gain : gains) {
    const Slice normed = plan.row();
    plan.emit({plan.norm(gain, h, normed), plan.matmul(normed, plan.row())});
  }
  REQUIRE(plan.graph.finish().ok());
  const char* const expected[] = {"convert",     "matmul+add", "add",        "convert",
                                  "norm+matmul", "convert",    "norm+matmul"};
  REQUIRE(plan.graph.commands().size() == std::size(expected));
  for (size_t i = 0; i < std::size(expected); ++i) CHECK(plan.ops(i) == expected[i]);
}

TEST_CASE("a copy that makes x stays a copy, and a launch of its own rounds x", "[graph]") {
  Plan plan(built_row());
  const Slice x = plan.row();
  REQUIRE(plan.graph.copy(x, plan.take(kWidth * sizeof(float))).ok());
  plan.emit({plan.matmul(x, plan.row())});
  REQUIRE(plan.graph.finish().ok());
  REQUIRE(plan.graph.commands().size() == 3);
  CHECK(!plan.graph.commands()[0].row);
  CHECK(plan.ops(1) == "convert");
  CHECK(plan.ops(2) == "matmul");
}

TEST_CASE("rows that are gathered are rounded by the launch that makes x where there is one", "[graph]") {
  const KernelRow& row = built_row();
  for (const uint32_t bucket : {1u, 2u}) {
    CAPTURE(describe(row), bucket);
    Plan plan(row);
    const auto rows = [&] { return plan.graph.temporary(bucket * kWidth * sizeof(float)); };
    const Slice x = rows(), h = rows(), y = rows();
    const Slice normed = rows();
    const Call first[] = {plan.matmul(x, y), plan.add(h, y)};
    Call last[] = {plan.norm(plan.tensor(QuantType::f32, 1), h, normed), plan.matmul(normed, rows())};
    last[0].rows_of = kRowsGather;
    last[1].rows_of = kRowsOutputs;
    REQUIRE(plan.graph.add(first, bucket).ok());
    REQUIRE(plan.graph.add(last, bucket).ok());
    REQUIRE(plan.graph.finish().ok());
    size_t fused = 0;
    for (size_t i = 0; i < plan.graph.commands().size(); ++i) fused += plan.ops(i).ends_with("+convert");
    CHECK(fused == (bucket == 1 ? 1 : 0));
  }
}

// A norm after a block, as gemma has it: product, norm and residual are one launch, which rounds for the
// next. A product of floats does so too, but reads x as it is.
TEST_CASE("a norm after a block takes the residual and rounds", "[graph]") {
  const KernelRow& row = built_row();
  for (const QuantType type : {QuantType::q4_k, QuantType::f16}) {
    INFO(describe(row) << ", " << quant_info(type).name);
    Plan plan(row);
    const Slice x = plan.row(), h = plan.row(), y = plan.row(), normed = plan.row();
    const Tensor post = plan.tensor(QuantType::f32, 1), gain = plan.tensor(QuantType::f32, 1);
    plan.emit({plan.matmul(x, y, type), plan.norm(post, y, y), plan.add(h, y)});
    plan.emit({plan.norm(gain, h, normed), plan.matmul(normed, plan.row())});
    REQUIRE(plan.graph.finish().ok());
    std::vector<std::string> expected = {"convert", "matmul+norm+add+convert", "norm+matmul"};
    if (type == QuantType::f16) expected.erase(expected.begin());
    REQUIRE(plan.graph.commands().size() == expected.size());
    for (size_t i = 0; i < expected.size(); ++i) CHECK(plan.ops(i) == expected[i]);
    CHECK(plan.graph.commands()[expected.size() - 2].calls.back().weight == gain);
    CHECK(plan.graph.barriers() == expected.size());
  }
}

// Rows that have outputs are other rows than the kernel counts.
TEST_CASE("a norm after rows that are no tokens is no part of their product", "[graph]") {
  Plan plan(built_row());
  const Slice h = plan.row(), y = plan.row();
  Call calls[] = {plan.matmul(plan.row(), y, QuantType::f16), plan.norm(plan.tensor(QuantType::f32, 1), y, y),
                  plan.add(h, y)};
  for (Call& call : calls) call.rows_of = kRowsOutputs;
  REQUIRE(plan.graph.add(calls, 1).ok());
  REQUIRE(plan.graph.finish().ok());
  CHECK(plan.ops(0) == "matmul");
}

// The states of a model that is small and has heads as the large ones do.
static RecurrentShape states_of(Recurrence recurrence) {
  switch (recurrence) {
    case Recurrence::ShortConv:
      return {.conv_width = 3, .channels = kWidth};
    case Recurrence::Delta:
      return {.conv_width = 4,
              .channels = 2 * kWidth,
              .heads = 4,
              .groups = 2,
              .key_width = 128,
              .value_width = 128};
    case Recurrence::Groups:
      return {.conv_width = 4,
              .channels = kWidth + 256,
              .heads = 8,
              .groups = 1,
              .key_width = 128,
              .value_width = 64};
    default:
      return {.conv_width = 4,
              .channels = kWidth,
              .heads = kWidth,
              .groups = 1,
              .key_width = 16,
              .value_width = 1,
              .rank = 32};
  }
}

// What all layers of a plan have, if the architecture may be without.
struct Layers {
  bool attend = false;   // in a model whose other layers keep states
  bool experts = false;  // beside a dense block
  bool wide = false;     // heads that are too wide to be made by the launch of attention
};

static LayerShape layer_shape(const Arch& arch, const Layers& kind) {
  LayerShape each;
  each.experts = arch.needs_experts || arch.latent || kind.experts;
  each.ffn_width = kWidth;
  each.heads = each.kv_heads = 4;
  each.key_width = each.value_width = each.rope_width = kWidth / each.heads;
  if (arch.latent) {
    each.kv_heads = 1;
    each.value_width = kWidth;
    each.key_width = kWidth + each.rope_width;
  }
  if (kind.wide) {
    each.kv_heads = 1;
    each.key_width = each.value_width = each.rope_width = kWidth;
    each.keys_as_values = true;
  }
  each.recurrent = arch.recurrence != Recurrence::None && !kind.attend;
  if (each.recurrent && !arch.beside) each.heads = each.kv_heads = 0;
  return each;
}

// Barriers of a plan of so many layers with matrices of `type`, in whose step one token or 512 have one row
// of logits.
static uint32_t barriers_of(const KernelRow& row, const char* name, QuantType type, uint32_t layers,
                            uint32_t tokens, uint32_t cache_type = 0, const Layers& kind = {}) {
  const Arch* arch = nullptr;
  REQUIRE(find_arch(name, &arch).ok());
  Plan plan(row);
  Shape s;
  s.layers = layers;
  s.width = s.vocab = kWidth;
  const LayerShape each = layer_shape(*arch, kind);
  if (arch->latent) s.latent = {.width = kWidth, .plain = kWidth / 2, .value = kWidth / 2};
  if (each.recurrent) {
    s.recurrence = states_of(arch->recurrence);
    s.recurrent_layers = layers;
  }
  s.experts = {.count = 8, .used = 2, .width = kWidth};
  if (arch->tensors.shared_router.text) s.experts.shared_width = kWidth;
  s.each.resize(layers, each);
  Weights weights;
  weights.tied = true;
  weights.token_embedding = weights.output = plan.tensor(type, s.vocab);
  weights.output_norm = plan.tensor(QuantType::f32, 1);
  weights.layers.resize(layers);
  StepBuffers buffers;
  buffers.step = plan.make.step;
  buffers.rope[0] = plan.take(64 * each.rope_width * sizeof(float));
  buffers.token_log = plan.take(kPageTokens * sizeof(uint32_t));
  buffers.counters = plan.take(kCounterCount * sizeof(uint32_t));
  buffers.readback = plan.take(s.vocab * sizeof(float));
  buffers.runs = plan.take(sizeof(StepRuns));
  buffers.ones = plan.take(kWidth * sizeof(float));
  const auto page_bytes = uint32_t(kPageTokens * each.kv_heads * each.key_width * sizeof(float));
  buffers.key_type = buffers.value_type = cache_type;
  for (uint32_t l = 0; l < layers; ++l) {
    Layer& layer = weights.layers[l];
    for (const WantedTensor& wanted : layer_tensors(*arch, s, l, false, &layer)) {
      if (!wanted.name.text || (wanted.name.optional && wanted.tensor != &layer.layer_scale)) continue;
      const bool floats = wanted.use == Use::Vector || wanted.tensor == &layer.router ||
                          wanted.tensor == &layer.shared_router;
      const QuantType kept = floats ? QuantType::f32 : wanted.depth % 256 ? QuantType::f16 : type;
      *wanted.tensor = plan.tensor(kept, uint32_t(wanted.n), uint32_t(wanted.depth), uint32_t(wanted.count));
    }
    buffers.cache.push_back({plan.take(page_bytes), plan.take(page_bytes), page_bytes, page_bytes});
    if (!each.recurrent) continue;
    buffers.cache[l].states = plan.take(s.recurrence.stride() * sizeof(float));
    buffers.cache[l].inputs = plan.take(state_inputs_bytes(*arch, s, l));
  }
  REQUIRE(build_step(*arch, s, weights, buffers, {tokens, 1, 1, false}, &plan.graph).ok());
  return plan.graph.barriers();
}

// Norm and residual are one launch. Norm, rotation and the write to the cache of all heads are one too, and
// of one token attention's. Products of the same x share a barrier, and so does what follows them.
TEST_CASE("layers of a GPU's plans have as many barriers as they need", "[graph]") {
  const KernelRow& row = built_row();
  constexpr QuantType q4_k = QuantType::q4_k, f16 = QuantType::f16;
  // RDNA2 and gfx1250 have no tiles on HIP, which add to the residual, and no attention of many tokens that
  // rounds.
  const bool plain = !strncmp(row.target, "gfx10", 5) || !strcmp(row.target, "gfx1250");
  const bool tiles = strcmp(row.backend, "hip") || !plain;
  const uint32_t prompt = tiles ? 9 : 11, prompt_normed = 11;
  const struct {
    const char* arch;
    QuantType type;
    uint32_t tokens, barriers;
  } cases[] = {{"llama", q4_k, 1, 5},
               {"gemma2", q4_k, 1, 5},
               {"qwen3", q4_k, 1, 5},
               {"qwen3moe", q4_k, 1, 6},
               {"gemma3", q4_k, 1, 5},
               {"olmo2", q4_k, 1, 5},
               {"llama", q4_k, 512, prompt},
               {"qwen3", q4_k, 512, prompt},
               {"gemma3", q4_k, 512, prompt_normed},
               {"deepseek2", q4_k, 1, 12},
               {"llama", f16, 1, 5},
               {"llama", QuantType::bf16, 1, 5},
               {"llama", QuantType::f32, 1, 5},
               {"qwen3", f16, 1, 5},
               {"gemma2", f16, 1, 5},
               {"gemma3", f16, 1, 5},
               {"olmo2", f16, 1, 5},
               {"gemma2", QuantType::bf16, 1, 5},
               {"gemma2", QuantType::f32, 1, 5},
               {"qwen2", q4_k, 1, 5},
               {"phi3", q4_k, 1, 5},
               {"granite", q4_k, 1, 5},
               {"smollm3", q4_k, 1, 5}};
  for (const auto& [arch, type, tokens, barriers] : cases) {
    INFO(describe(row) << ", " << arch << ", " << quant_info(type).name << ", " << tokens << " tokens");
    const uint32_t one = barriers_of(row, arch, type, 1, tokens);
    CHECK(one > barriers);  // before embed, of the head
    CHECK(barriers_of(row, arch, type, 3, tokens) - one == 2 * barriers);
  }
  // Keys and values go into blocks of a cache with attention's launch.
  for (const char* arch : {"llama", "qwen3"}) {
    INFO(describe(row) << ", " << arch);
    CHECK(barriers_of(row, arch, q4_k, 3, 1, 2) - barriers_of(row, arch, q4_k, 1, 1, 2) == 2 * 5);
  }
}

// Layers with their feed-forward blocks. The convolution and the scan with what stands around them are one
// launch, as are the norms behind blocks with the residual and its factor. HIP has no such kernels.
TEST_CASE("layers with states and those of Gemma 4 have few barriers in decode", "[graph]") {
  const KernelRow& row = built_row("vulkan");  // alone it has the kernels
  const struct {
    const char* arch;
    uint32_t barriers;
    Layers kind = {};
  } cases[] = {{"lfm2", 5},
               {"qwen35", 5},
               {"qwen35", 6, {.attend = true}},
               {"qwen35moe", 7},
               {"qwen35moe", 8, {.attend = true}},
               {"gemma4", 5},
               {"gemma4", 6, {.wide = true}},
               {"gemma4", 7, {.experts = true}}};
  for (const auto& [arch, barriers, kind] : cases) {
    INFO(describe(row) << ", " << arch << ", " << kind.attend << kind.experts << kind.wide);
    const uint32_t one = barriers_of(row, arch, QuantType::q4_k, 1, 1, 0, kind);
    CHECK(barriers_of(row, arch, QuantType::q4_k, 3, 1, 0, kind) - one == 2 * barriers);
  }
}
