// The checks of arguments that every device makes, and those of a device when it is opened.
#include "runtime/device.h"

#include <algorithm>
#include <cstring>

#include "runtime/pool.h"

namespace greta {

Status check_slice(const Slice& slice, const char* role) {
  if (!slice.buffer || !slice.buffer->handle)
    return fail(Code::Argument, "%s: the buffer is empty or was released", role);
  uint64_t end;
  if (!checked_add(slice.offset, slice.bytes, &end) || end > slice.buffer->bytes)
    return fail(Code::Argument, "%s: bytes %llu + %llu are outside the buffer of %llu bytes", role,
                (unsigned long long)slice.offset, (unsigned long long)slice.bytes,
                (unsigned long long)slice.buffer->bytes);
  return {};
}

Status check_dispatch(const Kernel& kernel, const uint32_t (&groups)[3], std::span<const uint8_t> block) {
  if (!kernel.handle) return fail(Code::Argument, "dispatch: the kernel was not loaded");
  if (block.size() > kMaxBlockBytes)
    return fail(Code::Argument, "%s: the argument block has %zu bytes, at most %u are allowed", kernel.name,
                block.size(), kMaxBlockBytes);
  uint64_t total;
  if (!checked_multiply(uint64_t(groups[0]) * groups[1], groups[2], &total) || !total || total > ~0u)
    return fail(Code::Argument, "%s: a grid of %u x %u x %u groups, 1 to 4294967295 are allowed", kernel.name,
                groups[0], groups[1], groups[2]);
  return {};
}

Status check_copy(const Slice& to, const Slice& from) {
  GRETA_TRY(check_slice(to, "copy to"));
  GRETA_TRY(check_slice(from, "copy from"));
  if (to.bytes != from.bytes)
    return fail(Code::Argument, "copy: %llu bytes to %llu bytes, the sizes must be equal",
                (unsigned long long)from.bytes, (unsigned long long)to.bytes);
  if (to.address() < from.address() + from.bytes && from.address() < to.address() + to.bytes)
    return fail(Code::Argument, "copy: the ranges at %llu and %llu of one buffer overlap",
                (unsigned long long)from.offset, (unsigned long long)to.offset);
  return {};
}

Status check_fill(const Slice& to) {
  GRETA_TRY(check_slice(to, "fill"));
  if (to.offset % 4 || to.bytes % 4)
    return fail(Code::Argument, "fill: offset %llu and size %llu must be multiples of 4",
                (unsigned long long)to.offset, (unsigned long long)to.bytes);
  return {};
}

uint64_t reserve_of(uint64_t memory_bytes) {
  constexpr uint64_t kLeast = uint64_t(256) << 20;
  return std::min(std::max(kLeast, memory_bytes / 64), memory_bytes / 16);
}

Status check_allocation(const DeviceInfo& info, uint64_t bytes) {
  if (!bytes) return fail(Code::Argument, "allocate: a buffer of 0 bytes");
  const uint64_t limit = info.max_allocation_bytes;
  if (bytes <= limit) return {};
  return fail(Code::Memory, "cannot allocate %llu bytes: the largest buffer of %s has %s",
              (unsigned long long)bytes, info.name, SizeText(limit).text);
}

Status allocation_failed(const Device& device, uint64_t bytes, Memory memory, Status reason) {
  const char* const kind = memory == Memory::Device ? "device" : "host";
  const uint64_t free = device.memory_free();
  const bool seemed_free = reason.code == Code::Memory && memory == Memory::Device && free >= bytes;
  return within(reason, "cannot allocate %llu bytes of %s memory, %s %s", (unsigned long long)bytes, kind,
                SizeText(free).text,
                seemed_free ? "seemed to be free (another program may use it)" : "are free");
}

Status prove_memory(Device& device) {
  constexpr uint32_t kWord = 0x600dcafe;
  Buffer device_side, host_side;
  Stream* stream = nullptr;
  const auto run = [&]() -> Status {
    GRETA_TRY(device.create_stream(&stream));
    GRETA_TRY(device.allocate(256, Memory::Device, &device_side));
    GRETA_TRY(device.allocate(256, Memory::Readback, &host_side));
    GRETA_TRY(stream->fill({&device_side, 0, 256}, kWord));
    GRETA_TRY(stream->barrier());
    GRETA_TRY(stream->copy({&host_side, 0, 256}, {&device_side, 0, 256}));
    GRETA_TRY(stream->wait());
    uint32_t word;
    memcpy(&word, static_cast<uint8_t*>(host_side.mapped) + 252, sizeof word);
    if (word != kWord) return fail(Code::Device, "filled memory reads as %08x, not %08x", word, kWord);
    return {};
  };
  const Status status = run();
  delete stream;
  device.release(device_side);
  device.release(host_side);
  return status;
}

Status Stream::wait_for_host(uint64_t) {
  return fail(Code::Unsupported, "wait_for_host: the device does not wait for the host");
}

Status Stream::let_go(uint64_t) {
  return fail(Code::Unsupported, "let_go: the device does not wait for the host");
}

Status Device::share_host(void*, uint64_t, Buffer*) {
  return fail(Code::Unsupported, "%s shares no memory with the host", info().name);
}

Status Device::host_ns(const Event&, uint64_t*, uint64_t*) {
  return fail(Code::Unsupported, "nothing relates the clock of %s to the host's", info().name);
}

Status Device::describe_code(const KernelCode&, std::string*) {
  return fail(Code::Unsupported, "%s tells nothing of its machine code", info().name);
}

bool shares_pages(Device& device) {
  constexpr uint32_t kWord = 0x5ea1ed;
  const uint64_t bytes = page_bytes();
  MappedPages memory;
  if (!memory.map(bytes)) return false;
  void* const pages = memory.pages();
  Buffer imported;
  Stream* stream = nullptr;
  const auto run = [&]() -> Status {
    GRETA_TRY(device.share_host(pages, bytes, &imported));
    GRETA_TRY(device.create_stream(&stream));
    GRETA_TRY(stream->fill({&imported, 0, bytes}, kWord));
    return stream->wait();
  };
  bool shares = run().ok();
  for (uint64_t i = 0; shares && i < bytes / sizeof kWord; ++i)
    shares = static_cast<const uint32_t*>(pages)[i] == kWord;
  clear_error_text();
  delete stream;
  device.release(imported);
  return shares;
}

bool reads_file_pages(Device& device) {
  constexpr uint64_t kBytes = 256;
  File file;
  const uint8_t* pages = nullptr;
  Buffer imported, host_side;
  Stream* stream = nullptr;
  const auto run = [&]() -> Status {
    GRETA_TRY(file.open("/proc/self/exe"));
    GRETA_TRY(file.map(&pages));
    GRETA_TRY(device.import_host(pages, kBytes, &imported));
    GRETA_TRY(device.allocate(kBytes, Memory::Readback, &host_side));
    GRETA_TRY(device.create_stream(&stream));
    GRETA_TRY(stream->copy({&host_side, 0, kBytes}, {&imported, 0, kBytes}));
    return stream->wait();
  };
  const bool reads = run().ok() && !memcmp(host_side.mapped, pages, kBytes);
  clear_error_text();
  delete stream;
  device.release(imported);
  device.release(host_side);
  return reads;
}

}  // namespace greta
