// Plans and allocates an executor's memory. Sizes come from plans whose buffers have no memory yet.
#include <algorithm>
#include <numeric>

#include "engine/executor/deep_steps.h"
#include "engine/model/rope.h"

namespace greta {

constexpr uint32_t kDefaultContext = 8192;
constexpr uint64_t kMaxPageBytes = uint64_t(1) << 30;
// A step on the CPU should end within about a second, so that a request to stop is answered soon. Two cores
// reach 2e11 multiply-adds a second with the vector kernels.
constexpr uint64_t kStepOperations = 200'000'000'000;

// The bytes of `heads` heads of `width` values.
static Status page_bytes(uint32_t cache_type, uint64_t heads, uint32_t width, uint64_t* out) {
  QuantType type = QuantType::f32;
  cache_quant(cache_type, &type);
  if (width % quant_info(type).block)
    return fail(Code::Unsupported,
                "a %s cache holds heads of whole blocks of %u values; this model's have %u",
                quant_info(type).name, quant_info(type).block, width);
  *out = quant_bytes(type, heads * width);
  return {};
}

static uint64_t step_state_bytes(uint32_t sequences, uint32_t pages_per_sequence) {
  const uint64_t of_sequence = pages_per_sequence * sizeof(uint32_t) + sizeof(SamplePenalties);
  return round_up(sizeof(StepState) + sequences * of_sequence + sizeof(SharedPrefixes), 256);
}

// Sets the sizes of a layer's pages.
static Status describe_pages(const LayerShape& layer, bool latent, const ExecutorOptions& o,
                             StepBuffers::Cache* out) {
  const uint64_t heads = uint64_t(layer.kv_heads) * kPageTokens;
  uint64_t keys = 0, values = 0;
  GRETA_TRY(page_bytes(o.key_type, heads, layer.key_width, &keys));
  values = keys;
  if (!latent) GRETA_TRY(page_bytes(o.value_type, heads, layer.value_width, &values));
  if (std::max(keys, values) > kMaxPageBytes)
    return fail(Code::Unsupported, "a page of the cache would have %llu bytes, at most %llu",
                (unsigned long long)std::max(keys, values), (unsigned long long)kMaxPageBytes);
  out->key_page_bytes = uint32_t(keys);
  out->value_page_bytes = uint32_t(values);
  out->joined = latent;
  return {};
}

static Status describe_cache(const Model& model, const ExecutorOptions& o, StepBuffers* b) {
  const bool latent = model.arch->latent;
  b->key_type = o.key_type;
  b->value_type = latent ? o.key_type : o.value_type;
  b->cache.assign(model.shape.layers, {});
  for (uint32_t l = 0; l < model.shape.layers; ++l)
    if (model.shape.each[l].attends())
      GRETA_TRY(describe_pages(model.shape.each[l], latent, o, &b->cache[l]));
  return {};
}

static void set_groups(const Shape& shape, const CacheGroups& groups, StepBuffers* b) {
  for (uint32_t l = 0; l < shape.layers; ++l) b->cache[l].group = groups.of(shape.each[l].window);
}

static bool has_lone_rows(const Model& model) {
  return std::ranges::any_of(
      kernel_table(), [&](const KernelRow& row) { return row.lone_rows && usable(row, model.filter); });
}

static bool has_prefix_rows(const Model& model) {
  return std::ranges::any_of(kernel_table(), [&](const KernelRow& row) {
    return row.prefix == Prefix::Sums && usable(row, model.filter);
  });
}

// What the host reads of a step: rows of logits, or hidden states, of which there is room for one at least.
static uint64_t readback_bytes(const Shape& s, const ExecutorOptions& o, uint32_t step_tokens) {
  const uint64_t logits = uint64_t(std::min(o.output_rows, step_tokens)) * s.vocab;
  return std::max<uint64_t>(logits, s.width) * sizeof(float);
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
  }
  return {};
}

// The bytes of one state in a layer.
static uint64_t layer_state_bytes(const Shape& s, uint32_t layer) {
  return s.each[layer].recurrent ? s.recurrence.stride() * sizeof(float) : 0;
}

// Checkpoints of states may take as much as keys and values do, by default, but there is room for two.
static Status plan_states(const Shape& s, const ExecutorOptions& o, ExecutorPlan* p) {
  if (!s.recurrent_layers) return {};
  p->state_bytes = s.recurrence.stride() * sizeof(float) * s.recurrent_layers;
  const uint64_t bytes = o.checkpoint_bytes ? o.checkpoint_bytes : p->cache_bytes;
  const uint64_t checkpoints = std::clamp<uint64_t>(bytes / p->state_bytes, 2, 4 * o.sequences + 4);
  p->states = uint32_t(o.sequences + 1 + checkpoints);
  uint64_t all = 0;
  if (!checked_multiply(p->state_bytes, p->states, &all))
    return fail(Code::Argument, "%u states of %llu bytes do not fit 64 bits", p->states,
                (unsigned long long)p->state_bytes);
  p->cache_bytes += all;
  return {};
}

// The bytes of the arena that the largest of the possible plans needs.
static Status plan_arena(const Model& model, const ExecutorOptions& o, const ExecutorPlan& plan,
                         uint64_t* out) {
  Buffer memory;  // stands for all buffers but the arena
  memory.bytes = ~uint64_t(0) >> 1;
  uint64_t next = 0;
  const auto piece = [&](uint64_t bytes) {
    const Slice slice{&memory, next, bytes};
    next += bytes;
    return slice;
  };
  StepBuffers b;
  GRETA_TRY(describe_cache(model, o, &b));
  b.groups = plan.groups.count;
  b.step = piece(b.groups * step_state_bytes(o.sequences, plan.pages_per_sequence));
  for (uint32_t i = 0; i < model.shape.rope_tables; ++i)
    b.rope[i] = piece(rope_table_bytes(model.shape.rope[i], plan.context));
  b.token_log = piece(uint64_t(plan.pages) * kPageTokens * sizeof(uint32_t));
  b.counters = piece(kCounterCount * sizeof(uint32_t));
  b.drawn = piece(kDrawnBytes);
  b.runs = piece(sizeof(StepRuns));
  b.readback = piece(uint64_t(kMaxStepTokens) * model.shape.vocab * sizeof(float));
  set_groups(model.shape, plan.groups, &b);
  for (uint32_t l = 0; l < model.shape.layers; ++l) {
    StepBuffers::Cache& layer = b.cache[l];
    const uint64_t pages = plan.groups.group[layer.group].pages;
    layer.keys = layer.values = piece(pages * layer.key_page_bytes);
    if (!layer.joined) layer.values = piece(pages * layer.value_page_bytes);
    layer.states = piece(plan.states * layer_state_bytes(model.shape, l));
  }
  *out = 0;
  GRETA_TRY(each_step(model, o, plan.step_tokens, [&](const StepKey& key) -> Status {
    GretaGraph graph(model.filter);
    GRETA_TRY(build_step(*model.arch, model.shape, model.weights(), b, key, &graph));
    *out = std::max(*out, graph.arena_bytes());
    return {};
  }));
  *out = round_up(*out, 256);
  return {};
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
  keys_and_values = 0;
  for (const CacheGroup& group : p->groups.all()) keys_and_values += group.page_bytes * group.pages;
  p->cache_bytes = keys_and_values + round_up(uint64_t(p->pages) * kPageTokens * sizeof(uint32_t), 256);
  GRETA_TRY(plan_states(s, o, p));
  const uint64_t state = step_state_bytes(o.sequences, p->pages_per_sequence);
  p->tables_bytes = (1 + kFlights) * p->groups.count * state + rope_tables_bytes(s, context) +
                    readback_bytes(s, o, p->step_tokens) + kDrawnBytes + kCounterCount * sizeof(uint32_t);
  if (p->states) p->tables_bytes += (1 + kFlights) * sizeof(StepRuns);
  return plan_arena(model, o, *p, &p->arena_bytes);
}

uint32_t step_limit(const DeviceInfo& device, uint64_t token_parameters, uint64_t largest_product) {
  const uint64_t operations = device.cpu_type ? kStepOperations : kSubmitFlops * device.unit_count;
  const uint64_t of_token = device.cpu_type ? token_parameters : 2 * largest_product;
  return uint32_t(std::clamp<uint64_t>(operations / std::max<uint64_t>(1, of_token), 32, kMaxStepTokens));
}

Status Executor::plan(const Model& model, ExecutorOptions* options, uint64_t free_bytes, ExecutorPlan* out) {
  ExecutorOptions& o = *options;
  if (o.sequences == 0) o.sequences = 4;
  if (o.sequences > kMaxStepSequences)
    return fail(Code::Argument, "%u sequences, at most %u", o.sequences, kMaxStepSequences);
  if (o.output_rows > kMaxStepTokens)
    return fail(Code::Argument, "output_rows is %u, at most %u", o.output_rows, kMaxStepTokens);
  o.output_rows = output_bucket(o.output_rows ? o.output_rows : std::max(8u, o.sequences), kMaxStepTokens);
  if (o.context > kMaxContext)
    return fail(Code::Argument, "a context of %u tokens, at most %u", o.context, kMaxContext);
  if (o.step_tokens > kMaxStepTokens)
    return fail(Code::Argument, "step_tokens is %u, at most %u", o.step_tokens, kMaxStepTokens);

  if (o.step_pairs == 0) o.step_pairs = most_pairs(model.device->info(), model.shape);

  ExecutorPlan p;
  const TensorStore& store = model.store;
  const uint32_t limit =
      o.step_tokens ? o.step_tokens
                    : step_limit(model.device->info(), store.token_parameters(), store.largest_product());
  p.step_tokens = 1;
  for (uint32_t bucket : kTokenBuckets)
    if (bucket <= limit) p.step_tokens = bucket;

  const uint32_t first = o.context ? o.context : std::min(model.shape.context, kDefaultContext);
  GRETA_TRY(plan_at(model, o, first, &p));
  // The default context shrinks until the cache fits. A context that the caller asked for does not.
  while (!o.context && p.context > 256 && p.total() > free_bytes)
    GRETA_TRY(plan_at(model, o, p.context / 2, &p));
  *out = p;
  return {};
}

Executor::Executor(Model& model, const ExecutorOptions& options, const ExecutorPlan& plan)
    : model_(model),
      options_(options),
      plan_(plan),
      not_there_(options.sequences),
      window_(common_window(model.shape)),
      sequence_used_(options.sequences),
      sampling_changed_(options.sequences, true),
      cancelled_(options.sequences),
      takes_lone_rows_(has_lone_rows(model)),
      takes_prefixes_(has_prefix_rows(model)) {
  const uint32_t sequences = options.sequences + 1;
  for (const CacheGroup& group : plan.groups.all())
    pools_.emplace_back(group, sequences, plan.pages_per_sequence);
  if (plan.states) {
    states_.emplace(CacheGroup{.pages = plan.states}, sequences, 1);
    state_ends_.resize(sequences);
    checkpoints_.emplace(*states_, Checkpoints::Of::States, sequences);
  } else if (plan.groups.count > 1) {
    checkpoints_.emplace(pools_[1], Checkpoints::Of::Windows, sequences);
  }
}

Executor::~Executor() {
  if (stream_) drain(*stream_);
  plans_.clear();
  for (Flight& flight : flights_) model_.device->destroy(flight.done);
  stream_.reset();
}

Status Executor::open(Model& model, const ExecutorOptions& asked, uint64_t free_bytes,
                      std::unique_ptr<Executor>* out) {
  ExecutorOptions options = asked;
  ExecutorPlan plan;
  GRETA_TRY(Executor::plan(model, &options, free_bytes, &plan));
  if (plan.total() > free_bytes)
    return fail(
        Code::Memory,
        "a context of %u tokens needs %s beside the weights (cache %s, working memory %s, tables %s), %s are "
        "free: ask for a smaller context, or take a smaller quantization of the model",
        plan.context, SizeText(plan.total()).text, SizeText(plan.cache_bytes).text,
        SizeText(plan.arena_bytes).text, SizeText(plan.tables_bytes).text, SizeText(free_bytes).text);
  std::unique_ptr<Executor> executor(new Executor(model, options, plan));
  GRETA_TRY(executor->allocate());
  // Most kernels of a GPU's session are those of one token and of a long prompt. They are compiled now, so
  // that the first answers do not wait for them. The two plans are made one after the other: a token's
  // kernels took up to 2 % longer where a prompt's kernels lay between them.
  if (!model.device->info().cpu_type)
    for (const uint32_t tokens : {1u, plan.step_tokens})
      if (tokens > 1 || executor->plans_.empty()) GRETA_TRY(executor->make_plan({tokens, 1, 0, true}));
  if (options.compile_ahead && !model.device->info().cpu_type) GRETA_TRY(executor->compile_ahead());
  *out = std::move(executor);
  return {};
}

// Compiles the kernels of all steps. Their plans are made when a step needs them, which takes milliseconds.
Status Executor::compile_ahead() {
  const auto want = [this](const StepKey& key) -> Status {
    GretaGraph graph(model_.filter);
    GRETA_TRY(build_step(*model_.arch, model_.shape, model_.weights(), buffers_, key, &graph));
    return graph.bind(*kernels_, arena_.all());
  };
  return compile([&] {
    return each_step(model_, options_, plan_.step_tokens, [&](StepKey key) -> Status {
      GRETA_TRY(want(key));
      if (key.outputs <= 1) return {};
      key.outputs = 1;  // as where one prompt ends
      key.logits = std::min(key.logits, 1u);
      return want(key);
    });
  });
}

Status Executor::allocate() {
  Device& device = *model_.device;
  const Shape& s = model_.shape;
  Stream* stream = nullptr;
  GRETA_TRY(device.create_stream(&stream));
  stream_.reset(stream);
  kernels_ = std::make_unique<KernelSet>(*model_.kernels);

  const uint64_t state = plan_.groups.count * step_state_bytes(options_.sequences, plan_.pages_per_sequence);
  GRETA_TRY(step_.allocate(device, state, Memory::Device));
  host_step_.assign(divide_up(state, sizeof(uint64_t)), 0);
  for (Flight& flight : flights_) {
    GRETA_TRY(flight.step.allocate(device, state, Memory::Upload));
    if (plan_.states) GRETA_TRY(flight.runs.allocate(device, sizeof(StepRuns), Memory::Upload));
    GRETA_TRY(device.create_event(&flight.done, false));
  }
  if (plan_.states) GRETA_TRY(runs_.allocate(device, sizeof(StepRuns), Memory::Device));
  GRETA_TRY(drawn_.allocate(device, kDrawnBytes, Memory::Readback));
  if (const uint64_t bytes = rope_tables_bytes(s, plan_.context))
    GRETA_TRY(rope_.allocate(device, bytes, Memory::Device));
  GRETA_TRY(token_log_.allocate(device, round_up(uint64_t(plan_.pages) * kPageTokens * sizeof(uint32_t), 256),
                                Memory::Device));
  GRETA_TRY(counters_.allocate(device, kCounterCount * sizeof(uint32_t), Memory::Device));
  GRETA_TRY(readback_.allocate(device, readback_bytes(s, options_, plan_.step_tokens), Memory::Readback));
  GRETA_TRY(arena_.allocate(device, plan_.arena_bytes, Memory::Device));

  GRETA_TRY(describe_cache(model_, options_, &buffers_));
  GRETA_TRY(allocate_cache());
  buffers_.groups = plan_.groups.count;
  buffers_.step = step_.all();
  if (plan_.states) buffers_.runs = runs_.all();
  uint64_t at = 0;
  for (uint32_t i = 0; i < s.rope_tables; ++i) {
    const uint64_t bytes = rope_table_bytes(s.rope[i], plan_.context);
    buffers_.rope[i] = rope_.slice(at, bytes);
    at += bytes;
  }
  buffers_.token_log = token_log_.all();
  buffers_.counters = counters_.all();
  buffers_.drawn = drawn_.all();
  buffers_.readback = readback_.all();
  return upload_tables();
}

Status Executor::allocate_cache() {
  Device& device = *model_.device;
  set_groups(model_.shape, plan_.groups, &buffers_);
  const auto pages_of = [&](const StepBuffers::Cache& layer) -> uint64_t {
    return plan_.groups.group[layer.group].pages;
  };
  const auto states_of = [&](uint32_t layer) {
    return plan_.states * layer_state_bytes(model_.shape, layer);
  };
  std::vector<uint64_t> slices;
  for (uint32_t l = 0; l < model_.shape.layers; ++l) {
    const StepBuffers::Cache& layer = buffers_.cache[l];
    if (const uint64_t bytes = states_of(l)) slices.push_back(bytes);
    if (!layer.key_page_bytes) continue;
    slices.push_back(pages_of(layer) * layer.key_page_bytes);
    if (!layer.joined) slices.push_back(pages_of(layer) * layer.value_page_bytes);
  }
  cache_ = std::make_unique<Pool>(device, arena_limit(device.info()), std::move(slices));
  for (uint32_t l = 0; l < model_.shape.layers; ++l) {
    StepBuffers::Cache& layer = buffers_.cache[l];
    if (const uint64_t bytes = states_of(l)) GRETA_TRY(cache_->take(bytes, &layer.states));
    if (!layer.key_page_bytes) continue;
    GRETA_TRY(cache_->take(pages_of(layer) * layer.key_page_bytes, &layer.keys));
    layer.values = layer.keys;
    if (!layer.joined) GRETA_TRY(cache_->take(pages_of(layer) * layer.value_page_bytes, &layer.values));
  }
  return {};
}

// Uploads the rope tables and the StepState, and clears the token log and the counters.
Status Executor::upload_tables() {
  const Shape& s = model_.shape;
  std::vector<float> tables(rope_tables_bytes(s, plan_.context) / sizeof(float));
  float* table = tables.data();
  for (uint32_t i = 0; i < s.rope_tables; ++i) {
    fill_rope_table(s, model_.weights(), i, plan_.context, table);
    table += rope_table_bytes(s.rope[i], plan_.context) / sizeof(float);
  }
  Staging staging;
  GRETA_TRY(staging.open(*model_.device, 1 << 20));
  if (!tables.empty())
    GRETA_TRY(staging.upload(
        rope_.all(),
        [](void* context, uint64_t offset, void* host, uint64_t bytes) {
          __builtin_memcpy(host, static_cast<const uint8_t*>(context) + offset, bytes);
          return Status{};
        },
        tables.data()));
  GRETA_TRY(staging.finish());
  host_state().sequence_capacity = options_.sequences;
  host_state().page_capacity = plan_.pages_per_sequence;
  GRETA_TRY(upload(&host_state(), step_.buffer().bytes));
  GRETA_TRY(stream_->fill(token_log_.all(), 0));
  GRETA_TRY(stream_->fill(counters_.all(), 0));
  return stream_->wait();
}

}  // namespace greta
