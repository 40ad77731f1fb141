// The functions of greta_compute.h for what others have and what others get.
#include "api/compute/objects.h"

using namespace greta;

namespace greta {

Status sharing_of(Device& device, SharingDevice** out) {
  *out = dynamic_cast<SharingDevice*>(&device);
  return *out ? Status{} : fail(Code::Unsupported, "%s shares nothing with others", device.info().name);
}

}  // namespace greta

static Status read_adoption(const greta_adoption* given, greta_adoption* out) {
  GRETA_TRY(need(given, "adoption"));
  GRETA_TRY(read_options(given, out));
  if (enum_number(out->origin) >= 0 && enum_number(out->origin) <= GRETA_ORIGIN_HANDLE) return {};
  return fail(Code::Argument, "origin is %d, expected a greta_origin", enum_number(out->origin));
}

static Status adopt_pages(Device& device, const greta_adoption& a, Buffer* out) {
  GRETA_TRY(need(a.pages, "pages"));
  const uint64_t page = page_bytes();
  if (reinterpret_cast<uintptr_t>(a.pages) % page || a.bytes % page)
    return fail(Code::Argument, "%llu bytes at %p are no whole pages of %llu", (unsigned long long)a.bytes,
                a.pages, (unsigned long long)page);
  if (!device.info().shares_host)
    return fail(Code::Unsupported, "%s takes no pages of the process", device.info().name);
  return device.share_host(a.pages, a.bytes, out);
}

static Status adopt_memory(Device& device, const greta_adoption& a, Buffer* out) {
  if (a.origin == GRETA_ORIGIN_HOST) return adopt_pages(device, a, out);
  SharingDevice* sharing = nullptr;
  GRETA_TRY(sharing_of(device, &sharing));
  if (a.origin == GRETA_ORIGIN_DESCRIPTOR)
    return sharing->import_memory({a.descriptor, a.memory_type, a.allocation_bytes}, a.bytes, out);
  if (!a.handle) return fail(Code::Argument, "the handle of the buffer is 0");
  return sharing->adopt_buffer(a.handle, a.bytes, out);
}

// Kernels load 16 bytes at once from multiples of 16, so a buffer begins at one of 256 as all others do.
static Status check_address(const Buffer& buffer) {
  constexpr uint64_t kAlignment = 256;
  if (buffer.address && buffer.address % kAlignment == 0) return {};
  return fail(Code::Argument, "the memory has the address %llx, no multiple of %llu",
              (unsigned long long)buffer.address, (unsigned long long)kAlignment);
}

greta_status greta_buffer_adopt(greta_compute* compute, const greta_adoption* given,
                                greta_buffer* out_buffer) {
  return fenced([&]() -> Status {
    greta_adoption a;
    GRETA_TRY(need_device(compute));
    GRETA_TRY(need(out_buffer, "out_buffer"));
    GRETA_TRY(read_adoption(given, &a));
    const uint64_t most = compute->device().info().max_allocation_bytes;
    if (!a.bytes || a.bytes > most)
      return fail(Code::Argument, "a buffer of %llu bytes, from 1 to %llu are allowed",
                  (unsigned long long)a.bytes, (unsigned long long)most);
    const greta_memory memory = a.origin == GRETA_ORIGIN_HOST ? GRETA_MEMORY_READBACK : GRETA_MEMORY_DEVICE;
    auto buffer = std::make_shared<BufferObject>(compute->memories, memory);
    GRETA_TRY(adopt_memory(compute->device(), a, &buffer->own));
    GRETA_TRY(check_address(buffer->own));
    buffer->slice = {&buffer->own, 0, a.bytes};
    return add_buffer(*compute, buffer, out_buffer);
  });
}

greta_status greta_timeline_adopt(greta_compute* compute, const greta_adoption* given,
                                  greta_timeline* out_timeline) {
  return fenced([&]() -> Status {
    greta_adoption a;
    GRETA_TRY(need_device(compute));
    GRETA_TRY(need(out_timeline, "out_timeline"));
    GRETA_TRY(read_adoption(given, &a));
    if (a.origin == GRETA_ORIGIN_HOST)
      return fail(Code::Argument, "a timeline is adopted from a descriptor or a handle");
    if (a.origin == GRETA_ORIGIN_HANDLE && !a.handle)
      return fail(Code::Argument, "the handle of the semaphore is 0");
    auto timeline = std::make_shared<TimelineObject>(compute->device(), false);
    GRETA_TRY(sharing_of(compute->device(), &timeline->sharing));
    GRETA_TRY(a.origin == GRETA_ORIGIN_HANDLE
                  ? timeline->sharing->adopt_timeline(a.handle, &timeline->shared)
                  : timeline->sharing->import_timeline(a.descriptor, &timeline->shared));
    return compute->add(timeline, out_timeline);
  });
}

greta_status greta_buffer_export(greta_compute* compute, greta_buffer handle, greta_exported* out_exported) {
  return fenced([&]() -> Status {
    std::shared_ptr<BufferObject> buffer;
    SharingDevice* sharing = nullptr;
    ExportedMemory memory;
    GRETA_TRY(need_device(compute));
    GRETA_TRY(check_result(out_exported));
    GRETA_TRY(compute->find(handle, &buffer));
    if (!buffer->shared) return fail(Code::Argument, "export: the buffer was not opened with `shared`");
    GRETA_TRY(sharing_of(compute->device(), &sharing));
    GRETA_TRY(sharing->export_memory(buffer->own, &memory));
    greta_exported exported = {};
    exported.descriptor = memory.descriptor;
    exported.memory_type = memory.memory_type;
    exported.allocation_bytes = memory.allocation_bytes;
    return write_result(exported, out_exported);
  });
}

greta_status greta_timeline_export(greta_compute* compute, greta_timeline handle,
                                   greta_exported* out_exported) {
  return fenced([&]() -> Status {
    std::shared_ptr<TimelineObject> timeline;
    greta_exported exported = {};
    GRETA_TRY(need_device(compute));
    GRETA_TRY(check_result(out_exported));
    GRETA_TRY(compute->find(handle, &timeline));
    if (!timeline->exports) return fail(Code::Argument, "export: the timeline was not opened with `shared`");
    GRETA_TRY(timeline->sharing->export_timeline(timeline->shared, &exported.descriptor));
    return write_result(exported, out_exported);
  });
}
