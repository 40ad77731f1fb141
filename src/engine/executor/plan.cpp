// Plans an executor's memory, and opens it. Sizes come from plans whose buffers have no memory yet.
#include <algorithm>
#include <atomic>
#include <new>
#include <numeric>

#include "engine/executor/deep_steps.h"
#include "engine/executor/memory.h"
#include "engine/model/rope.h"

namespace greta {

constexpr uint32_t kDefaultContext = 8192;
// A step on the CPU should end within about a second, so that a request to stop is answered soon. Two cores
// reach 2e11 multiply-adds a second with the vector kernels.
constexpr uint64_t kStepOperations = 200'000'000'000;

// Whether one of the model's devices has a kernel like this.
static bool has_row(const Model& model, bool (*is_like)(const KernelRow& row)) {
  return std::ranges::any_of(kernel_table(), [&](const KernelRow& row) {
    return is_like(row) &&
           std::ranges::any_of(model.devices, [&](const ModelDevice& on) { return usable(row, on.filter); });
  });
}

static bool has_lone_rows(const Model& model) {
  return has_row(model, [](const KernelRow& row) { return bool(row.lone_rows); });
}

static bool has_prefix_rows(const Model& model) {
  return has_row(model, [](const KernelRow& row) { return row.prefix == Prefix::Sums; });
}

static uint32_t hidden_rows(const Shape& s, const ExecutorOptions& o, uint32_t step_tokens, uint32_t tokens) {
  const uint64_t room = readback_bytes(s, o, step_tokens) / sizeof(float) / s.width;
  if (room >= tokens) return tokens;
  uint32_t most = 1;
  for (const uint32_t bucket : kTokenBuckets)
    if (bucket >= 8 && bucket <= room) most = bucket;
  return most;
}

uint32_t Executor::max_hidden(uint32_t tokens) const {
  return hidden_rows(model_.shape, options_, plan_.step_tokens, tokens);
}

// Visits a step of each size and kind.
static Status each_step(const Model& model, const ExecutorOptions& o, uint32_t step_tokens,
                        const std::function<Status(const StepKey&)>& visit) {
  struct Kind {
    LoneRows lone;
    bool prefixes;
  };
  std::vector<Kind> kinds = {{LoneRows::None, false}};
  for (const LoneRows lone : {LoneRows::First, LoneRows::All}) {
    if (has_lone_rows(model)) kinds.push_back({lone, false});
    if (has_prefix_rows(model)) kinds.push_back({lone, true});
  }
  for (const uint32_t tokens : kTokenBuckets) {
    if (tokens > step_tokens) break;
    for (const Kind& kind : kinds)
      for (const bool sample : {false, true}) {
        const uint32_t rows = sample ? max_draws(o) : o.output_rows;
        const uint32_t outputs = output_bucket(std::min(rows, tokens), tokens);
        GRETA_TRY(visit({tokens, outputs, outputs, sample, kind.lone, false, kind.prefixes}));
      }
    const uint32_t hidden = hidden_rows(model.shape, o, step_tokens, tokens);
    GRETA_TRY(visit({tokens, output_bucket(hidden, tokens), 0, false, LoneRows::None, true}));
    if (model.shape.recurrent_layers && tokens <= kReplayRows) {
      StepKey replay{tokens, 0, 0};
      replay.replay = true;
      GRETA_TRY(visit(replay));
    }
    if (!model.shape.heads) continue;
    for (const bool sample : {false, true}) {
      const uint32_t rows = sample ? max_draws(o) : o.output_rows;
      const uint32_t outputs = output_bucket(std::min(rows, tokens), tokens);
      StepKey draft{tokens, outputs, sample ? 0 : outputs, sample};
      draft.head = true;
      GRETA_TRY(visit(draft));
    }
  }
  return {};
}

// The same for steps that bring experts, of so many tokens and more. The last piece of a pass may have less.
static Status each_step_with_brought(const Model& model, const ExecutorOptions& o, const ExecutorPlan& plan,
                                     const std::function<Status(const StepKey&)>& visit) {
  const uint32_t from = plan.passes() ? 1 : std::max(1u, model.bring_from);
  return each_step(model, o, plan.step_tokens, [&](StepKey key) {
    key.brings = true;
    const bool brought = !key.head && !key.replay && key.tokens >= token_bucket(from);
    return brought ? visit(key) : Status{};
  });
}

// Checkpoints of states may take as much as keys and values do, by default, but there is room for two.
static Status plan_states(const Shape& s, const ExecutorOptions& o, uint64_t cache_bytes, ExecutorPlan* p) {
  if (!s.recurrent_layers) return {};
  p->state_bytes = s.recurrence.stride() * sizeof(float) * s.recurrent_layers;
  const uint64_t bytes = o.checkpoint_bytes ? o.checkpoint_bytes : cache_bytes;
  p->checkpoints = uint32_t(std::clamp<uint64_t>(bytes / p->state_bytes, 2, 4 * o.sequences + 4));
  p->states = o.sequences + 1 + p->checkpoints;
  uint64_t all = 0;
  if (!checked_multiply(p->state_bytes, p->states, &all))
    return fail(Code::Argument, "%u states of %llu bytes do not fit 64 bits", p->states,
                (unsigned long long)p->state_bytes);
  return {};
}

Status describe_buffers(const Model& model, const ExecutorOptions& o, const ExecutorPlan& plan,
                        Buffer* memory, StepBuffers* out) {
  memory->bytes = ~uint64_t(0) >> 1;
  uint64_t next = 0;
  const auto piece = [&](uint64_t bytes) {
    const Slice slice{memory, next, bytes};
    next += bytes;
    return slice;
  };
  StepBuffers& b = *out;
  GRETA_TRY(describe_cache(model, o, &b));
  b.groups = plan.groups.count;
  b.step = piece(b.groups * step_state_bytes(o.sequences, plan.pages_per_sequence));
  b.ones = piece(ones_bytes(model, plan.step_tokens));
  for (uint32_t i = 0; i < model.shape.rope_tables; ++i)
    b.rope[i] = piece(rope_table_bytes(model.shape.rope[i], plan.context));
  b.token_log = piece(uint64_t(plan.pages) * kPageTokens * sizeof(uint32_t));
  b.counters = piece(kCounterCount * sizeof(uint32_t));
  b.drawn = piece(kDrawnBytes);
  b.runs = piece(sizeof(StepRuns));
  b.readback = piece(uint64_t(kMaxStepTokens) * model.shape.vocab * sizeof(float));
  b.arrives = b.leaves =
      piece(uint64_t(kMaxStepTokens) * crossing_values(model.shape, Crossing::Chosen) * sizeof(float));
  b.residual = piece(residual_bytes(model.shape, kMaxStepTokens));
  set_groups(model.shape, plan.groups, &b);
  set_head_states(model.shape, piece(head_states_bytes(model.shape, o, plan.step_tokens)), plan.step_tokens,
                  &b);
  for (uint32_t l = 0; l < model.shape.cached_layers(); ++l) {
    StepBuffers::Cache& layer = b.cache[l];
    const uint64_t pages = plan.groups.group[layer.group].pages;
    layer.keys = layer.values = piece(pages * layer.key_page_bytes);
    if (!layer.joined) layer.values = piece(pages * layer.value_page_bytes);
    layer.states = piece(plan.states * layer_state_bytes(model.shape, l));
    layer.inputs = piece(state_inputs_bytes(*model.arch, model.shape, l));
  }
  return {};
}

namespace {

struct PlannedSteps {
  const std::vector<Segment>& segments;  // of each step
  const Weights& weights;
  std::vector<StepKey> keys;
};

// A step takes 0.1 ms for each layer. Fewer layers of all steps are planned before threads have started.
constexpr size_t kLayersWorthThreads = 1000;
constexpr uint32_t kMostThreads = 16;

struct Planners {
  const Model& model;
  const StepBuffers& buffers;
  const PlannedSteps& steps;
  std::vector<std::vector<uint64_t>> arenas;  // [worker][device] bytes
  std::vector<uint8_t> left;                  // [step] 1: it could not be planned
  std::atomic<size_t> next{0};

  Status plan(const StepKey& key, std::vector<uint64_t>& bytes) const {
    for (const Segment& segment : steps.segments) {
      GretaGraph graph(model.devices[segment.device].filter);
      const Status built = build_step(*model.arch, model.shape, steps.weights, buffers, key, &graph, segment);
      GRETA_TRY(on_device(model, segment.device, built));
      bytes[segment.device] = std::max(bytes[segment.device], round_up(graph.arena_bytes(), 256));
    }
    return {};
  }
  void work(uint32_t worker) noexcept {
    for (size_t i; (i = next++) < steps.keys.size();) {
      try {
        left[i] = !plan(steps.keys[i], arenas[worker]).ok();
      } catch (const std::bad_alloc&) {
        left[i] = 1;
      }
    }
  }
};

}  // namespace

// Plans the steps, and makes the arena of each device in `on` as large as they ask. A step that could not be
// planned is planned again by the calling thread, to which the error text must belong.
static Status grow_arenas(const Model& model, const StepBuffers& buffers, const PlannedSteps& steps,
                          std::vector<ExecutorBytes>* on) {
  const size_t count = steps.keys.size();
  const bool few = count * model.shape.layers < kLayersWorthThreads;
  ThreadPool threads(few ? 1 : std::min(kMostThreads, cpu_count()));
  Planners planners{model, buffers, steps, {}, std::vector<uint8_t>(count, few), {}};
  planners.arenas.assign(threads.workers(), std::vector<uint64_t>(on->size()));
  if (!few) {
    threads.run([](void* all, uint32_t worker) noexcept { static_cast<Planners*>(all)->work(worker); },
                &planners);
    clear_error_text();
  }
  for (size_t i = 0; i < count; ++i)
    if (planners.left[i]) GRETA_TRY(planners.plan(steps.keys[i], planners.arenas[0]));
  for (const std::vector<uint64_t>& bytes : planners.arenas)
    for (size_t d = 0; d < on->size(); ++d) (*on)[d].arena = std::max((*on)[d].arena, bytes[d]);
  return {};
}

// The bytes of the arenas that the largest of the possible plans needs on each device.
static Status plan_arenas(const Model& model, const ExecutorOptions& o, ExecutorPlan* out) {
  const ExecutorPlan& plan = *out;
  Buffer memory;  // stands for all buffers but the arena
  StepBuffers b;
  GRETA_TRY(describe_buffers(model, o, plan, &memory, &b));
  const auto take_into = [](PlannedSteps& steps) {
    return [&steps](const StepKey& key) { return steps.keys.push_back(key), Status{}; };
  };
  const std::vector<Segment> segments = segments_of(model.placement);
  PlannedSteps steps{segments, model.weights(), {}};
  GRETA_TRY(each_step(model, o, plan.step_tokens, take_into(steps)));
  GRETA_TRY(grow_arenas(model, b, steps, &out->on));
  if (!plan.brings) return {};
  const std::vector<Segment> brought = segments_of(model.placement, brought_layers(model));
  const Weights weights = with_brought(model);
  PlannedSteps with_experts{brought, weights, {}};
  GRETA_TRY(each_step_with_brought(model, o, plan, take_into(with_experts)));
  return grow_arenas(model, b, with_experts, &out->on);
}

static Status plan_at(const Model& model, const ExecutorOptions& o, uint32_t context, ExecutorPlan* p) {
  const Shape& s = model.shape;
  StepBuffers b;
  GRETA_TRY(describe_cache(model, o, &b));
  p->context = context;
  p->pages_per_sequence = uint32_t(divide_up(context, kPageTokens));
  p->pages = uint32_t(divide_up(o.cache_tokens ? o.cache_tokens : context, kPageTokens));
  std::vector<uint64_t> pages;
  for (const StepBuffers::Cache& layer : b.cache) pages.push_back(layer.page_bytes());
  uint64_t keys_and_values = 0;
  if (!checked_multiply(std::accumulate(pages.begin(), pages.end(), uint64_t(0)), p->pages, &keys_and_values))
    return fail(Code::Argument, "a cache of %u pages in %u layers does not fit 64 bits", p->pages, s.layers);
  p->groups = plan_cache_groups(s, {o.sequences, p->step_tokens, p->pages, pages, o.checkpoint_bytes});
  set_groups(s, p->groups, &b);
  p->on.assign(model.devices.size(), {});
  p->layer_bytes.assign(s.cached_layers(), 0);
  for (uint32_t l = 0; l < s.cached_layers(); ++l)
    p->layer_bytes[l] = pages[l] * p->groups.group[b.cache[l].group].pages;
  const uint64_t all = std::accumulate(p->layer_bytes.begin(), p->layer_bytes.end(), log_bytes(p->pages));
  GRETA_TRY(plan_states(s, o, all, p));
  p->on[model.placement.output()].cache += log_bytes(p->pages);
  for (uint32_t l = 0; l < s.cached_layers(); ++l) {
    p->layer_bytes[l] += layer_state_bytes(s, l) * p->states + state_inputs_bytes(*model.arch, s, l);
    p->on[model.placement.layer(l)].cache += p->layer_bytes[l];
  }
  const uint64_t state = step_state_bytes(o.sequences, p->pages_per_sequence);
  const std::vector<Needs> needs = needs_of(model);
  for (uint32_t d = 0; d < p->on.size(); ++d) {
    uint64_t& bytes = p->on[d].tables;
    bytes = (1 + kFlights) * p->groups.count * state + kCounterCount * sizeof(uint32_t);
    if (p->states) bytes += (1 + kFlights) * sizeof(StepRuns);
    if (needs[d].layers || model.arch->scale_inputs) bytes += ones_bytes(model, p->step_tokens);
    if (needs[d].layers) bytes += rope_tables_bytes(s, context);
    if (needs[d].outputs) bytes += readback_bytes(s, o, p->step_tokens) + kDrawnBytes;
    if (needs[d].outputs) bytes += head_states_bytes(s, o, p->step_tokens);
    if (needs[d].outputs && !needs[d].embeds) bytes += kFlights * kMaxStepTokens * sizeof(uint32_t);
    if (needs[d].embeds && !needs[d].outputs) bytes += log_bytes(p->pages);
    if (needs[d].crosses) bytes += 2 * crossing_bytes(model, b, d, p->step_tokens);
    if (needs[d].residual_crosses)
      bytes += residuals_crossing_bytes(model.devices[d].device->info(), s, p->step_tokens);
    if (needs[d].residual) bytes += residual_bytes(s, p->step_tokens);
    if (p->brings) bytes += BroughtExperts::bytes(model, d);
    if (p->passes() && d == model.placement.layer(0)) bytes += pass_bytes(s, p->step_tokens);
  }
  if (s.heads) p->head_bytes = p->layer_bytes[s.layers] + head_states_bytes(s, o, p->step_tokens);
  return plan_arenas(model, o, p);
}

ExecutorBytes ExecutorPlan::all() const {
  ExecutorBytes sum;
  for (const ExecutorBytes& each : on)
    sum.cache += each.cache, sum.arena += each.arena, sum.tables += each.tables;
  return sum;
}

// The first device on which the plan does not fit; how many there are, if it fits.
static uint32_t first_full(const ExecutorPlan& plan, Executor::FreeBytes free_bytes) {
  uint32_t d = 0;
  while (d < plan.on.size() && plan.on[d].total() <= free_bytes[d]) ++d;
  return d;
}

// Whether there are steps that bring experts. Unless the caller wants them, they are left out where a GPU has
// nothing of it, and where results must not depend on the size of a step.
static bool may_bring(const Model& model, uint32_t step_tokens) {
  if (model.bring_from > step_tokens) return false;
  bool may = false;
  for (uint32_t l = 0; l < model.shape.layers; ++l) {
    const auto on_host = [&](uint32_t d) { return model.devices[d].device->info().host_functions; };
    const bool gains = on_host(model.placement.experts_of(l)) && !on_host(model.placement.layer(l));
    may |= (model.bring_from || (gains && !model.exact)) && model.can_bring(l);
  }
  return may;
}

uint32_t step_limit(const DeviceInfo& device, uint64_t token_parameters, uint64_t largest_product) {
  const uint64_t operations = device.cpu_type ? kStepOperations : kSubmitFlops * device.unit_count;
  const uint64_t of_token = device.cpu_type ? token_parameters : 2 * largest_product;
  return uint32_t(std::clamp<uint64_t>(operations / std::max<uint64_t>(1, of_token), 32, kMaxStepTokens));
}

// Whether a device is a processor that has nothing but experts that can be brought to their layers.
static bool has_movable_experts_alone(const Model& model, uint32_t device) {
  const Placement& p = model.placement;
  if (!model.devices[device].device->info().cpu_type || std::ranges::count(p.device, uint8_t(device)))
    return false;
  for (uint32_t l = 0; l < p.layers(); ++l)
    if (p.experts_of(l) == device && !model.can_bring(l)) return false;
  return true;
}

// The tokens of a step that all devices take, where long steps bring experts or none does.
static uint32_t step_tokens(const Model& model, const ExecutorOptions& o, bool brings) {
  uint32_t limit = kMaxStepTokens, tokens = 1;
  for (uint32_t d = 0; d < model.devices.size(); ++d)
    if (!brings || !has_movable_experts_alone(model, d))
      limit = std::min(limit, step_limit(model.devices[d].device->info(), model.store.token_parameters(d),
                                         model.store.largest_product(d)));
  if (o.step_tokens) limit = o.step_tokens;
  for (uint32_t bucket : kTokenBuckets)
    if (bucket <= limit) tokens = bucket;
  return tokens;
}

Status Executor::plan(const Model& model, ExecutorOptions* options, FreeBytes free_bytes, ExecutorPlan* out) {
  ExecutorOptions& o = *options;
  if (o.sequences == 0) o.sequences = 4;
  if (o.sequences > kMaxStepSequences)
    return fail(Code::Argument, "%u sequences, at most %u", o.sequences, kMaxStepSequences);
  if (o.output_rows > kMaxStepTokens)
    return fail(Code::Argument, "output_rows is %u, at most %u", o.output_rows, kMaxStepTokens);
  o.output_rows = output_bucket(o.output_rows ? o.output_rows : std::max(8u, o.sequences), kMaxStepTokens);
  if (o.context > kMaxContext)
    return fail(Code::Argument, "a context of %u tokens, at most %u", o.context, kMaxContext);
  const uint32_t positions = model.shape.positions;
  if (positions && o.context > positions)
    return fail(Code::Argument, "a context of %u tokens, but the model has learned %u positions (%s)",
                o.context, positions, model.arch->tensors.position_embedding.text);
  if (o.step_tokens > kMaxStepTokens)
    return fail(Code::Argument, "step_tokens is %u, at most %u", o.step_tokens, kMaxStepTokens);

  uint64_t pairs = ~uint64_t(0);
  for (const ModelDevice& on : model.devices)
    pairs = std::min(pairs, most_pairs(on.device->info(), model.shape));
  if (o.step_pairs == 0) o.step_pairs = pairs;

  uint32_t first = o.context ? o.context : std::min(model.shape.context, kDefaultContext);
  if (positions) first = std::min(first, positions);
  ExecutorPlan p;
  p.apart_tokens = step_tokens(model, o, false);
  p.step_tokens = step_tokens(model, o, true);
  p.brings = may_bring(model, p.step_tokens);
  const auto without = [&] { p.step_tokens = p.pass_tokens = p.apart_tokens, p.brings = false; };
  const uint32_t pieces = o.pass_pieces ? o.pass_pieces : o.step_tokens ? 1 : kPassPieces;
  p.pass_tokens = p.step_tokens * (can_pass(model) ? std::min(pieces, kPassPieces) : 1);
  if (!p.brings) without();
  GRETA_TRY(plan_at(model, o, first, &p));
  if (p.brings && !model.bring_from && first_full(p, free_bytes) < p.on.size()) {
    without();
    GRETA_TRY(plan_at(model, o, first, &p));
  }
  // The default context shrinks until the cache fits. A context that the caller asked for does not.
  while (!o.context && p.context > 256 && first_full(p, free_bytes) < p.on.size())
    GRETA_TRY(plan_at(model, o, p.context / 2, &p));
  *out = p;
  return {};
}

Executor::Executor(Model& model, const ExecutorOptions& options, const ExecutorPlan& plan)
    : model_(model),
      options_(options),
      plan_(plan),
      sequences_(model.shape, options_, plan_),
      on_(model, options_, plan_),
      flights_(model, on_),
      crossings_(model, on_, flights_, plan_),
      plans_(model, on_, sequences_, flights_, options_, plan_),
      adapters_(model, on_, plans_, flights_, options_, plan_),
      upload_(model, on_, sequences_, flights_, options_, plan_),
      bringing_(model, on_, plans_, upload_, plan_),
      cache_(model, on_, sequences_),
      head_(model, on_, options.sequences + 1),
      takes_lone_rows_(has_lone_rows(model)),
      takes_prefixes_(has_prefix_rows(model)) {}

Executor::~Executor() { flights_.close(); }  // steps under way read what goes

Status Executor::open_parts() {
  GRETA_TRY(on_.open());
  GRETA_TRY(crossings_.open());
  GRETA_TRY(flights_.open());
  GRETA_TRY(upload_.open());
  GRETA_TRY(crossings_.open_gates(plans_.segments(), has_head()));
  return bringing_.open();
}

Status Executor::open(Model& model, const ExecutorOptions& asked, FreeBytes free_bytes,
                      std::unique_ptr<Executor>* out) {
  ExecutorOptions options = asked;
  ExecutorPlan plan;
  GRETA_TRY(Executor::plan(model, &options, free_bytes, &plan));
  if (const uint32_t d = first_full(plan, free_bytes); d < plan.on.size()) {
    const ExecutorBytes& on = plan.on[d];
    return on_device(
        model, d,
        fail(
            Code::Memory,
            "a context of %u tokens needs %s beside the weights (cache %s, working memory %s, tables %s), %s "
            "are free: ask for a smaller context, or take a smaller quantization of the model",
            plan.context, SizeText(on.total()).text, SizeText(on.cache).text, SizeText(on.arena).text,
            SizeText(on.tables).text, SizeText(free_bytes[d]).text));
  }
  std::unique_ptr<Executor> executor(new Executor(model, options, plan));
  GRETA_TRY(executor->open_parts());
  // Most kernels of a GPU's session are those of one token and of a long prompt. They are compiled now, so
  // that the first answers do not wait for them. The two plans are made one after the other: a token's
  // kernels took up to 2 % longer where a prompt's kernels lay between them.
  const bool on_gpu = std::ranges::any_of(
      model.devices, [](const ModelDevice& each) { return !each.device->info().cpu_type; });
  if (on_gpu)
    for (const uint32_t tokens : {1u, plan.step_tokens})
      if (tokens > 1 || executor->plans_.empty()) {
        StepKey key{tokens, 1, 0, true};
        key.brings = executor->brings_at(tokens);
        GRETA_TRY(executor->plans_.make(key));
      }
  if (options.compile_ahead && on_gpu) GRETA_TRY(executor->plans_.compile_ahead());
  *out = std::move(executor);
  return {};
}

Status StepPlans::compile_ahead() {
  const auto want = [this](const StepKey& key) -> Status {
    const std::span<const Segment> parts = segments(key);
    for (size_t i = 0; i < parts.size(); ++i) {
      GretaGraph graph(model_.devices[parts[i].device].filter);
      GRETA_TRY(build(key, i, &graph));
    }
    return {};
  };
  const auto want_both = [&](StepKey key) -> Status {
    GRETA_TRY(want(key));
    if (key.outputs <= 1) return {};
    key.outputs = 1;  // as where one prompt ends
    key.logits = std::min(key.logits, 1u);
    return want(key);
  };
  return compile([&]() -> Status {
    GRETA_TRY(each_step(model_, options_, plan_.step_tokens, want_both));
    return plan_.brings ? each_step_with_brought(model_, options_, plan_, want_both) : Status{};
  });
}

}  // namespace greta
