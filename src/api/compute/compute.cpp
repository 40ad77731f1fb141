// The functions of greta_compute.h that open, close and describe a compute, and the table of its handles.
#include "api/compute/graphs.h"
#include "api/compute/step.h"

using namespace greta;

namespace {

constexpr size_t kMostExtensions = 4096;  // of a device of the program's

constexpr const char* kKindNames[] = {"buffer", "stream", "timeline", "graph", "step", "kernel"};
static_assert(std::size(kKindNames) == size_t(Object::Kind::count));

uint64_t number_of(uint64_t place, uint32_t generation) { return uint64_t(generation) << 32 | place; }

// Two computes that live at the same time differ in their address, and others in their time.
uint64_t make_owner(const void* address) {
  return reinterpret_cast<uintptr_t>(address) * 0x9e3779b97f4a7c15u ^ now_ns();
}

}  // namespace

namespace greta {

Status ObjectTable::add(const std::shared_ptr<Object>& object) {
  if (free_.empty()) {
    if (places_.size() == UINT32_MAX) return fail(Code::Full, "%zu objects were opened", places_.size());
    free_.reserve(places_.size() + 1);  // so that remove() allocates nothing
    places_.emplace_back();
    free_.push_back(uint32_t(places_.size() - 1));
  }
  const uint32_t index = free_.back();
  free_.pop_back();
  Place& place = places_[index];
  place.object = object;
  object->number = number_of(index, place.generation);
  ++counts_[uint32_t(object->kind)];
  return {};
}

const ObjectTable::Place* ObjectTable::place_of(uint64_t number, Object::Kind kind) const {
  const uint64_t index = number & UINT32_MAX;
  if (index >= places_.size()) return nullptr;
  const Place& place = places_[index];
  return place.object && place.object->number == number && place.object->kind == kind ? &place : nullptr;
}

Status ObjectTable::find(uint64_t number, Object::Kind kind, std::shared_ptr<Object>* out) const {
  const char* const name = kKindNames[uint32_t(kind)];
  if (!number) return fail(Code::Argument, "the handle of a %s is {0}", name);
  const Place* const place = place_of(number, kind);
  if (!place)
    return fail(Code::Argument, "%s %llx was closed or never opened", name, (unsigned long long)number);
  *out = place->object;
  return {};
}

// A place whose generations are used up is not used again.
Status ObjectTable::remove(uint64_t number, Object::Kind kind, std::shared_ptr<Object>* out) {
  GRETA_TRY(find(number, kind, out));
  const uint32_t index = uint32_t(number & UINT32_MAX);
  Place& place = places_[index];
  place.object.reset();
  --counts_[uint32_t(kind)];
  if (++place.generation) free_.push_back(index);
  return {};
}

void ObjectTable::clear() {
  places_.clear();
  free_.clear();
}

}  // namespace greta

greta_compute::greta_compute(greta_runtime& of, RuntimeDevice& device, uint64_t limit,
                             std::unique_ptr<RuntimeDevice> adopted)
    : runtime(of),
      own(std::move(adopted)),
      on(device),
      owner(make_owner(this)),
      memories(device, limit),
      recipes(of, device, memories) {}

// Streams hold what they use, so all of this goes in any order.
greta_compute::~greta_compute() { table.clear(); }

static Status of_another(uint64_t number, Object::Kind kind) {
  return fail(Code::Argument, "%s %llx belongs to another compute", kKindNames[uint32_t(kind)],
              (unsigned long long)number);
}

template <class Kind, class Handle>
static Status find_object(const greta_compute& compute, Handle handle, Object::Kind kind,
                          std::shared_ptr<Kind>* out) {
  std::shared_ptr<Object> object;
  if (handle.number && handle.owner != compute.owner) return of_another(handle.number, kind);
  const std::lock_guard<std::mutex> lock(compute.mutex);
  GRETA_TRY(compute.table.find(handle.number, kind, &object));
  *out = std::static_pointer_cast<Kind>(std::move(object));
  return {};
}

Status greta_compute::find(greta_buffer handle, std::shared_ptr<BufferObject>* out) const {
  return find_object(*this, handle, Object::Kind::Buffer, out);
}
Status greta_compute::find(greta_stream handle, std::shared_ptr<StreamObject>* out) const {
  return find_object(*this, handle, Object::Kind::Stream, out);
}
Status greta_compute::find(greta_timeline handle, std::shared_ptr<TimelineObject>* out) const {
  return find_object(*this, handle, Object::Kind::Timeline, out);
}

Status greta_compute::remove(uint64_t owner_of_handle, uint64_t number, Object::Kind kind,
                             std::shared_ptr<Object>* out) {
  if (!number) return {};
  if (owner_of_handle != owner) return of_another(number, kind);
  const std::lock_guard<std::mutex> lock(mutex);
  return table.remove(number, kind, out);
}

Status greta_compute::find(greta_graph handle, std::shared_ptr<GraphObject>* out) const {
  return find_object(*this, handle, Object::Kind::Graph, out);
}

Status greta_compute::find(greta_step handle, std::shared_ptr<StepObject>* out) const {
  return find_object(*this, handle, Object::Kind::Step, out);
}

Status greta_compute::find(greta_kernel handle, std::shared_ptr<KernelObject>* out) const {
  return find_object(*this, handle, Object::Kind::Kernel, out);
}

// Opens a device that the program has.
static Status adopt_device(const greta_runtime& runtime, const greta_host_device& given, RuntimeDevice* out) {
  greta_host_device v;
  GRETA_TRY(read_options(&given, &v));
  if (v.extension_count > kMostExtensions)
    return fail(Code::Argument, "host: %zu extensions, at most %zu are allowed", v.extension_count,
                kMostExtensions);
  if (v.extension_count) GRETA_TRY(need(v.extensions, "host: extensions"));
  DeviceOptions options;
  options.log = runtime.log;
  Device* opened = nullptr;
  GRETA_TRY(adopt_device(HostHandles{v.get_instance_proc_addr, v.instance, v.physical_device, v.device,
                                       v.queue, v.queue_family, {v.extensions, v.extension_count}, v.lock,
                                       v.unlock, v.lock_user},
                         options, &opened));
  out->device.reset(opened);
  out->kernels = std::make_unique<DeviceKernels>(*opened);
  return {};
}

greta_status greta_compute_open(greta_runtime* runtime, const greta_compute_options* given,
                                greta_compute** out_compute) {
  return fenced([&]() -> Status {
    GRETA_TRY(need_device(runtime));
    GRETA_TRY(need(out_compute, "out_compute"));
    greta_compute_options o;
    GRETA_TRY(read_options(given, &o));
    if (o.host) {
      auto adopted = std::make_unique<RuntimeDevice>();
      GRETA_TRY(adopt_device(*runtime, *o.host, adopted.get()));
      RuntimeDevice& on = *adopted;
      *out_compute =
          std::make_unique<greta_compute>(*runtime, on, o.memory_limit_bytes, std::move(adopted)).release();
      return {};
    }
    if (o.device >= runtime->devices.size())
      return fail(Code::Argument, "there is no device %u: the runtime has %zu", o.device,
                  runtime->devices.size());
    *out_compute =
        std::make_unique<greta_compute>(*runtime, runtime->devices[o.device], o.memory_limit_bytes).release();
    return {};
  });
}

void greta_compute_close(greta_compute* compute) { close_object(compute); }

greta_status greta_compute_describe(const greta_compute* compute, greta_compute_info* out_info) {
  return fenced([&]() -> Status {
    GRETA_TRY(need_device(compute));
    greta_compute_info info = {};
    {
      const std::lock_guard<std::mutex> lock(compute->mutex);
      info.buffers = compute->table.count(Object::Kind::Buffer);
      info.streams = compute->table.count(Object::Kind::Stream);
      info.timelines = compute->table.count(Object::Kind::Timeline);
      info.buffer_bytes = compute->buffer_bytes;
    }
    info.allocated_bytes = compute->memories.allocated();
    info.peak_bytes = compute->memories.peak();
    info.free_bytes = compute->memories.room(GRETA_MEMORY_DEVICE);
    info.max_buffer_bytes = arena_limit(compute->device().info());
    return write_result(info, out_info);
  });
}
