// The backend interface: what a driver must do for GRETA, and nothing about models or ops.
// A backend is one folder under backends/ that implements these two classes, and one row in
// backends.def. Device calls are thread-safe; a Stream belongs to one thread.
#pragma once
#include <cstdint>
#include <new>
#include <span>

#include "platform/platform.h"

struct Scratch;  // a CPU worker's private memory: kernels/cpu/scratch.h

namespace greta {

constexpr uint32_t kMaxBlockBytes = 128;                // Vulkan guarantees no more push constants
constexpr uint64_t kMaxArenaBytes = uint64_t(1) << 30;  // no single device allocation is larger by our choice

// A CPU kernel runs groups first_group .. first_group + group_count - 1 on the calling thread.
using HostFunction = void (*)(const void* block, uint32_t first_group, uint32_t group_count,
                              Scratch* scratch);

struct DeviceInfo {
  char name[128] = {};                  // "AMD EPYC 9554", "AMD Radeon RX 7900 XTX (RADV NAVI31)"
  char backend[16] = {};                // "cpu", "vulkan", "hip": the column of the kernel table
  char arch[32] = {};                   // "cpu:avx512vnni", "gfx942": the tuner's key
  char driver[128] = {};                // driver and version, the pipeline cache's key
  uint64_t memory_bytes = 0;            // device-local in all
  uint64_t max_allocation_bytes = 0;    // of one Buffer
  uint32_t features = 0;                // backend-specific bits that kernel rows filter on
  uint32_t wave_min = 1, wave_max = 1;  // lanes that run in lockstep
  uint32_t unit_count = 1;              // compute units, or CPU workers
  uint32_t shared_bytes = 0;            // LDS of a workgroup, or private memory of a CPU worker
  bool unified_memory = false;          // device memory is host memory
  bool cpu_type = false;                // runs on the host's processor
  bool imports_host = false;            // import_host takes the pages of a mapped file
  uint32_t weight_alignment = 1;        // of a tensor that kernels read in such pages
  bool runs_ahead = false;              // submitted work goes on while the host does something else
  bool own_buffers = false;  // each slice of a pool is a buffer: validation sees what passes its end
};

enum class Memory : uint8_t { Device, Upload, Readback };

struct Buffer {
  void* handle = nullptr;
  uint64_t address = 0;    // what a kernel's block carries
  void* mapped = nullptr;  // host view: always for Upload and Readback, for Device where memory is the host's
  uint64_t bytes = 0;
};

struct Slice {
  const Buffer* buffer = nullptr;
  uint64_t offset = 0, bytes = 0;
  uint64_t address() const { return buffer ? buffer->address + offset : 0; }
  bool operator==(const Slice&) const = default;
};

// What a launch may touch. Plans derive their barriers from it; the checked device verifies it.
struct Access {
  enum Mode : uint8_t { kRead = 1, kWrite = 2, kReadWrite = 3 };
  Slice slice;
  Mode mode = kRead;
  bool sparse = false;  // touches an unknown part (page pools): order is checked, initialisation is not
};

struct Kernel {
  void* handle = nullptr;
  uint32_t group_size[3] = {1, 1, 1};
  const char* name = "";     // of the row, for errors and profiles
  uint16_t chain_field = 0;  // as in KernelCode
};
struct Event {
  void* handle = nullptr;
};
struct Graph {
  void* handle = nullptr;
};

// Bytes between two symbols of the linker: their distance is no constant, so a span of them could not stand
// in a table that needs no initialisation.
struct CodeBytes {
  const uint8_t* first = nullptr;
  const uint8_t* last = nullptr;
  const uint8_t* begin() const { return first; }
  const uint8_t* end() const { return last; }
  const uint8_t* data() const { return first; }
  size_t size() const { return size_t(last - first); }
  bool empty() const { return first == last; }
};

// Machine code for one kernel: a code object (hip), SPIR-V (vulkan) or a function (cpu).
struct KernelCode {
  const char* name = "";                     // of the row; on hip also the entry point
  CodeBytes code = {};                       // hip, vulkan
  HostFunction function = nullptr;           // cpu
  std::span<const uint32_t> constants = {};  // specialization constants, in order of their ids
  uint32_t group_size[3] = {1, 1, 1};
  uint32_t subgroups = 0;  // vulkan: if so many have at least half of these threads, a group is no more
  uint16_t chain_field =
      0;  // vulkan: where in the block an address goes by which launches wait for each other; 0: nowhere
};

// Work runs in the order recorded, but a dispatch, copy or fill may overlap those before it until
// barrier() is recorded. Nothing blocks the host except wait().
class Stream {
 public:
  virtual ~Stream() = default;
  virtual Status dispatch(const Kernel& kernel, const uint32_t (&groups)[3],
                          std::span<const uint8_t> block,         // at most kMaxBlockBytes
                          std::span<const Access> accesses) = 0;  // all that the kernel may touch
  virtual Status copy(const Slice& to, const Slice& from) = 0;    // equal sizes, no overlap
  virtual Status fill(const Slice& to, uint32_t word) = 0;        // offset and bytes multiples of 4
  virtual Status barrier() = 0;
  virtual Status signal(Event& event) = 0;  // recorded here; times when work before it is done
  virtual Status wait_for(
      const Event& event) = 0;         // this stream waits for another's signal, the host does not
  virtual Status begin_capture() = 0;  // from here on record, do not run
  virtual Status split() = 0;  // in a capture: what follows may be submitted apart from what is before
  virtual Status end_capture(Graph* out) = 0;
  virtual Status replay(const Graph& graph) = 0;
  virtual Status submit() = 0;
  virtual Status wait() = 0;                    // submit, then block until idle
  virtual Status wait(const Event& event) = 0;  // submit, then block until its last signal() here was reached
  // Forgets what was recorded since the last submit(), signals too, and ends a capture. What was submitted
  // goes on.
  virtual void abandon() noexcept = 0;
};

// What is recorded while this lives is abandoned at its end, unless it is kept.
class Recording {
 public:
  explicit Recording(Stream& stream) : stream_(&stream) {}
  ~Recording() {
    if (stream_) stream_->abandon();
  }
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;
  void keep() { stream_ = nullptr; }

 private:
  Stream* stream_;
};

// Nothing is under way afterwards. What memory runs out for comes after the waiting.
inline void drain(Stream& stream) noexcept {
  stream.abandon();
  try {
    (void)stream.wait();
  } catch (const std::bad_alloc&) {
  }
}

// In a child of fork() a device of its parent answers what needs its threads or its driver with Code::Device,
// and can be deleted with all that was made on it.
class Device {
 public:
  virtual ~Device() = default;
  virtual const DeviceInfo& info() const = 0;
  virtual uint64_t memory_free() const = 0;  // bytes that could be allocated now
  virtual Status allocate(uint64_t bytes, Memory memory,
                          Buffer* out) = 0;  // Device memory reads as zero on the CPU only
  virtual Status import_host(const void* pages, uint64_t bytes,
                             Buffer* out) = 0;  // read-only; Unsupported where weights must be copied
  virtual void release(Buffer& buffer) = 0;     // a released or empty buffer is a no-op
  virtual Status load(const KernelCode& code, Kernel* out) = 0;  // cached by content
  virtual void unload(Kernel& kernel) = 0;
  virtual Status create_stream(Stream** out) = 0;  // delete it before the memory it works on, and the device
  virtual Status create_event(Event* out,
                              bool timed = true) = 0;  // `timed`: elapsed_ns knows when it was signalled
  virtual Status elapsed_ns(const Event& from, const Event& to,
                            uint64_t* out) = 0;  // both signalled and waited for
  virtual void destroy(Event& event) = 0;
  virtual void destroy(Graph& graph) = 0;
};

// Large host allocations of a backend go through these when given.
struct HostAllocator {
  void* (*allocate)(void* user, uint64_t bytes, uint64_t alignment) = nullptr;  // null when out of memory
  void (*release)(void* user, void* pointer, uint64_t bytes) = nullptr;
  void* user = nullptr;
};

struct DeviceOptions {
  uint32_t threads = 0;  // CPU workers; 0: as many as the process may use
  HostAllocator allocator;
  uint32_t features_mask = ~0u;        // features the device may report: tests hide instruction sets with it
  const char* cache_folder = nullptr;  // compiled pipelines; null: none are kept
  const char* driver_library = nullptr;  // in place of the backend's own: tests put a faulty one there
  Log log;
};

// One row per backend in backends.def.
struct Backend {
  const char* name;
  uint32_t (*count)(const DeviceOptions& options);  // devices present, 0 without a driver
  // Fails with the reason why it is not usable; what is known is filled all the same.
  Status (*describe)(uint32_t index, const DeviceOptions& options, DeviceInfo* out);
  Status (*open)(uint32_t index, const DeviceOptions& options, Device** out);
};

// What every device refuses with Code::Argument before it records anything: empty buffers, ranges
// outside them, unequal or overlapping copies, blocks over kMaxBlockBytes, grids of no or too many groups.
Status check_slice(const Slice& slice, const char* role);
Status check_dispatch(const Kernel& kernel, const uint32_t (&groups)[3], std::span<const uint8_t> block);
Status check_copy(const Slice& to, const Slice& from);
Status check_fill(const Slice& to);

}  // namespace greta
