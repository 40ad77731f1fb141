// The CPU device: its description, memory and events, and its row among the backends.
#include <algorithm>
#include <cstring>

#include "backends/cpu/cpu.h"

namespace greta {

constexpr uint64_t kHookBytes = 64 << 10;  // smaller blocks do not go through the host's allocator

// The best instruction set comes first.
struct InstructionSet {
  uint32_t feature;
  const char* name;
};
constexpr InstructionSet kInstructionSets[] = {
    {kCpuAmx, "amx"}, {kCpuAvx512Vnni, "avx512vnni"}, {kCpuAvx2, "avx2"}};

static const char* best_isa(uint32_t features) {
  for (const InstructionSet& isa : kInstructionSets)
    if (features & isa.feature) return isa.name;
  return "baseline";
}

void describe_cpu(uint32_t features, uint32_t threads, DeviceInfo* out) {
  *out = {};
  format_text(out->name, sizeof out->name, "%s", cpu_name());
  format_text(out->backend, sizeof out->backend, "cpu");
  format_text(out->arch, sizeof out->arch, "cpu:%s", best_isa(features));
  format_text(out->driver, sizeof out->driver, "greta");
  out->memory_bytes = memory_total_bytes();
  out->max_allocation_bytes = out->memory_bytes;
  out->features = features;
  out->unit_count = threads;
  out->shared_bytes = kCpuScratchBytes;
  out->unified_memory = true;
  out->imports_host = out->shares_host = true;
  out->cpu_type = true;
  out->host_functions = true;
}

// The system is asked for AMX tiles only by who opens a device that would use them.
static uint32_t permitted_features(const DeviceOptions& options) {
  const uint32_t features = cpu_features() & options.features_mask;
  return features & kCpuAmx && !permit_amx() ? features & ~kCpuAmx : features;
}

CpuDevice::CpuDevice(const DeviceOptions& options, uint32_t threads)
    : allocator_(options.allocator), pool_(threads, ThreadPool::Workers::Adapt) {
  if (pool_.workers() < threads)
    options.log(LogLevel::Warning, "the system refused threads: %u of %u run", pool_.workers(), threads);
  describe_cpu(permitted_features(options), pool_.workers(), &info_);
}

CpuDevice::~CpuDevice() { unmap_pages(scratch_, uint64_t(pool_.workers()) * kCpuScratchBytes); }

Status CpuDevice::start() {
  const uint64_t bytes = uint64_t(pool_.workers()) * kCpuScratchBytes;
  scratch_ = static_cast<uint8_t*>(map_pages(bytes));
  if (!scratch_)
    return fail(Code::Memory, "cannot allocate %llu bytes of working memory for %u threads",
                (unsigned long long)bytes, pool_.workers());
  return {};
}

static Status no_memory(uint64_t bytes, uint64_t available) {
  constexpr double kGiB = 1 << 30;
  return fail(Code::Memory,
              "cannot allocate %llu bytes (%.2f GiB) of host memory: %llu (%.2f GiB) are available",
              (unsigned long long)bytes, double(bytes) / kGiB, (unsigned long long)available,
              double(available) / kGiB);
}

// Releases memory when objects are closed. Nobody could be told of an exception then, so it is dropped.
static void give_back(const HostAllocator& allocator, void* pages, uint64_t bytes) noexcept try {
  allocator.release(allocator.user, pages, bytes);
} catch (...) {
}

Status CpuDevice::allocate(uint64_t bytes, Memory, Buffer* out) {
  if (!bytes) return fail(Code::Argument, "allocate: a buffer of 0 bytes");
  const bool large = bytes >= kHookBytes;
  // Else the system would promise pages that it does not have and kill the process later.
  if (large && bytes > memory_available_bytes()) return no_memory(bytes, memory_available_bytes());

  auto allocation = std::make_unique<CpuAllocation>();
  allocation->bytes = round_up(bytes, page_bytes());
  void* pages;
  if (large && allocator_.allocate) {
    allocation->origin = CpuAllocation::Hook;
    pages = call_back("allocate",
                      [&] { return allocator_.allocate(allocator_.user, allocation->bytes, page_bytes()); });
    if (pages && reinterpret_cast<uint64_t>(pages) % page_bytes()) {
      give_back(allocator_, pages, allocation->bytes);
      return fail(Code::Argument, "the host's allocator gave a block at %p, not at a multiple of %llu", pages,
                  (unsigned long long)page_bytes());
    }
    if (pages) memset(pages, 0, allocation->bytes);
  } else {
    pages = map_pages(allocation->bytes);
  }
  if (!pages) return no_memory(bytes, memory_available_bytes());
  *out = {allocation.release(), reinterpret_cast<uint64_t>(pages), pages, bytes};
  return {};
}

Status CpuDevice::import_host(const void* pages, uint64_t bytes, Buffer* out) {
  if (!pages || !bytes) return fail(Code::Argument, "import_host: no pages");
  auto allocation = std::make_unique<CpuAllocation>();
  allocation->origin = CpuAllocation::Imported;
  *out = {allocation.release(), reinterpret_cast<uint64_t>(pages), const_cast<void*>(pages), bytes};
  return {};
}

Status CpuDevice::share_host(void* pages, uint64_t bytes, Buffer* out) {
  GRETA_TRY(import_host(pages, bytes, out));
  static_cast<CpuAllocation*>(out->handle)->origin = CpuAllocation::Shared;
  return {};
}

void CpuDevice::release(Buffer& buffer) {
  auto* allocation = static_cast<CpuAllocation*>(buffer.handle);
  if (!allocation) return;
  if (allocation->origin == CpuAllocation::Mapped) unmap_pages(buffer.mapped, allocation->bytes);
  if (allocation->origin == CpuAllocation::Hook) give_back(allocator_, buffer.mapped, allocation->bytes);
  delete allocation;
  buffer = {};
}

Status CpuDevice::load(const KernelCode& code, Kernel* out) {
  if (!code.function) return fail(Code::Unsupported, "%s: the kernel has no code for the CPU", code.name);
  *out = {};
  out->handle = reinterpret_cast<void*>(code.function);
  for (int i = 0; i < 3; ++i) out->group_size[i] = code.group_size[i];
  out->name = code.name;
  return {};
}

Status CpuDevice::create_stream(Stream** out) {
  *out = new CpuStream(*this);
  return {};
}

Status CpuDevice::create_event(Event* out, bool) {
  out->handle = new CpuEvent;
  return {};
}

Status CpuDevice::elapsed_ns(const Event& from, const Event& to, uint64_t* out) {
  const auto* first = static_cast<const CpuEvent*>(from.handle);
  const auto* last = static_cast<const CpuEvent*>(to.handle);
  GRETA_TRY(process.check());
  if (!first || !last) return fail(Code::Argument, "elapsed_ns: an event was not created");
  const std::lock_guard<std::mutex> lock(order);
  for (const CpuEvent* event : {first, last})
    if (!event->recorded || event->signalled < event->recorded)
      return fail(Code::Argument, "elapsed_ns: the %s event was not signalled and waited for",
                  event == first ? "first" : "second");
  *out = last->time_ns > first->time_ns ? last->time_ns - first->time_ns : 0;
  return {};
}

Status CpuDevice::host_ns(const Event& event, uint64_t* out, uint64_t* error_ns) {
  uint64_t none = 0;
  GRETA_TRY(elapsed_ns(event, event, &none));
  const std::lock_guard<std::mutex> lock(order);
  *out = static_cast<const CpuEvent*>(event.handle)->time_ns;
  *error_ns = 0;
  return {};
}

void CpuDevice::destroy(Event& event) {
  delete static_cast<CpuEvent*>(event.handle);
  event = {};
}

void CpuDevice::destroy(Graph& graph) {
  delete static_cast<CpuGraph*>(graph.handle);
  graph = {};
}

static Status threads_of(uint32_t index, const DeviceOptions& options, uint32_t* out) {
  if (index) return fail(Code::Unsupported, "cpu%u: there is one CPU device, cpu0", index);
  if (options.threads > kCpuMaxThreads)
    return fail(Code::Argument, "%u threads, but at most %u are possible", options.threads, kCpuMaxThreads);
  *out = options.threads ? options.threads : std::min(cpu_count(), kCpuMaxThreads);
  return {};
}

static uint32_t count(const DeviceOptions&) { return 1; }

static Status describe(uint32_t index, const DeviceOptions&, DeviceInfo* out) {
  uint32_t threads = 0;
  GRETA_TRY(threads_of(index, {}, &threads));
  describe_cpu(cpu_features(), threads, out);
  return {};
}

static Status open(uint32_t index, const DeviceOptions& options, Device** out) {
  uint32_t threads = 0;
  GRETA_TRY(threads_of(index, options, &threads));
  auto device = std::make_unique<CpuDevice>(options, threads);
  GRETA_TRY(device->start());
  *out = device.release();
  return {};
}

extern const Backend backend_cpu;
const Backend backend_cpu = {"cpu", true, count, describe, open};

}  // namespace greta
