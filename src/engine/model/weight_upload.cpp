#include "engine/model/weight_upload.h"

#include <algorithm>
#include <atomic>
#include <new>

namespace greta {

namespace {

// Threads that read. A few do not keep up with a fast bus, and all of a large machine's gain no more.
uint32_t reader_count() { return std::clamp(cpu_count() / 2, 4u, 16u); }
constexpr uint64_t kReadAlignment = 4096;

uint64_t row_bytes_of(const Tensor& tensor) { return quant_bytes(tensor.type, tensor.depth); }

Tensor one_matrix(Tensor matrices) {
  matrices.count = 1;
  return matrices;
}

uint32_t step_of(const Tensor& to) { return to.layout == Layout::Gguf ? 1 : kPackRows; }

// Matrices that lie behind each other without gaps are loaded as one, in pieces that need not end with them.
Tensor joined(Tensor to) {
  const uint64_t rows = uint64_t(to.n) * to.count;
  if (to.n % step_of(to) || rows > UINT32_MAX) return to;
  to.n = uint32_t(rows);
  to.count = 1;
  return to;
}

}  // namespace

uint64_t WeightUpload::piece_bytes(const Tensor& to) const {
  const uint64_t all = uint64_t(to.count) * to.n * row_bytes_of(to);
  return std::max(std::min({most_piece_bytes_, arena_limit(device_.info()), all}),
                  std::min(step_of(to), to.n) * row_bytes_of(to));
}

Status WeightUpload::open(uint64_t piece_bytes) {
  GRETA_TRY(open_ring(piece_bytes));
  for (DeviceMemory& raw : raw_)
    if (!raw.buffer().bytes) GRETA_TRY(raw.allocate(device_, piece_bytes, Memory::Device));
  return {};
}

Status WeightUpload::open_ring(uint64_t piece_bytes) {
  if (ring_ && piece_bytes <= ring_->piece_bytes()) return {};
  GRETA_TRY(finish());
  ring_.emplace();
  for (DeviceMemory& raw : raw_) raw.reset();
  return ring_->open(device_, piece_bytes);
}

// Each thread reads a share; the system may have refused some of them. If one fails, the calling thread reads
// everything again, because the error text belongs to the thread that fails. The user's callback is called
// from the user's thread.
Status WeightUpload::read(const Bytes& from, void* host) {
  if (from.source.calls_back()) return from.source.read_at(from.part, from.offset, host, from.bytes);
  if (!readers_) readers_.emplace(reader_count());
  struct Work {
    const Bytes& from;
    uint8_t* host;
    uint64_t share;
    std::atomic<bool> ok{true};
  } work{from, static_cast<uint8_t*>(host),
         round_up(divide_up(from.bytes, readers_->workers()), kReadAlignment)};
  readers_->run(
      [](void* context, uint32_t reader) noexcept {
        Work& w = *static_cast<Work*>(context);
        const uint64_t at = std::min(reader * w.share, w.from.bytes),
                       bytes = std::min(w.share, w.from.bytes - at);
        try {
          if (bytes && !w.from.source.read_at(w.from.part, w.from.offset + at, w.host + at, bytes).ok())
            w.ok = false;
        } catch (const std::bad_alloc&) {  // an error text may need memory
          w.ok = false;
        }
      },
      &work);
  return work.ok ? Status{} : from.source.read_at(from.part, from.offset, host, from.bytes);
}

// Reads into device memory that the host sees.
Status WeightUpload::read_mapped(const Bytes& from, uint8_t* host) {
  for (uint64_t at = 0; at < from.bytes; at += kMeterBytes) {
    const uint64_t bytes = std::min(kMeterBytes, from.bytes - at);
    GRETA_TRY(read({from.source, from.part, from.offset + at, bytes}, host + at));
    GRETA_TRY(advance(bytes));
  }
  return {};
}

Status WeightUpload::choose(const Tensor& to, const KernelRow** row) const {
  const Call call = CallMaker{}.pack({}, one_matrix(to));
  return choose_row({&call, 1}, 1, filter_, row);
}

// Records the launch that converts rows from GGUF order to the packed layout.
Status WeightUpload::pack(const KernelRow& row, const Slice& from, const Tensor& to, const Rows& rows,
                          Stream* stream) {
  Tensor made = one_matrix(to);
  made.n = rows.n;
  const uint64_t at = tensor_bytes(to.type, to.layout, to.n, to.depth, rows.matrix) +
                      tensor_bytes(to.type, to.layout, rows.first, to.depth, 1);
  made.slice = {to.slice.buffer, to.slice.offset + at, tensor_bytes(to.type, to.layout, rows.n, to.depth, 1)};
  const Call call = CallMaker{}.pack(from, made);
  Launch launch;
  make_launch({&call, 1}, row, 1, filter_.device, &launch);
  GRETA_TRY(kernels_.load(row, launch.fields(), &launch.kernel));
  return stream->dispatch(*launch.kernel, launch.groups, launch.arguments(),
                          {launch.accesses, launch.access_count});
}

Status WeightUpload::pack_mapped(const Slice& from, const Tensor& to) {
  const KernelRow* row = nullptr;
  GRETA_TRY(choose(to, &row));
  Stream* opened = nullptr;
  GRETA_TRY(device_.create_stream(&opened));
  const std::unique_ptr<Stream> stream(opened);
  const uint64_t matrix_bytes = to.n * row_bytes_of(to);
  uint64_t recorded = 0;
  for (uint32_t matrix = 0; matrix < to.count; ++matrix) {
    GRETA_TRY(pack(*row, {from.buffer, from.offset + matrix * matrix_bytes, matrix_bytes}, to,
                   {matrix, 0, to.n}, stream.get()));
    recorded += matrix_bytes;
    if (recorded < kMeterBytes && matrix + 1 < to.count) continue;
    GRETA_TRY(stream->wait());
    GRETA_TRY(advance(recorded));
    recorded = 0;
  }
  return {};
}

Status WeightUpload::add(const Source& source, uint32_t part, uint64_t offset, const Tensor& all) {
  const Tensor to = joined(all);
  const bool packed = to.layout != Layout::Gguf;
  const uint64_t row_bytes = row_bytes_of(to);
  if (!packed && to.slice.buffer->mapped) {
    uint8_t* const host = static_cast<uint8_t*>(to.slice.buffer->mapped) + to.slice.offset;
    return read_mapped({source, part, offset, uint64_t(to.count) * to.n * row_bytes}, host);
  }
  const uint32_t step = step_of(to);
  GRETA_TRY(open_ring(piece_bytes(to)));
  const KernelRow* row = nullptr;
  if (packed) GRETA_TRY(choose(to, &row));
  const uint64_t steps = std::max<uint64_t>(1, ring_->piece_bytes() / (step * row_bytes));
  const uint32_t rows = uint32_t(std::min<uint64_t>(to.n, steps * step));
  for (uint32_t matrix = 0; matrix < to.count; ++matrix)
    for (uint32_t first = 0; first < to.n; first += rows) {
      const uint32_t n = std::min(rows, to.n - first);
      const uint64_t at = (uint64_t(matrix) * to.n + first) * row_bytes, bytes = n * row_bytes;
      Staging::Piece* piece = nullptr;
      GRETA_TRY(ring_->next(&piece));
      GRETA_TRY(read({source, part, offset + at, bytes}, piece->memory.buffer().mapped));
      const Slice host = piece->memory.slice(0, bytes);
      if (packed) {
        DeviceMemory& raw = raw_[piece->index];
        if (!raw.buffer().bytes) GRETA_TRY(raw.allocate(device_, ring_->piece_bytes(), Memory::Device));
        GRETA_TRY(piece->stream->copy(raw.slice(0, bytes), host));
        GRETA_TRY(piece->stream->barrier());
        GRETA_TRY(pack(*row, raw.slice(0, bytes), to, {matrix, first, n}, piece->stream));
      } else {
        GRETA_TRY(piece->stream->copy({to.slice.buffer, to.slice.offset + at, bytes}, host));
      }
      GRETA_TRY(piece->stream->submit());
      GRETA_TRY(advance(bytes));
    }
  return {};
}

}  // namespace greta
