#include "engine/adapter/adapter.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>

namespace greta {

namespace {

using Number = unsigned long long;  // for %llu

std::vector<uint8_t> transpose(const GgufTensor& source, const std::vector<uint8_t>& all) {
  const uint64_t width = quant_info(source.type).block_bytes, columns = source.ne[0], rows = source.ne[1];
  std::vector<uint8_t> out(all.size());
  for (uint64_t r = 0; r < rows; ++r)
    for (uint64_t c = 0; c < columns; ++c)
      memcpy(&out[(c * rows + r) * width], &all[(r * columns + c) * width], width);
  return out;
}

}  // namespace

// Finds a place for each matrix of an adapter, and fills it.
class Adapter::Binder {
 public:
  Binder(const Model& model, Adapter* adapter) : model_(model), adapter_(*adapter), file_(adapter->file_) {}

  Status bind_all(const AdapterOptions& options) {
    if (!file_.architecture.empty() && file_.architecture != model_.arch->name)
      return fail(Code::Argument, "%s: an adapter for %s, and the model is %s", file_.gguf.name(),
                  std::string(file_.architecture.substr(0, 64)).c_str(), model_.arch->name);
    if (file_.kind == AdapterKind::Control) return bind_directions(options);
    if (options.first_layer || options.last_layer)
      return fail(Code::Argument, "%s: a range of layers is for control vectors, and this is a LoRA",
                  file_.gguf.name());
    adapter_.factor_ = factor_of(file_, file_.pairs[0]);
    for (const LoraPair& pair : file_.pairs) GRETA_TRY(bind(pair));
    return {};
  }

  Status upload() {
    const size_t devices = model_.devices.size();
    std::vector<std::vector<uint64_t>> sizes(devices);
    for (const Part& part : parts_) sizes[part.device].push_back(bytes_of(part));
    for (size_t d = 0; d < devices; ++d) {
      Device& device = *model_.devices[d].device;
      adapter_.pools_.push_back(std::make_unique<Pool>(device, arena_limit(device.info()), sizes[d]));
    }
    for (size_t d = 0; d < devices; ++d) GRETA_TRY(on_device(model_, uint32_t(d), upload_to(uint32_t(d))));
    for (size_t d = 0; d < devices; ++d) adapter_.bytes_.push_back(adapter_.pools_[d]->allocated_bytes());
    return {};
  }

 private:
  // A matrix of an adapter on its way to a device: some rows of the file's tensor, or its transpose.
  struct Part {
    const GgufTensor* source;
    Tensor* to;
    uint32_t device;
    uint64_t first_row = 0, pieces = 1;  // as in WantedTensor
    bool turned = false;
  };

  // The rows of `part` out of the bytes of its source.
  static std::vector<uint8_t> rows_of(const Part& part, const std::vector<uint8_t>& all) {
    const GgufTensor& source = *part.source;
    const uint64_t rows = source.ne[1], row_bytes = quant_bytes(source.type, source.ne[0]);
    const uint64_t stride = rows / part.pieces, taken = part.to->n / part.pieces;
    std::vector<uint8_t> out;
    out.reserve(taken * part.pieces * part.to->count * row_bytes);
    for (uint64_t piece = 0; piece < part.pieces * part.to->count; ++piece) {
      const auto begin = all.begin() + ptrdiff_t((piece * stride + part.first_row) * row_bytes);
      out.insert(out.end(), begin, begin + ptrdiff_t(taken * row_bytes));
    }
    return out;
  }

  static uint64_t bytes_of(const Part& part) {
    const Tensor& t = *part.to;
    return greta::tensor_bytes(t.type, t.layout, t.n, t.depth, t.count);
  }

  Status upload_to(uint32_t index) {
    Staging staging;
    GRETA_TRY(staging.open(*model_.devices[index].device, 1 << 20));
    for (const Part& part : parts_) {
      if (part.device != index) continue;
      const GgufTensor& source = *part.source;
      std::vector<uint8_t> bytes(source.bytes);
      GRETA_TRY(file_.gguf.source().read_at(source.part, source.offset, bytes.data(), bytes.size()));
      if (!all_finite(source.type, bytes.data(), bytes.size()))  // the file has changed since it was checked
        return fail(Code::File, "%s: %s: it holds a number that is not finite", file_.gguf.name(),
                    std::string(source.name).c_str());
      bytes = part.turned ? transpose(source, bytes) : rows_of(part, bytes);
      GRETA_TRY(adapter_.pools_[index]->take(bytes.size(), &part.to->slice));
      GRETA_TRY(staging.upload(
          part.to->slice,
          [](void* context, uint64_t offset, void* host, uint64_t count) {
            memcpy(host, static_cast<const uint8_t*>(context) + offset, count);
            return Status{};
          },
          bytes.data()));
    }
    return staging.finish();
  }

  Status bind_directions(const AdapterOptions& options) {
    const uint32_t first = std::max(options.first_layer, 1u),
                   last = options.last_layer ? options.last_layer : model_.shape.layers - 1;
    if (first > last || last >= model_.shape.layers)
      return fail(Code::Argument, "%s: layers %u to %u, expected a range from 1 to %u", file_.gguf.name(),
                  first, last, model_.shape.layers - 1);
    adapter_.directions_.resize(model_.shape.layers);
    for (const Direction& direction : file_.directions) {
      const std::string name(direction.values->name);
      if (direction.layer >= model_.shape.layers)
        return fail(Code::File, "%s: %s: the model has layers 0 to %u", file_.gguf.name(), name.c_str(),
                    model_.shape.layers - 1);
      if (direction.values->ne[0] != model_.shape.width)
        return fail(Code::File, "%s: %s has %llu values, and the model's layers have %u", file_.gguf.name(),
                    name.c_str(), Number(direction.values->ne[0]), model_.shape.width);
      if (direction.layer < first || direction.layer > last) continue;
      Tensor& to = adapter_.directions_[direction.layer];
      to = {QuantType::f32, Layout::Gguf, model_.shape.width, 1};
      // A row of values is a column of a matrix, whose bytes are the same.
      parts_.push_back({direction.values, &to, model_.placement.layer(direction.layer), 0, 1, true});
      GRETA_TRY(check_row(CallMaker().matmul(to, {}, {}), *direction.values, parts_.back().device));
    }
    return {};
  }

  // Every part of the model that is made of the pair's tensor gets its own part of the pair.
  Status bind(const LoraPair& pair) {
    const std::string target(pair.target);
    const GgufTensor* tensor = model_.gguf.find_tensor(pair.target);
    const auto& named = model_.store.named();
    const auto is_target = [&](const NamedTensor& each) {
      return each.name == pair.target && there(*each.wanted.tensor);
    };
    if (!tensor || std::ranges::none_of(named, is_target))
      return fail(Code::File, "%s: %s: the model has no tensor %s", file_.gguf.name(),
                  std::string(pair.a->name).c_str(), target.c_str());
    GRETA_TRY(check_shapes(pair, *tensor));
    for (const NamedTensor& each : named)
      if (is_target(each)) GRETA_TRY(bind(pair, each));
    return {};
  }

  bool is_embedding(const LoraPair& pair) const {
    return pair.target == model_.arch->tensors.token_embedding.text;
  }

  Status check_shapes(const LoraPair& pair, const GgufTensor& of) const {
    const GgufTensor &a = *pair.a, &b = *pair.b;
    const auto check = [&](const GgufTensor& tensor, uint64_t row, uint64_t rows) {
      if (tensor.ne[0] == row && tensor.ne[1] == rows && tensor.ne[2] == of.ne[2]) return Status{};
      return fail(Code::File, "%s: %s has shape [%llu, %llu, %llu], expected [%llu, %llu, %llu] for %s",
                  file_.gguf.name(), std::string(tensor.name).c_str(), Number(tensor.ne[0]),
                  Number(tensor.ne[1]), Number(tensor.ne[2]), Number(row), Number(rows), Number(of.ne[2]),
                  std::string(pair.target).c_str());
    };
    if (is_embedding(pair)) {
      GRETA_TRY(check(a, pair.rank, of.ne[1]));
      return check(b, pair.rank, of.ne[0]);
    }
    GRETA_TRY(check(a, of.ne[0], pair.rank));
    return check(b, pair.rank, of.ne[1]);
  }

  Status bind(const LoraPair& pair, const NamedTensor& named) {
    const Weights& weights = model_.weights();
    const WantedTensor& wanted = named.wanted;
    const uint32_t device = named.of_experts ? model_.placement.experts_of(named.piece - 1)
                                             : model_.placement.device[named.piece];
    const bool matrix = wanted.use == Use::Matrix || wanted.use == Use::Experts;
    if (is_embedding(pair)) {
      const bool embeds = wanted.tensor == &weights.token_embedding;
      if (embeds) GRETA_TRY(bind_embedding(pair, device));
      return !embeds || weights.tied ? bind_tied(pair, *wanted.tensor, device) : Status{};
    }
    if (!matrix || (wanted.held != Held::Apart && wanted.held != Held::Cut && wanted.held != Held::Woven))
      return fail(Code::Unsupported, "%s: %s: an adapter of such a tensor is not supported",
                  file_.gguf.name(), std::string(pair.a->name).c_str());
    LowRank& low = adapter_.products_[wanted.tensor];
    const uint32_t count = uint32_t(wanted.count), n = uint32_t(wanted.n), depth = uint32_t(wanted.depth);
    low.factor = relative(pair);
    low.a = {pair.a->type, Layout::Gguf, pair.rank, depth, count};
    low.b = {pair.b->type, Layout::Gguf, n, pair.rank, count};
    parts_.push_back({pair.a, &low.a, device});
    parts_.push_back({pair.b, &low.b, device, wanted.first_row, wanted.pieces});
    const CallMaker make;
    const auto product = [&](const Tensor& tensor) {
      return wanted.use == Use::Experts ? make.matmul_each(tensor, {}, {}, {}, 1, 1)
                                        : make.matmul(tensor, {}, {});
    };
    GRETA_TRY(check_row(product(low.a), *pair.a, device));
    return check_row(product(low.b), *pair.b, device);
  }

  Status bind_embedding(const LoraPair& pair, uint32_t device) {
    LowRank& low = adapter_.embedding_;
    low.factor = relative(pair);
    low.a = {pair.a->type, Layout::Gguf, model_.shape.vocab, pair.rank};
    low.b = {pair.b->type, Layout::Gguf, model_.shape.width, pair.rank};
    parts_.push_back({pair.a, &low.a, device});
    parts_.push_back({pair.b, &low.b, device});
    GRETA_TRY(check_row(CallMaker().embed(low.a, {}), *pair.a, device));
    return check_row(CallMaker().matmul(low.b, {}, {}), *pair.b, device);
  }

  // The embedding is the output matrix, too. There a and b change places: the rows of an embedding are those
  // of the output, and b has a row for each value of what they are multiplied by.
  Status bind_tied(const LoraPair& pair, const Tensor& output, uint32_t device) {
    if (quant_info(pair.b->type).block != 1)
      return fail(Code::Unsupported,
                  "%s: %s is %s, and a model whose embedding is its output takes f32, f16 or "
                  "bf16 there",
                  file_.gguf.name(), std::string(pair.b->name).c_str(), quant_info(pair.b->type).name);
    LowRank& low = adapter_.products_[&output];
    low.factor = relative(pair);
    low.a = {pair.b->type, Layout::Gguf, pair.rank, model_.shape.width};
    low.b = {pair.a->type, Layout::Gguf, model_.shape.vocab, pair.rank};
    parts_.push_back({pair.b, &low.a, device, 0, 1, true});
    parts_.push_back({pair.a, &low.b, device});
    GRETA_TRY(check_row(CallMaker().matmul(low.a, {}, {}), *pair.b, device));
    return check_row(CallMaker().matmul(low.b, {}, {}), *pair.a, device);
  }

  float relative(const LoraPair& pair) const { return factor_of(file_, pair) / adapter_.factor_; }

  Status check_row(const Call& call, const GgufTensor& tensor, uint32_t device) const {
    const KernelRow* row = nullptr;
    return within(choose_row({&call, 1}, 1, model_.devices[device].filter, &row), "%s: %s", file_.gguf.name(),
                  std::string(tensor.name).c_str());
  }

  const Model& model_;
  Adapter& adapter_;
  const AdapterFile& file_;
  std::vector<Part> parts_;
};

Status Adapter::open(const Model& model, AdapterFile&& file, const AdapterOptions& options,
                     std::shared_ptr<Adapter>* out) {
  auto adapter = std::make_shared<Adapter>();
  adapter->file_ = std::move(file);
  Binder binder(model, adapter.get());
  GRETA_TRY(binder.bind_all(options));
  GRETA_TRY(binder.upload());
  Checksum sum;
  sum.add(&adapter->file_.identity, sizeof adapter->file_.identity);
  sum.add(&options.first_layer, sizeof options.first_layer);
  sum.add(&options.last_layer, sizeof options.last_layer);
  adapter->identity_ = sum.value();
  *out = std::move(adapter);
  return {};
}

uint64_t Adapter::device_bytes() const {
  uint64_t sum = 0;
  for (const uint64_t bytes : bytes_) sum += bytes;
  return sum;
}

const LowRank* Adapter::find(const Tensor& weight) const {
  const auto found = products_.find(&weight);
  return found == products_.end() ? nullptr : &found->second;
}

Status AdapterList::make(std::span<const AdapterUse> uses, std::shared_ptr<const AdapterList>* out) {
  if (uses.size() > kMaxSequenceAdapters)
    return fail(Code::Argument, "%zu adapters at once, at most %u", uses.size(), kMaxSequenceAdapters);
  std::vector<AdapterUse> kept;
  for (size_t i = 0; i < uses.size(); ++i) {
    const Adapter& adapter = *uses[i].adapter;
    if (!std::isfinite(uses[i].scale) || !std::isfinite(uses[i].scale * adapter.factor()))
      return fail(Code::Argument, "%s: a scale of %g, expected a finite number", adapter.file().gguf.name(),
                  double(uses[i].scale));
    for (size_t j = 0; j < i; ++j)
      if (uses[j].adapter->identity() == adapter.identity())
        return fail(Code::Argument, "%s: adapters %zu and %zu are the same", adapter.file().gguf.name(), j,
                    i);
    if (uses[i].scale != 0) kept.push_back(uses[i]);
  }
  // Sums are made in this order, whatever the caller's.
  std::ranges::sort(kept, {}, [](const AdapterUse& use) { return use.adapter->identity(); });
  *out = kept.empty() ? nullptr : std::make_shared<const AdapterList>(std::move(kept));
  return {};
}

AdapterList::AdapterList(std::vector<AdapterUse> uses) : uses_(std::move(uses)) {
  Checksum sum;
  for (const AdapterUse& use : uses_) {
    const uint64_t identity = use.adapter->identity();
    sum.add(&identity, sizeof identity);
    sum.add(&use.scale, sizeof use.scale);
    ++use.adapter->users_;
  }
  identity_ = std::max<uint64_t>(sum.value(), 1);
}

AdapterList::~AdapterList() {
  for (const AdapterUse& use : uses_) --use.adapter->users_;
}

uint64_t identity_with(uint64_t of_model, uint64_t of_adapters) {
  if (!of_adapters) return of_model;
  Checksum sum;
  sum.add(&of_model, sizeof of_model);
  sum.add(&of_adapters, sizeof of_adapters);
  return sum.value();
}

}  // namespace greta
