// The functions of greta_compute.h for buffers.
#include "api/compute/objects.h"

using namespace greta;

static_assert(uint32_t(Memory::Upload) == GRETA_MEMORY_UPLOAD &&
              uint32_t(Memory::Readback) == GRETA_MEMORY_READBACK);

namespace greta {

Memories::Memories(RuntimeDevice& on, uint64_t limit)
    : on_(on),
      limit_(limit),
      heaps_{{*on.device, Memory::Device}, {*on.device, Memory::Upload}, {*on.device, Memory::Readback}} {}

uint64_t Memories::allocated() const {
  uint64_t bytes = 0;
  for (const Heap& heap : heaps_) bytes += heap.allocated_bytes();
  return bytes + shared_;
}

uint64_t Memories::peak() const { return peak_; }

uint64_t Memories::room(greta_memory memory) const {
  const uint64_t used = allocated();
  uint64_t room = limit_ ? limit_ - std::min(limit_, used) : ~uint64_t(0);
  if (memory == GRETA_MEMORY_DEVICE) room = std::min(room, on_.free_bytes());
  return room;
}

void Memories::count() noexcept {
  counted_.count(on_, heaps_[GRETA_MEMORY_DEVICE].allocated_bytes() + shared_);
  peak_ = std::max<uint64_t>(peak_, allocated());
}

Status Memories::take(greta_memory memory, uint64_t bytes, Slice* out) {
  const std::lock_guard<std::mutex> lock(mutex_);
  GRETA_TRY(heaps_[memory].take(bytes, room(memory), out));
  count();
  return {};
}

void Memories::give_back(greta_memory memory, const Slice& slice) noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  heaps_[memory].give_back(slice);
  count();
}

Status Memories::take_shared(uint64_t bytes, Buffer* out) {
  SharingDevice* device = nullptr;
  GRETA_TRY(sharing_of(*on_.device, &device));
  const std::lock_guard<std::mutex> lock(mutex_);
  const uint64_t most = room(GRETA_MEMORY_DEVICE);
  if (bytes > most)
    return fail(Code::Memory, "shared memory of %llu bytes, %llu may be allocated", (unsigned long long)bytes,
                (unsigned long long)most);
  GRETA_TRY(device->allocate_shared(bytes, out));
  shared_ += bytes;
  count();
  return {};
}

void Memories::give_back(Buffer& buffer, bool counted) noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (counted) shared_ -= buffer.bytes;
  on_.device->release(buffer);
  count();
}

Status slice_of(const BufferObject& buffer, const char* role, uint64_t offset, uint64_t bytes, Slice* out) {
  uint64_t end;
  if (!checked_add(offset, bytes, &end) || end > buffer.slice.bytes)
    return fail(Code::Argument, "%s: bytes %llu + %llu are outside the buffer of %llu bytes", role,
                (unsigned long long)offset, (unsigned long long)bytes,
                (unsigned long long)buffer.slice.bytes);
  *out = {buffer.slice.buffer, buffer.slice.offset + offset, bytes};
  return {};
}

Status upload_once(Device& device, const Slice& to, const std::vector<uint8_t>& bytes) {
  Staging staging;
  GRETA_TRY(staging.open(device, std::min<uint64_t>(bytes.size(), 1 << 20)));
  GRETA_TRY(staging.upload(
      to,
      [](void* from, uint64_t offset, void* host, uint64_t count) {
        memcpy(host, static_cast<const uint8_t*>(from) + offset, count);
        return Status{};
      },
      const_cast<uint8_t*>(bytes.data())));
  return staging.finish();
}

}  // namespace greta

Status greta::add_buffer(greta_compute& compute, const std::shared_ptr<BufferObject>& buffer,
                         greta_buffer* out) {
  GRETA_TRY(compute.add(buffer, out));
  const std::lock_guard<std::mutex> lock(compute.mutex);
  compute.buffer_bytes += buffer->slice.bytes;
  return {};
}

greta_status greta_buffer_open(greta_compute* compute, const greta_buffer_options* given,
                               greta_buffer* out_buffer) {
  return fenced([&]() -> Status {
    GRETA_TRY(need_device(compute));
    GRETA_TRY(need(given, "options"));
    GRETA_TRY(need(out_buffer, "out_buffer"));
    greta_buffer_options o;
    GRETA_TRY(read_options(given, &o));
    if (enum_number(o.memory) < 0 || enum_number(o.memory) >= int(kMemoryKinds))
      return fail(Code::Argument, "memory is %d, expected a greta_memory", enum_number(o.memory));
    const uint64_t most = arena_limit(compute->device().info());
    if (!o.bytes || o.bytes > most)
      return fail(Code::Argument, "a buffer of %llu bytes, from 1 to %llu are allowed",
                  (unsigned long long)o.bytes, (unsigned long long)most);
    auto buffer = std::make_shared<BufferObject>(compute->memories, o.memory);
    GRETA_TRY(check_reserved(o.reserved));
    GRETA_TRY(read_flag(o.shared, "shared", &buffer->shared));
    if (buffer->shared && o.memory != GRETA_MEMORY_DEVICE)
      return fail(Code::Argument, "shared: memory of kind %d, only that of the device is", int(o.memory));
    if (buffer->shared)
      GRETA_TRY(compute->memories.take_shared(o.bytes, &buffer->own));
    else
      GRETA_TRY(compute->memories.take(o.memory, o.bytes, &buffer->slice));
    if (buffer->shared) buffer->slice = {&buffer->own, 0, o.bytes};
    return add_buffer(*compute, buffer, out_buffer);
  });
}

greta_status greta_buffer_close(greta_compute* compute, greta_buffer handle) {
  return fenced([&]() -> Status {
    GRETA_TRY(need(compute, "compute"));
    if (!handle.number) return {};
    std::shared_ptr<BufferObject> buffer;
    GRETA_TRY(compute->find(handle, &buffer));
    if (buffer->graph) return fail(Code::Argument, "the buffer belongs to a graph, which closes it");
    std::shared_ptr<Object> object;
    GRETA_TRY(compute->remove(handle.owner, handle.number, Object::Kind::Buffer, &object));
    const std::lock_guard<std::mutex> lock(compute->mutex);
    compute->buffer_bytes -= static_cast<BufferObject&>(*object).slice.bytes;
    return {};
  });
}

greta_status greta_buffer_describe(const greta_compute* compute, greta_buffer handle,
                                   greta_buffer_info* out_info) {
  return fenced([&]() -> Status {
    GRETA_TRY(need_device(compute));
    std::shared_ptr<BufferObject> buffer;
    GRETA_TRY(compute->find(handle, &buffer));
    greta_buffer_info info = {};
    info.memory = buffer->memory;
    info.bytes = buffer->slice.bytes;
    info.address = buffer->graph ? 0 : buffer->slice.address();
    if (info.memory != GRETA_MEMORY_DEVICE && !buffer->graph)
      info.mapped = static_cast<uint8_t*>(buffer->slice.buffer->mapped) + buffer->slice.offset;
    return write_result(info, out_info);
  });
}

// Copies a piece between a slice and memory that both sides see.
static Status copy_piece(greta_compute& compute, const Slice& slice, void* host, bool to_device) {
  greta_compute::Transfer& transfer = compute.transfer;
  if (!transfer.stream) {
    Stream* opened = nullptr;
    GRETA_TRY(compute.device().create_stream(&opened));
    transfer.stream.reset(opened);
  }
  DeviceMemory& memory = transfer.pieces[to_device ? 0 : 1];
  if (!memory.buffer().bytes)
    GRETA_TRY(memory.allocate(compute.device(), greta_compute::Transfer::kPieceBytes,
                              to_device ? Memory::Upload : Memory::Readback));
  const Slice piece = memory.slice(0, slice.bytes);
  Recording recording(*transfer.stream);
  if (to_device) memcpy(memory.buffer().mapped, host, slice.bytes);
  GRETA_TRY(transfer.stream->barrier());
  GRETA_TRY(to_device ? transfer.stream->copy(slice, piece) : transfer.stream->copy(piece, slice));
  GRETA_TRY(transfer.stream->wait());
  recording.keep();
  if (!to_device) memcpy(host, memory.buffer().mapped, slice.bytes);
  return {};
}

// Copies bytes of a buffer from or to the program's memory.
static Status copy_host(greta_compute* compute, greta_buffer handle, uint64_t offset, uint64_t bytes,
                        void* host, bool to_device) {
  GRETA_TRY(need_device(compute));
  std::shared_ptr<BufferObject> buffer;
  GRETA_TRY(compute->find(handle, &buffer));
  if (buffer->graph)
    return fail(Code::Argument, "%s: the buffer is a slot or a temporary of a graph",
                to_device ? "write" : "read");
  Slice slice;
  GRETA_TRY(slice_of(*buffer, to_device ? "write" : "read", offset, bytes, &slice));
  if (!bytes) return {};
  GRETA_TRY(need(host, "data"));
  if (slice.buffer->mapped) {
    uint8_t* const mapped = static_cast<uint8_t*>(slice.buffer->mapped) + slice.offset;
    memcpy(to_device ? mapped : host, to_device ? host : mapped, bytes);
    return {};
  }
  const std::lock_guard<std::mutex> lock(compute->transfer.mutex);
  Span span(compute->runtime.spans, SpanKind::Copy, to_device ? "write" : "read");
  span.event.number = buffer->number;
  span.event.bytes = bytes;
  for (uint64_t at = 0; at < bytes;) {
    const uint64_t some = std::min(greta_compute::Transfer::kPieceBytes, bytes - at);
    GRETA_TRY(copy_piece(*compute, {slice.buffer, slice.offset + at, some}, static_cast<uint8_t*>(host) + at,
                         to_device));
    at += some;
  }
  return {};
}

greta_status greta_buffer_write(greta_compute* compute, greta_buffer buffer, uint64_t offset,
                                const void* data, uint64_t bytes) {
  return fenced([&] { return copy_host(compute, buffer, offset, bytes, const_cast<void*>(data), true); });
}

greta_status greta_buffer_read(greta_compute* compute, greta_buffer buffer, uint64_t offset, void* data,
                               uint64_t bytes) {
  return fenced([&] { return copy_host(compute, buffer, offset, bytes, data, false); });
}
