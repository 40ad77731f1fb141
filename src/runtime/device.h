// The backend interface: what a driver must do for GRETA. It knows nothing of models and ops. A backend is a
// folder in backends/ that implements these two classes, and a row in backends.def. Calls of a Device are
// thread-safe; a Stream belongs to one thread.
#pragma once
#include <cstdint>
#include <new>
#include <span>
#include <string>

#include "platform/platform.h"
#include "runtime/gfx_family.h"

struct Scratch;  // a CPU worker's private memory: kernels/cpu/scratch.h

namespace greta {

constexpr uint32_t kMaxBlockBytes = 128;                // Vulkan guarantees no more push constants
constexpr uint64_t kMaxArenaBytes = uint64_t(1) << 30;  // the library makes no larger device allocation

// A CPU kernel runs groups first_group .. first_group + group_count - 1 on the calling thread.
using HostFunction = void (*)(const void* block, uint32_t first_group, uint32_t group_count,
                              Scratch* scratch);

struct DeviceInfo {
  char name[128] = {};                       // "AMD EPYC 9554", "AMD Radeon RX 7900 XTX (RADV NAVI31)"
  char backend[16] = {};                     // "cpu", "vulkan", "hip": the column of the kernel table
  char arch[32] = {};                        // "cpu:amx", "gfx942": the tuner's key
  char driver[128] = {};                     // driver and version: the pipeline cache's key
  char pci[16] = {};                         // "0000:03:00.0"; "" if it is not known
  char library[256] = {};                    // the driver's library that was opened; "" if it is not known
  uint64_t memory_bytes = 0;                 // device-local memory in all
  uint64_t max_allocation_bytes = 0;         // of one Buffer
  uint64_t max_import_bytes = ~uint64_t(0);  // of one import_host
  uint64_t reserve_bytes = 0;                // what plans leave free, since drivers need some or fail without
  uint32_t features = 0;                     // bits of the backend, which kernel rows may need
  uint32_t wave_min = 1, wave_max = 1;       // lanes that run in lockstep
  uint32_t unit_count = 1;                   // compute units, or CPU workers
  uint32_t die_count = 1;                    // dies that take the groups of a launch in turn
  uint32_t shared_bytes = 0;                 // shared memory of a group, or private memory of a CPU worker
  bool unified_memory = false;               // device memory is host memory
  bool cpu_type = false;                     // runs on the host's processor
  bool host_functions = false;    // kernels are functions that this process calls (KernelCode::function)
  bool imports_host = false;      // import_host takes the pages of a mapped file
  uint32_t weight_alignment = 1;  // in bytes, of a tensor that kernels read in such pages
  bool runs_ahead = false;        // submitted work goes on while the host does something else
  bool vendor_driver = false;     // of a GPU for which another driver of the same backend is to be preferred
  bool launches_plans = false;    // a captured plan can be one launch (DeviceOptions::persistent)
  bool own_buffers = false;       // a pool gives each slice a buffer, so that validation sees its end
  bool shares_host = false;       // share_host takes pages of the process
  bool waits_for_host = false;    // what is submitted may wait for the host (Stream::wait_for_host)
};

enum class Memory : uint8_t { Device, Upload, Readback };

struct Buffer {
  void* handle = nullptr;
  uint64_t address = 0;    // what kernels know it by
  void* mapped = nullptr;  // host view: always for Upload and Readback, for Device where memory is the host's
  uint64_t bytes = 0;
};

struct Slice {
  const Buffer* buffer = nullptr;
  uint64_t offset = 0, bytes = 0;
  uint64_t address() const { return buffer ? buffer->address + offset : 0; }
  bool operator==(const Slice&) const = default;
};

// What a launch may touch. Plans derive their barriers from it, and the checked device verifies it.
struct Access {
  enum Mode : uint8_t { kRead = 1, kWrite = 2, kReadWrite = 3 };
  Slice slice;
  Mode mode = kRead;
  bool sparse = false;  // touches an unknown part, as of a page pool, so that only the order can be checked
};

struct Kernel {
  void* handle = nullptr;
  uint32_t group_size[3] = {1, 1, 1};
  const char* name = "";     // of the kernel row, for errors and profiles
  uint16_t chain_field = 0;  // as in KernelCode
};
struct Event {
  void* handle = nullptr;
};
struct Graph {
  void* handle = nullptr;
};

// The bytes between two symbols of the linker. Their distance is not a constant expression, so a table that
// needs no initialisation can hold this, but not a span.
struct CodeBytes {
  const uint8_t* first = nullptr;
  const uint8_t* last = nullptr;
  const uint8_t* begin() const { return first; }
  const uint8_t* end() const { return last; }
  const uint8_t* data() const { return first; }
  size_t size() const { return size_t(last - first); }
  bool empty() const { return first == last; }
};

// The machine code of one kernel: a code object (hip), SPIR-V (vulkan) or a function (cpu).
struct KernelCode {
  const char* name = "";                     // of the kernel row; on hip also the entry point
  CodeBytes code = {};                       // hip, vulkan: packed, for unpack() of platform/files/packed.h
  HostFunction function = nullptr;           // cpu
  std::span<const uint32_t> constants = {};  // specialization constants, in order of their ids
  uint32_t group_size[3] = {1, 1, 1};
  // vulkan: the subgroups of a group; if this many would have less than half of group_size's threads, a group
  // has all threads instead. 0: a group always has all threads.
  uint32_t subgroups = 0;
  // vulkan: the offset in the block of the address of the launch's cell in a chain, by which launches wait
  // for each other (docs/vulkan.md). 0: the kernel takes no part in chains.
  uint16_t chain_field = 0;
  // hip: so many of the last constants are fields behind the first kMaxBlockBytes bytes of the argument
  // block. A dispatch passes them behind its block, and the kernel takes both as one struct by value.
  uint32_t appended = 0;
};

// Work runs in the order in which it was recorded, but a dispatch, copy or fill may overlap those since the
// last barrier(). Nothing blocks the host except wait().
class Stream {
 public:
  virtual ~Stream() = default;
  // `block` has at most kMaxBlockBytes. `accesses` are all that the kernel may touch.
  virtual Status dispatch(const Kernel& kernel, const uint32_t (&groups)[3], std::span<const uint8_t> block,
                          std::span<const Access> accesses) = 0;
  virtual Status copy(const Slice& to, const Slice& from) = 0;  // equal sizes that do not overlap
  virtual Status fill(const Slice& to, uint32_t word) = 0;      // offset and bytes are multiples of 4
  virtual Status barrier() = 0;
  virtual Status signal(Event& event) = 0;  // the event gets the time at which all work before it is done
  virtual Status wait_for(
      const Event& event) = 0;         // this stream waits for another's signal; the host does not
  virtual Status begin_capture() = 0;  // from here on work is recorded into a graph and does not run
  virtual Status split() = 0;  // during a capture: what follows may be submitted apart from what is before
  virtual Status end_capture(Graph* out) = 0;
  virtual Status replay(const Graph& graph) = 0;
  virtual Status submit() = 0;
  virtual Status wait() = 0;                    // submits, then blocks until the stream is idle
  virtual Status wait(const Event& event) = 0;  // submits, then blocks until the event's last signal here
  // Forgets what was recorded since the last submit(), signals too, and ends a capture.
  virtual void abandon() noexcept = 0;
  // What is recorded from here on runs when the host has called let_go() with this number or a higher one;
  // numbers ascend. What the host writes before that call is seen. All that is submitted to the device later
  // may wait with it, so who submits it calls let_go() in any case. Only where DeviceInfo::waits_for_host.
  virtual Status wait_for_host(uint64_t number);
  virtual Status let_go(uint64_t number);
  // Waits look again and again for so long before the thread sleeps, which wakes late.
  virtual void set_patience(uint64_t ns) { (void)ns; }
  // As signal(), for an event of which only the time is wanted: whoever waits for it may wait for all that is
  // submitted with it. It is cheaper on some devices.
  virtual Status stamp(Event& event) { return signal(event); }
};

// Abandons at its end what was recorded while it lived, unless that is kept.
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

// Abandons what was recorded and waits for what was submitted. If memory runs out, it is after the wait.
inline void drain(Stream& stream) noexcept {
  const KeptErrorText kept;
  stream.abandon();
  try {
    (void)stream.wait();
  } catch (const std::bad_alloc&) {
  }
}

// In a child of fork(), calls on the parent's device that need its threads or its driver fail with
// Code::Device. The device and all that was made on it can be deleted there.
class Device {
 public:
  virtual ~Device() = default;
  virtual const DeviceInfo& info() const = 0;
  virtual uint64_t memory_free() const = 0;  // bytes that could be allocated now
  // Device memory starts as zeros on the CPU only.
  virtual Status allocate(uint64_t bytes, Memory memory, Buffer* out) = 0;
  // The buffer is read-only. Fails with Unsupported where weights must be copied.
  virtual Status import_host(const void* pages, uint64_t bytes, Buffer* out) = 0;
  virtual void release(Buffer& buffer) = 0;                      // does nothing to a released or empty buffer
  virtual Status load(const KernelCode& code, Kernel* out) = 0;  // equal code is compiled once
  virtual void unload(Kernel& kernel) = 0;
  virtual Status create_stream(Stream** out) = 0;  // delete it before the memory that it works on
  virtual Status create_event(Event* out, bool timed = true) = 0;  // only timed events have an elapsed_ns
  // Both events must have been signalled and waited for.
  virtual Status elapsed_ns(const Event& from, const Event& to, uint64_t* out) = 0;
  // When a timed event was signalled by now_ns(), and by how much that may be wrong. Fails with Unsupported
  // where nothing relates the device's clock to the host's.
  virtual Status host_ns(const Event& event, uint64_t* out, uint64_t* error_ns);
  // What the driver tells of the machine code that it makes: "Register Count 64, Stack Size 0". Fails with
  // Unsupported where it tells nothing. It may compile the kernel anew.
  virtual Status describe_code(const KernelCode& code, std::string* out);
  virtual void destroy(Event& event) = 0;
  virtual void destroy(Graph& graph) = 0;
  // Makes a buffer of whole pages of this process, which several devices and the host may read and write in
  // turn. Only where DeviceInfo::shares_host.
  virtual Status share_host(void* pages, uint64_t bytes, Buffer* out);
};

// The caller's functions for large host allocations of a backend.
struct HostAllocator {
  void* (*allocate)(void* user, uint64_t bytes, uint64_t alignment) = nullptr;  // null when out of memory
  void (*release)(void* user, void* pointer, uint64_t bytes) = nullptr;
  void* user = nullptr;
};

// Whether captures become graphs of the driver.
enum class Graphs : uint8_t { Default, Off, On };

struct DeviceOptions {
  uint32_t threads = 0;  // CPU workers; 0: as many as there are processors for this process
  HostAllocator allocator;
  uint32_t features_mask = ~0u;          // features that the device may report; tests hide instruction sets
  const char* cache_folder = nullptr;    // where compiled pipelines are kept; null: nowhere
  const char* driver_library = nullptr;  // in place of the backend's own; tests put a faulty one there
  SystemView system;                     // where /sys and /dev are; tests make up their own
  uint32_t wait_limit_ms = 0;  // of GPUs: a wait that takes longer means that the device hangs; 0: a minute
  // HIP: folders of ROCm with ':' between them, which come before those of the system, and the folder of a
  // Python virtual environment, whose ROCm comes last. Null: none.
  const char* rocm_folders = nullptr;
  const char* virtual_environment = nullptr;
  const char* without = nullptr;    // backends with ',' between them that "auto" leaves alone; null: none
  bool persistent = false;          // HIP: a captured plan is one launch, where it can be (docs/hip.md)
  Graphs graphs = Graphs::Default;  // HIP: by default only where the runtime's version is known to be right
  bool imports_files = false;       // HIP: an APU may read mapped files in place
  Log log;
};

// One row per backend in backends.def.
struct Backend {
  const char* name;
  bool is_processor;  // its one device is the processor: it has no number, and "auto" falls back on it
  uint32_t (*count)(const DeviceOptions& options);  // devices that are present; 0 without a driver
  // Fails with the reason if the device is not usable. What is known of it is filled in all the same.
  Status (*describe)(uint32_t index, const DeviceOptions& options, DeviceInfo* out);
  Status (*open)(uint32_t index, const DeviceOptions& options, Device** out);
  // False where "auto" should not even open the driver's library, since there can be no device. Null: true.
  bool (*worth_asking)(const DeviceOptions& options) = nullptr;
};

// Every device refuses these with Code::Argument before it records anything: empty buffers, ranges outside
// them, unequal or overlapping copies, blocks over kMaxBlockBytes, grids of no or too many groups.
Status check_slice(const Slice& slice, const char* role);
Status check_dispatch(const Kernel& kernel, const uint32_t (&groups)[3], std::span<const uint8_t> block);
Status check_copy(const Slice& to, const Slice& from);
Status check_fill(const Slice& to);

// How much of a GPU's memory plans leave free: drivers fail or crash when the last of it is taken.
uint64_t reserve_of(uint64_t memory_bytes);

// What `allocate` of a GPU says: that the size is nothing or above the device's largest buffer; and, behind
// the driver's reason, how much memory seemed to be free.
Status check_allocation(const DeviceInfo& info, uint64_t bytes);
Status allocation_failed(const Device& device, uint64_t bytes, Memory memory, Status reason);

// What a backend asks of a device that it opens.

// Fails if the device does not fill and copy memory right: a driver may list a device that it cannot drive
// (no permission, no firmware, its memory in use by another program).
Status prove_memory(Device& device);
// Whether the device takes the pages of a file that is mapped for reading, tried with this program. Drivers
// that pin pages for writing refuse them, and a memory plan must know beforehand which weights will be
// copied.
bool reads_file_pages(Device& device);
// Whether it takes pages of this process and writes to them, tried with one.
bool shares_pages(Device& device);

}  // namespace greta
