#include "engine/model/tensor_store.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "engine/model/weight_parts.h"

namespace greta {

static Status check_finite(const Gguf& gguf, const char* name, const GgufTensor& tensor) {
  std::vector<float> values(tensor.bytes / sizeof(float));
  GRETA_TRY(gguf.source().read_at(tensor.part, tensor.offset, values.data(), values.size() * sizeof(float)));
  for (size_t i = 0; i < values.size(); ++i)
    if (!std::isfinite(values[i]))
      return fail(Code::File, "%s: %s holds %g at %zu, expected finite numbers", gguf.name(), name,
                  double(values[i]), i);
  return {};
}

// Checks that the file's tensor has the wanted shape, and places it.
Status TensorStore::find(Gguf& gguf, const NamedTensor& named, const RowFilter& filter, uint32_t device) {
  const char* const name = named.name.c_str();
  const WantedTensor& wanted = named.wanted;
  const GgufTensor* source = gguf.find_tensor(name);
  if (!source)
    return wanted.name.optional
               ? Status{}
               : fail(Code::File, "%s: no tensor %s (required by %s)", gguf.name(), name, wanted.keys);
  const bool apart = wanted.held == Held::Apart || wanted.held == Held::Cut,
             turned = wanted.held == Held::Transposed;
  const bool cut_vector = wanted.use == Use::Vector && wanted.rows;
  const uint64_t stride = wanted.rows ? wanted.rows : wanted.n;
  const uint64_t depth = cut_vector ? wanted.rows : turned ? wanted.n : wanted.depth;
  const uint64_t rows = cut_vector ? 1
                        : apart    ? stride
                                   : stride * wanted.count,
                 count = apart ? wanted.count : 1;
  if (source->ne[0] != depth || source->ne[1] != rows || source->ne[2] != count || source->ne[3] != 1)
    return fail(Code::File, "%s: %s has shape [%llu, %llu, %llu, %llu], expected [%llu, %llu, %llu] (by %s)",
                gguf.name(), name, (unsigned long long)source->ne[0], (unsigned long long)source->ne[1],
                (unsigned long long)source->ne[2], (unsigned long long)source->ne[3],
                (unsigned long long)depth, (unsigned long long)rows, (unsigned long long)count, wanted.keys);
  if (rows > UINT32_MAX || depth > UINT32_MAX || std::max(rows * count, wanted.n * wanted.count) > UINT32_MAX)
    return fail(Code::Unsupported, "%s: %s has %llu rows, at most %u", gguf.name(), name,
                (unsigned long long)std::max(rows * count, wanted.n * wanted.count), UINT32_MAX);
  if (wanted.use == Use::Vector && source->type != QuantType::f32)
    return fail(Code::Unsupported, "%s: %s has type %s, expected f32", gguf.name(), name,
                quant_info(source->type).name);
  if (wanted.finite) GRETA_TRY(check_finite(gguf, name, *source));
  if (source->offset % 4)
    return fail(Code::Unsupported, "%s: %s starts at byte %llu, expected a multiple of 4", gguf.name(), name,
                (unsigned long long)source->offset);
  const bool multiplied = wanted.use != Use::Embedding && wanted.use != Use::Vector;
  Tensor* out = wanted.tensor;
  out->type = turned ? transposed_type(source->type) : source->type;
  out->layout = multiplied ? preferred_layout(out->type, filter) : Layout::Gguf;
  out->n = uint32_t(wanted.n);
  out->depth = uint32_t(wanted.depth);
  out->count = uint32_t(wanted.count);
  const uint64_t row_bytes = quant_bytes(source->type, cut_vector ? 1 : depth),
                 taken = turned ? wanted.depth : wanted.n;
  const bool copy = wanted.tensor == &weights_.output || wanted.tensor == &weights_.head.embedding;
  const bool again = copy && named.name == placed_.front().source->name;
  placed_.push_back({source, out, wanted.first_row * row_bytes, taken * wanted.count * row_bytes, false,
                     wanted.use == Use::Experts, wanted.held, stride / wanted.pieces * row_bytes,
                     wanted.pieces, named.piece, device, named.of_experts, named.of_head, again,
                     wanted.on_host && !filter.device->unified_memory, wanted.factor});
  placed_.back().in_place = on_[device].maps && can_stay(gguf.source(), placed_.back(), *filter.device);
  if (wanted.use == Use::Vector) return {};

  // A type without kernels on this device is refused now, with the tensor's name, and not during generation.
  const CallMaker make;
  const Call call = wanted.use == Use::Embedding ? make.embed(*out, {})
                    : wanted.use == Use::Matrix  ? make.matmul(*out, {}, {})
                                                 : make.matmul_each(*out, {}, {}, {}, out->count, 1);
  const KernelRow* row = nullptr;
  GRETA_TRY(within(choose_row({&call, 1}, 1, filter, &row), "%s: %s", gguf.name(), name));
  if (placed_.back().in_place) return {};
  return within(cut_to(arena_limit(*filter.device), out), "%s: %s", gguf.name(), name);
}

Status TensorStore::cut_to(uint64_t limit, Tensor* tensor) {
  if (bytes_of(*tensor) <= limit) return {};
  GRETA_TRY(cut_tensor(*tensor, limit, &parts_.emplace_back()));
  tensor->parts = &parts_.back();
  return {};
}

// The most bytes that are imported at once. They are whole pages.
static uint64_t import_limit(const DeviceInfo& device) {
  const uint64_t ends = 2 * page_bytes();
  const uint64_t most = std::min(device.max_allocation_bytes, device.max_import_bytes);
  return most > ends ? most - ends : 0;
}

// A tensor can stay in the caller's memory, or in a mapped file, if the device can read it at its offset.
bool TensorStore::can_stay(const Source& source, const Placed& placed, const DeviceInfo& device) {
  if (placed.tensor->layout != Layout::Gguf || placed.bytes > import_limit(device)) return false;
  if (placed.held != Held::Apart || placed.factor != 1) return false;
  const auto begin = reinterpret_cast<uint64_t>(source.memory(placed.source->part));
  return (begin + placed.source->offset + placed.offset) % device.weight_alignment == 0;
}

// Returns true if the device takes mapped pages and the source can be mapped. Other files are copied.
static bool can_map(Source& source, const DeviceInfo& device) {
  if (!device.imports_host || !source.maps()) return false;
  const uint8_t* pages = nullptr;
  for (uint32_t part = 0; part < source.parts(); ++part) {
    if (source.map(part, &pages).ok()) continue;
    clear_error_text();
    return false;
  }
  return true;
}

// Reads factors of the rotary frequencies at once, since they go into a table that the host makes.
Status TensorStore::find_factors(const Gguf& gguf, TensorName name, uint32_t pairs, std::vector<float>* out) {
  const GgufTensor* factors = name.text ? gguf.find_tensor(name.text) : nullptr;
  if (!factors) return {};
  if (factors->type != QuantType::f32 || factors->ne[0] != pairs || factors->dims != 1)
    return fail(Code::File,
                "%s: %s is %s[%llu], expected f32[%u] (by rope.dimension_count, or attention.key_length, or "
                "embedding_length and attention.head_count)",
                gguf.name(), name.text, quant_info(factors->type).name, (unsigned long long)factors->ne[0],
                pairs);
  out->resize(pairs);
  GRETA_TRY(gguf.source().read_at(factors->part, factors->offset, out->data(), factors->bytes));
  for (float factor : *out)
    if (!(factor > 0 && factor <= 1e30f))  // by so much a pair does not turn at all
      return fail(Code::File, "%s: %s holds %g, expected numbers above 0, to 1e30", gguf.name(), name.text,
                  double(factor));
  return {};
}

// Reads the embeddings of positions, which go into such a table, too.
Status TensorStore::find_positions(const Gguf& gguf, const Arch& arch, const Shape& shape) {
  if (!shape.positions) return {};
  const char* name = arch.tensors.position_embedding.text;
  const GgufTensor& rows = *gguf.find_tensor(name);
  if (rows.type != QuantType::f32 || rows.ne[0] != shape.width || rows.dims != 2)
    return fail(Code::File,
                "%s: %s is %s with rows of %llu values, expected f32 with rows of %u (embedding_length)",
                gguf.name(), name, quant_info(rows.type).name, (unsigned long long)rows.ne[0], shape.width);
  weights_.position_embedding.resize(uint64_t(shape.positions) * shape.width);
  return gguf.source().read_at(rows.part, rows.offset, weights_.position_embedding.data(), rows.bytes);
}

Status TensorStore::describe(Gguf& gguf, const Arch& arch, const Shape& shape, Devices devices,
                             const Placement& placement, bool in_place) {
  const TensorNames& names = arch.tensors;
  Weights& w = weights_;
  w = {};
  placed_.clear();
  parts_.clear();
  on_ = std::vector<OnDevice>(devices.size());
  for (size_t d = 0; in_place && d < devices.size(); ++d)
    on_[d].maps = can_map(gguf.source(), *devices[d].filter.device);
  experts_used_ = std::max(1u, shape.experts.used);
  const bool apart = placement.embedding() != placement.output();
  named_ = model_tensors(gguf, arch, shape, &w, apart);
  for (const NamedTensor& each : named_) {
    const uint32_t device =
        each.of_experts ? placement.experts_of(each.piece - 1) : placement.device[each.piece];
    GRETA_TRY(find(gguf, each, devices[device].filter, device));
  }

  GRETA_TRY(find_positions(gguf, arch, shape));
  const uint32_t pairs = shape.rope[0].width / 2;
  GRETA_TRY(find_factors(gguf, names.rope_factors, pairs, &w.rope_factors));
  GRETA_TRY(find_factors(gguf, names.long_factors, pairs, &w.long_factors));
  return find_factors(gguf, names.short_factors, pairs, &w.short_factors);
}

uint64_t TensorStore::on_all(uint64_t (TensorStore::*bytes)(uint32_t) const) const {
  uint64_t sum = 0;
  for (uint32_t d = 0; d < on_.size(); ++d) sum += (this->*bytes)(d);
  return sum;
}

uint64_t TensorStore::device_bytes(uint32_t device) const {
  uint64_t bytes = 0;
  for (const Placed& p : placed_)
    if (!p.in_place && !p.on_host && p.device == device)
      for (const Tensor& part : parts_of(*p.tensor)) bytes += padded_bytes(part);
  return bytes;
}

uint64_t TensorStore::head_bytes() const {
  uint64_t bytes = 0;
  for (const Placed& p : placed_)
    if (p.of_head && !p.in_place)
      for (const Tensor& part : parts_of(*p.tensor)) bytes += padded_bytes(part);
  return bytes;
}

uint64_t TensorStore::host_bytes() const {
  uint64_t bytes = 0;
  for (const Placed& p : placed_)
    if (!p.in_place && p.on_host)
      for (const Tensor& part : parts_of(*p.tensor)) bytes += padded_bytes(part);
  return bytes;
}

TensorStore::PieceBytes TensorStore::piece_bytes(uint32_t device, bool in_place) const {
  PieceBytes bytes = {std::vector<uint64_t>(weights_.layers.size() + 2),
                      std::vector<uint64_t>(weights_.layers.size())};
  for (const Placed& p : placed_) {
    if (p.device != device || p.on_host || (p.in_place && !in_place)) continue;
    uint64_t& sum = p.of_experts ? bytes.experts[p.piece - 1] : bytes.pieces[p.piece];
    if (p.in_place)
      sum += p.bytes;
    else
      for (const Tensor& part : parts_of(*p.tensor)) sum += padded_bytes(part);
  }
  return bytes;
}

uint64_t TensorStore::mapping_saves(const Source& source, Devices devices) const {
  uint64_t bytes = 0;
  for (const Placed& p : placed_) {
    const DeviceInfo& device = *devices[p.device].filter.device;
    if (device.imports_host && !p.in_place && !p.on_host && can_stay(source, p, device))
      bytes += padded_bytes(*p.tensor);
  }
  return bytes;
}

uint64_t TensorStore::mapped_bytes(uint32_t device) const {
  uint64_t bytes = 0;
  for (const Placed& p : placed_) bytes += p.in_place && p.device == device ? p.bytes : 0;
  return bytes;
}

uint64_t TensorStore::file_bytes() const {
  uint64_t bytes = 0;
  for (const Placed& p : placed_) bytes += p.again ? 0 : p.bytes;
  return bytes;
}

template <class Amount>
uint64_t TensorStore::token_share(Amount amount) const {
  uint64_t sum = 0;
  for (const Placed& p : placed_) {
    const bool gathered = (p.tensor == &weights_.token_embedding && !weights_.tied) ||
                          p.tensor == &weights_.head.embedding ||
                          p.tensor == &weights_.layer_embedding;  // a token reads one row of it
    const uint64_t all = amount(p);
    sum += gathered ? all / p.tensor->n : p.routed ? all / p.tensor->count * experts_used_ : all;
  }
  return sum;
}

static uint64_t values_of(const Tensor& tensor) { return uint64_t(tensor.n) * tensor.depth * tensor.count; }

// The bytes of a tensor in GGUF order, in the type that kernels read.
static uint64_t read_bytes(const Tensor& tensor) { return quant_bytes(tensor.type, values_of(tensor)); }

uint64_t TensorStore::token_bytes() const {
  return token_share([](const Placed& p) { return read_bytes(*p.tensor); });
}

uint64_t TensorStore::token_parameters(uint32_t device) const {
  return token_share([=](const Placed& p) { return p.device == device ? values_of(*p.tensor) : 0; });
}

uint64_t TensorStore::largest_product(uint32_t device) const {
  uint64_t most = 0;
  for (const Placed& p : placed_) {
    if (p.device != device || p.tensor == &weights_.token_embedding || p.tensor == &weights_.output ||
        p.tensor == &weights_.head.embedding || p.tensor == &weights_.layer_embedding)
      continue;
    most = std::max(most,
                    values_of(*p.tensor) / (p.routed ? p.tensor->count : 1) * (p.routed ? experts_used_ : 1));
  }
  return most;
}

uint64_t TensorStore::parameters() const {
  uint64_t count = 0;
  for (const Placed& p : placed_) count += p.again ? 0 : values_of(*p.tensor);
  return count;
}

namespace {

// Reads mapped weights from disk now, where the caller sees the progress and may cancel.
Status read_in_place(const Slice& slice, LoadMeter* meter) {
  const uint8_t* pages = static_cast<const uint8_t*>(slice.buffer->mapped) + slice.offset;
  for (uint64_t at = 0; at < slice.bytes; at += kMeterBytes) {
    const uint64_t bytes = std::min(kMeterBytes, slice.bytes - at);
    populate_pages(pages + at, bytes);
    GRETA_TRY(meter->advance(bytes));
  }
  return {};
}

}  // namespace

// Imports a device's tensors in the order of the file, as many at once as a buffer may hold.
Status TensorStore::import_pages(Source& source, Device& device, uint32_t index) {
  const uint64_t limit = import_limit(device.info());
  OnDevice& on = on_[index];
  std::vector<const Placed*> order;
  for (const Placed& placed : placed_)
    if (placed.device == index && placed.bytes <= limit) order.push_back(&placed);
  const auto place = [](const Placed* p) {
    return std::pair(p->source->part, p->source->offset + p->offset);
  };
  std::ranges::sort(order, {}, place);
  on.mapped.clear();
  for (const Placed* placed : order) {
    const auto [part, offset] = place(placed);
    const uint64_t end = offset + placed->bytes;
    if (on.mapped.empty() || on.mapped.back().part != part || end - on.mapped.back().offset > limit) {
      Mapped& next = on.mapped.emplace_back();
      next.part = part;
      next.offset = offset;
      next.bytes = 0;
    }
    on.mapped.back().bytes = std::max(on.mapped.back().bytes, end - on.mapped.back().offset);
  }
  for (Mapped& range : on.mapped) {
    const uint8_t* pages = nullptr;
    GRETA_TRY(source.map(range.part, &pages));
    GRETA_TRY(range.memory.import_host(device, pages + range.offset, range.bytes));
  }
  for (const Placed& p : placed_)
    if (p.in_place && p.device == index &&
        !mapped(on, p.source->part, p.source->offset + p.offset, p.bytes, device.info()).buffer)
      return fail(Code::Unsupported, "%.*s is misaligned", int(p.source->name.size()), p.source->name.data());
  return {};
}

// Where the device reads these bytes of the file; empty if they were not imported or are misaligned.
Slice TensorStore::mapped(const OnDevice& on, uint32_t part, uint64_t offset, uint64_t bytes,
                          const DeviceInfo& device) const {
  for (const Mapped& range : on.mapped) {
    if (range.part != part || offset < range.offset || offset + bytes > range.offset + range.bytes) continue;
    const Slice slice = range.memory.slice(offset - range.offset, bytes);
    if (slice.address() % device.weight_alignment == 0) return slice;
  }
  return {};
}

Status TensorStore::copy_all(const DeviceInfo& device, uint32_t index) {
  on_[index].maps = false;
  on_[index].mapped.clear();
  for (Placed& placed : placed_) {
    if (!placed.in_place || placed.device != index) continue;
    placed.in_place = false;
    GRETA_TRY(within(cut_to(arena_limit(device), placed.tensor), "%.*s", int(placed.source->name.size()),
                     placed.source->name.data()));
  }
  return {};
}

// The pool is told all slices, so that it allocates no more than the memory plan says.
std::unique_ptr<Pool> TensorStore::make_pool(Device& device, uint32_t index, bool on_host) const {
  std::vector<uint64_t> slices;
  for (const Placed& placed : placed_)
    if (!placed.in_place && placed.device == index && placed.on_host == on_host)
      for (const Tensor& part : parts_of(*placed.tensor)) slices.push_back(bytes_of(part));
  return std::make_unique<Pool>(device, arena_limit(device.info()), std::move(slices),
                                on_host ? Memory::Upload : Memory::Device);
}

Status TensorStore::load(Gguf& gguf, Devices devices, const Progress& progress) {
  Source& source = gguf.source();
  for (uint32_t d = 0; d < devices.size(); ++d) {
    Device& device = *devices[d].device;
    if (on_[d].maps && !import_pages(source, device, d).ok()) {
      clear_error_text();
      GRETA_TRY(copy_all(device.info(), d));
    }
    on_[d].pool = make_pool(device, d, false);
    on_[d].host_pool = make_pool(device, d, true);
  }
  uint64_t all = 0;
  for (const Placed& placed : placed_) all += read_bytes(*placed.tensor);
  LoadMeter meter{progress, all, 0, &source};
  GRETA_TRY(source.check_mapped());
  const bool read_now = mapped_bytes() <= memory_available_bytes();
  const auto on = [&](uint32_t d, Status status) {
    return devices.size() > 1 ? within(status, "device %s", devices[d].id) : status;
  };
  std::deque<Loader> loaders;
  for (const ModelDevice& each : devices) loaders.emplace_back(each, &meter);
  for (const Placed& placed : placed_) {
    const GgufTensor& from = *placed.source;
    Loader& loader = loaders[placed.device];
    if (placed.in_place) {
      placed.tensor->slice =
          mapped(on_[placed.device], from.part, from.offset + placed.offset, placed.bytes, loader.device);
      GRETA_TRY(read_now ? read_in_place(placed.tensor->slice, &meter) : meter.advance(placed.bytes));
    } else {
      const Status loaded =
          within(load_copied(gguf, placed, &loader), "%.*s", int(from.name.size()), from.name.data());
      GRETA_TRY(on(placed.device, loaded));
    }
  }
  for (uint32_t d = 0; d < devices.size(); ++d) GRETA_TRY(on(d, loaders[d].upload.finish()));
  if (weights_.tied) weights_.output = weights_.token_embedding;
  return {};
}

// Multiplies values of float32.
static void scale_values(float factor, std::vector<uint8_t>* bytes) {
  for (size_t at = 0; at < bytes->size(); at += sizeof(float)) {
    float value = 0;
    memcpy(&value, bytes->data() + at, sizeof value);
    value *= factor;
    memcpy(bytes->data() + at, &value, sizeof value);
  }
}

// Loads a tensor into memory of its own. On a device that reads mapped pages, a packed matrix is packed from
// them. Matrices that the file has in another order are first made in the host's memory.
Status TensorStore::load_copied(Gguf& gguf, const Placed& placed, Loader* loader) {
  const GgufTensor& from = *placed.source;
  const OnDevice& on = on_[placed.device];
  const bool apart = placed.held == Held::Apart && placed.factor == 1;
  std::vector<uint8_t> made;
  Source memory;
  if (placed.factor != 1) {
    made.resize(placed.bytes);
    GRETA_TRY(gguf.source().read_at(from.part, from.offset + placed.offset, made.data(), made.size()));
    scale_values(placed.factor, &made);
    GRETA_TRY(memory.open_memory(made.data(), made.size()));
  } else if (!apart) {
    GRETA_TRY(loader->stacked.make(
        gguf.source(), {from.part, from.type, from.offset + placed.offset, placed.stride, placed.pieces},
        placed.held, *placed.tensor, &made));
    GRETA_TRY(memory.open_memory(made.data(), made.size()));
  }
  const Source& source = apart ? gguf.source() : memory;
  const uint32_t file_part = apart ? from.part : 0;
  const auto load_one = [&](uint64_t offset, uint64_t bytes, Tensor& to) -> Status {
    GRETA_TRY((placed.on_host ? on.host_pool : on.pool)->take(bytes_of(to), &to.slice));
    const Slice pages = apart ? mapped(on, file_part, offset, bytes, loader->device) : Slice{};
    if (to.layout == Layout::Gguf || !pages.buffer) return loader->upload.add(source, file_part, offset, to);
    return loader->upload.pack_mapped(pages, to);
  };
  uint64_t offset = apart ? from.offset + placed.offset : 0;
  if (!placed.tensor->parts) return load_one(offset, placed.bytes, *placed.tensor);
  const auto parts =
      std::ranges::find_if(parts_, [&](const auto& each) { return &each == placed.tensor->parts; });
  for (Tensor& part : *parts) {
    const uint64_t bytes = quant_bytes(part.type, uint64_t(part.n) * part.depth * part.count);
    GRETA_TRY(load_one(offset, bytes, part));
    offset += bytes;
  }
  return {};
}

}  // namespace greta
