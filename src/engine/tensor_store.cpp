#include "engine/tensor_store.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace greta {

constexpr uint64_t kStagingBytes = 4 << 20;
constexpr uint64_t kReadBytes = 16 << 20;  // between two calls of progress

static bool is_cpu_with_maps(const DeviceInfo& info) { return info.cpu_type && info.unified_memory; }

Status TensorStore::find(const Gguf& gguf, const char* name, Tensor* out, uint64_t depth, uint64_t n,
                         bool multiplied, const RowFilter& filter) {
  const GgufTensor* source = gguf.find_tensor(name);
  if (!source) return fail(Code::File, "%s: no tensor %s", gguf.name(), name);
  const uint64_t rows = n ? n : 1;
  if (source->ne[0] != depth || source->ne[1] != rows || source->ne[2] != 1 || source->ne[3] != 1)
    return fail(Code::File, "%s: %s has shape [%llu, %llu, %llu, %llu], expected [%llu, %llu]", gguf.name(), name,
                (unsigned long long)source->ne[0], (unsigned long long)source->ne[1],
                (unsigned long long)source->ne[2], (unsigned long long)source->ne[3], (unsigned long long)depth,
                (unsigned long long)rows);
  if (rows > UINT32_MAX || depth > UINT32_MAX)
    return fail(Code::Unsupported, "%s: %s has %llu rows, at most %u", gguf.name(), name, (unsigned long long)rows,
                UINT32_MAX);
  if (n == 0 && source->type != QuantType::f32)
    return fail(Code::Unsupported, "%s: %s has type %s, expected f32", gguf.name(), name,
                quant_info(source->type).name);
  if (source->offset % 4)
    return fail(Code::Unsupported, "%s: %s starts at byte %llu, expected a multiple of 4", gguf.name(), name,
                (unsigned long long)source->offset);
  out->type = source->type;
  out->layout = multiplied ? preferred_layout(source->type, filter) : Layout::Gguf;
  out->n = uint32_t(rows);
  out->depth = uint32_t(depth);
  placed_.push_back({source, out, maps_ && out->layout == Layout::Gguf});
  if (n == 0) return {};

  // A type without kernels on this device is said now, with the tensor's name, not in mid-generation.
  Call call;
  call.op = multiplied ? Op::Matmul : Op::Embed;
  call.weight = *out;
  call.width = call.vocab = uint32_t(depth);
  call.vocab = uint32_t(rows);
  const KernelRow* row = nullptr;
  return within(choose_row({&call, 1}, 1, filter, &row), "%s: %s", gguf.name(), name);
}

Status TensorStore::find_layer(const Gguf& gguf, const TensorNames& names, const Shape& s, uint32_t index,
                               const RowFilter& filter) {
  const uint64_t q = uint64_t(s.heads) * s.key_width, k = uint64_t(s.kv_heads) * s.key_width;
  const uint64_t v = uint64_t(s.kv_heads) * s.value_width, o = uint64_t(s.heads) * s.value_width;
  Layer& layer = weights_.layers[index];
  struct Wanted { const char* name; Tensor* tensor; uint64_t depth, n; };
  const Wanted wanted[] = {
      {names.attention_norm, &layer.attention_norm, s.width, 0}, {names.query, &layer.query, s.width, q},
      {names.key, &layer.key, s.width, k},                       {names.value, &layer.value, s.width, v},
      {names.attention_output, &layer.attention_output, o, s.width},
      {names.ffn_norm, &layer.ffn_norm, s.width, 0},             {names.gate, &layer.gate, s.width, s.ffn_width},
      {names.up, &layer.up, s.width, s.ffn_width},               {names.down, &layer.down, s.ffn_width, s.width},
  };
  for (const Wanted& w : wanted) {
    char name[kMaxTensorNameBytes + 1];
    snprintf(name, sizeof name, w.name, index);
    GRETA_TRY(find(gguf, name, w.tensor, w.depth, w.n, true, filter));
  }
  return {};
}

Status TensorStore::describe(const Gguf& gguf, const Arch& arch, const Shape& shape, const RowFilter& filter) {
  const TensorNames& names = arch.tensors;
  const uint8_t* pages = nullptr;
  maps_ = is_cpu_with_maps(*filter.device) && const_cast<Source&>(gguf.source()).map(0, &pages).ok();
  weights_.layers.resize(shape.layers);
  weights_.tied = gguf.find_tensor(names.output) == nullptr;
  GRETA_TRY(find(gguf, names.token_embedding, &weights_.token_embedding, shape.width, shape.vocab, weights_.tied,
                 filter));
  GRETA_TRY(find(gguf, names.output_norm, &weights_.output_norm, shape.width, 0, false, filter));
  if (!weights_.tied) GRETA_TRY(find(gguf, names.output, &weights_.output, shape.width, shape.vocab, true, filter));
  for (uint32_t l = 0; l < shape.layers; ++l) GRETA_TRY(find_layer(gguf, names, shape, l, filter));

  if (const GgufTensor* factors = gguf.find_tensor(names.rope_factors)) {
    const uint64_t pairs = shape.rope_width / 2;
    if (factors->type != QuantType::f32 || factors->ne[0] != pairs || factors->dims != 1)
      return fail(Code::File, "%s: %s is %s[%llu], expected f32[%llu]", gguf.name(), names.rope_factors,
                  quant_info(factors->type).name, (unsigned long long)factors->ne[0], (unsigned long long)pairs);
    weights_.rope_factors.resize(pairs);
    GRETA_TRY(gguf.source().read_at(factors->part, factors->offset, weights_.rope_factors.data(), factors->bytes));
    for (float factor : weights_.rope_factors)
      if (!(factor > 0))
        return fail(Code::File, "%s: %s holds %g, expected positive numbers", gguf.name(), names.rope_factors,
                    double(factor));
  }
  return {};
}

uint64_t TensorStore::device_bytes() const {
  uint64_t bytes = 0;
  for (const Placed& p : placed_)
    if (!p.in_place)
      bytes += round_up(tensor_bytes(p.tensor->type, p.tensor->layout, p.tensor->n, p.tensor->depth, 1), 256);
  return bytes;
}

uint64_t TensorStore::mapped_bytes() const {
  uint64_t bytes = 0;
  for (const Placed& p : placed_) bytes += p.in_place ? p.source->bytes : 0;
  return bytes;
}

uint64_t TensorStore::file_bytes() const {
  uint64_t bytes = 0;
  for (const Placed& p : placed_) bytes += p.source->bytes;
  return bytes;
}

uint64_t TensorStore::token_bytes() const {
  const Tensor& embedding = weights_.token_embedding;
  const uint64_t all = quant_bytes(embedding.type, uint64_t(embedding.n) * embedding.depth);
  return weights_.tied ? file_bytes() : file_bytes() - all + all / embedding.n;  // untied: one row is gathered
}

uint64_t TensorStore::parameters() const {
  uint64_t count = 0;
  for (const Placed& p : placed_) count += uint64_t(p.tensor->n) * p.tensor->depth;
  return count;
}

namespace {

// Bytes of tensors that are done; asks the caller after each advance whether to go on.
struct LoadMeter {
  const LoadProgress& progress;
  uint64_t total, done;

  Status advance(uint64_t bytes) {
    done += bytes;
    if (!progress.call || progress.call(progress.user, done, total) == 0) return {};
    return fail(Code::Cancelled, "loading was cancelled after %llu of %llu bytes", (unsigned long long)done,
                (unsigned long long)total);
  }
};

// Reads mapped weights from disk here, where there is progress and cancel, and not in the first step.
Status read_in_place(const Slice& slice, LoadMeter* meter) {
  const uint8_t* pages = static_cast<const uint8_t*>(slice.buffer->mapped) + slice.offset;
  for (uint64_t at = 0; at < slice.bytes; at += kReadBytes) {
    const uint64_t bytes = std::min(kReadBytes, slice.bytes - at);
    populate_pages(pages + at, bytes);
    GRETA_TRY(meter->advance(bytes));
  }
  return {};
}

}  // namespace

Status TensorStore::load(Gguf& gguf, Device& device, const RowFilter& filter, const LoadProgress& progress) {
  Source& source = gguf.source();
  if (maps_) {
    mapped_.clear();
    for (uint32_t part = 0; part < source.parts(); ++part) {
      const uint8_t* pages = nullptr;
      GRETA_TRY(source.map(part, &pages));
      mapped_.push_back(std::make_unique<DeviceMemory>());
      GRETA_TRY(mapped_.back()->import_host(device, pages, source.size(part)));
    }
  }
  // One chunk of what is needed, so that the memory plan holds to the byte; more above the arena's limit.
  pool_ = std::make_unique<Pool>(device, std::min(device_bytes(), kMaxArenaBytes));
  LoadMeter meter{progress, file_bytes(), 0};
  const bool read_now = mapped_bytes() <= memory_available_bytes();
  for (const Placed& placed : placed_) {
    const GgufTensor& from = *placed.source;
    if (placed.in_place) {
      placed.tensor->slice = mapped_[from.part]->slice(from.offset, from.bytes);
      if (read_now) GRETA_TRY(read_in_place(placed.tensor->slice, &meter));
    } else {
      GRETA_TRY(within(load_copied(gguf, device, filter, placed), "%.*s", int(from.name.size()), from.name.data()));
    }
    if (!placed.in_place || !read_now) GRETA_TRY(meter.advance(from.bytes));
  }
  if (weights_.tied) weights_.output = weights_.token_embedding;
  return {};
}

namespace {
struct FileRange { const Source* source; uint32_t part; uint64_t offset; };
Status fill_from_file(void* context, uint64_t offset, void* host, uint64_t bytes) {
  const FileRange& range = *static_cast<const FileRange*>(context);
  return range.source->read_at(range.part, range.offset + offset, host, bytes);
}
}  // namespace

// Uploads a tensor, by whole row groups where it is repacked on the way.
Status TensorStore::load_copied(Gguf& gguf, Device& device, const RowFilter& filter, const Placed& placed) {
  Tensor& tensor = *placed.tensor;
  const uint64_t bytes = tensor_bytes(tensor.type, tensor.layout, tensor.n, tensor.depth, 1);
  GRETA_TRY(pool_->take(bytes, &tensor.slice));
  Tensor from = tensor;
  from.layout = Layout::Gguf;
  if (maps_) {
    from.slice = mapped_[placed.source->part]->slice(placed.source->offset, placed.source->bytes);
    return pack(device, filter, from, tensor);
  }
  Staging staging;
  GRETA_TRY(staging.open(device, kStagingBytes));
  FileRange range{&gguf.source(), placed.source->part, placed.source->offset};
  if (tensor.layout == Layout::Gguf) {
    GRETA_TRY(staging.upload(tensor.slice, fill_from_file, &range));
    return staging.finish();
  }
  const uint64_t row_bytes = quant_bytes(tensor.type, tensor.depth);
  const uint64_t group_bytes = kPackRows * row_bytes;
  const uint32_t groups = uint32_t(std::max<uint64_t>(1, kStagingBytes / group_bytes));
  DeviceMemory raw;
  GRETA_TRY(raw.allocate(device, std::min<uint64_t>(groups * group_bytes, placed.source->bytes), Memory::Device));
  for (uint32_t n = 0; n < tensor.n; n += groups * kPackRows) {
    const uint32_t rows = std::min(groups * kPackRows, tensor.n - n);
    const uint64_t packed_at = tensor_bytes(tensor.type, tensor.layout, n, tensor.depth, 1);
    range.offset = placed.source->offset + n * row_bytes;
    from.n = rows;
    from.slice = raw.slice(0, rows * row_bytes);
    Tensor to = tensor;
    to.n = rows;
    to.slice = {tensor.slice.buffer, tensor.slice.offset + packed_at,
                tensor_bytes(tensor.type, tensor.layout, rows, tensor.depth, 1)};
    GRETA_TRY(staging.upload(from.slice, fill_from_file, &range));
    GRETA_TRY(staging.finish());
    GRETA_TRY(pack(device, filter, from, to));
  }
  return {};
}

// One launch that brings rows from GGUF order into the packed layout.
Status TensorStore::pack(Device& device, const RowFilter& filter, const Tensor& from, const Tensor& to) {
  Call call;
  call.op = Op::Convert;
  call.weight = to;
  call.slot[kX] = from.slice;
  call.slot[kY] = to.slice;
  call.width = to.depth;
  const KernelRow* row = nullptr;
  GRETA_TRY(choose_row({&call, 1}, 1, filter, &row));
  Launch launch;
  make_launch({&call, 1}, *row, 1, &launch);
  KernelSet kernels(device);
  GRETA_TRY(kernels.load(*row, {launch.block, launch.block_bytes}, &launch.kernel));
  Stream* opened = nullptr;
  GRETA_TRY(device.create_stream(&opened));
  const std::unique_ptr<Stream> stream(opened);
  GRETA_TRY(stream->dispatch(*launch.kernel, launch.groups, {launch.block, launch.block_bytes},
                             {launch.accesses, launch.access_count}));
  return stream->wait();
}

}  // namespace greta
