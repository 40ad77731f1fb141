// The Vulkan device: memory known by address, one compute queue, kernels as pipelines of one layout.
//
// A stream records command buffers and gives them to the queue in batches. Each batch signals the next value
// of the stream's timeline semaphore, and an event is a value of a timeline. In a Vulkan queue nothing
// overtakes a batch that waits, so the host holds it back (runtime/held_queue.h).
#pragma once
#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "backends/vulkan/chain.h"
#include "backends/vulkan/physical.h"
#include "runtime/held_queue.h"

namespace greta {

class VulkanDevice;

// What Buffer::handle points to.
struct VulkanBuffer {
  VkBuffer buffer = VK_NULL_HANDLE;
  VkDeviceMemory memory = VK_NULL_HANDLE;
  uint64_t bytes = 0;      // of the memory
  int type = -1;           // of memory that is shared
  bool adopted = false;    // the host destroys it
  bool counted = false;    // in what the device has used
  bool read_only = false;  // it consists of host pages that are only read
  uint64_t first = 0;      // imported: bytes before the first one that was asked for
};

// What Kernel::handle points to. All loads of the same code and constants share it.
struct VulkanPipeline {
  VkPipeline pipeline = VK_NULL_HANDLE;
  std::string key;
  uint32_t users = 0;
};

// How far a stream has come, as its semaphore counts.
struct VulkanTimeline : StreamProgress {
  explicit VulkanTimeline(const VulkanDevice& owner) : device(owner) {}
  ~VulkanTimeline();
  const VulkanDevice& device;
  VkSemaphore semaphore = VK_NULL_HANDLE;
  bool adopted = false;  // the host destroys it
};

// A value of a timeline.
struct VulkanPoint {
  std::shared_ptr<VulkanTimeline> timeline;
  uint64_t value = 0;
};

// What Event::handle points to. `last` is guarded by the queue.
struct VulkanEvent {
  VkQueryPool query = VK_NULL_HANDLE;
  VulkanPoint last;  // the last signal that was recorded
};

// The pipeline stages that barriers have to order.
struct VulkanOrder {
  VkPipelineStageFlags2 since = 0;              // the stages of the commands after the last barrier()
  VkPipelineStageFlags2 owed_to_kernels = 0;    // a barrier after these is owed before the next kernel
  VkPipelineStageFlags2 owed_to_transfers = 0;  // and after these before the next transfer
};

// What Graph::handle points to. Its command buffers may be pending several times at once.
struct VulkanGraph {
  VkCommandPool pool = VK_NULL_HANDLE;
  std::vector<VkCommandBuffer> parts;  // submitted one by one
  VulkanOrder order;  // during the capture that of the stream, then what is owed at the graph's end
  std::unique_ptr<VulkanChain> chain;  // null if the device has no chains
};

struct VulkanBatch {
  VulkanPoint done;  // signalled at its end
  std::vector<VkCommandBuffer> commands;
  std::vector<VulkanPoint> waits;
  std::vector<VulkanPoint> signals;  // of timelines that others know too, at its end
  bool alone = false;                // it is the last of its vkQueueSubmit2
  bool empty() const { return commands.empty() && waits.empty() && signals.empty(); }
};

// Of a queue that the host uses too. Without functions there is none.
struct VulkanLock {
  void (*take)(void* user) = nullptr;
  void (*leave)(void* user) = nullptr;
  void* user = nullptr;
  void lock() const {
    if (take) take(user);
  }
  void unlock() const {
    if (leave) leave(user);
  }
};

class VulkanQueue : public HeldQueue<VulkanBatch> {
 public:
  explicit VulkanQueue(VulkanDevice& device) : device_(device) {}
  void set(VkQueue queue, const VulkanLock& lock = {}) { queue_ = queue, host_lock_ = lock; }

  Status submit(std::vector<VulkanBatch>& batches);  // leaves `batches` empty
  // Blocks until the point is reached. For `patience_ns` the thread looks again and again.
  Status wait(const VulkanPoint& point, uint64_t patience_ns = 0);
  void close(VulkanTimeline& timeline);  // drops what is held back of a stream that ends
  void wait_idle();                      // blocks until all submitted work is done, or the device is lost

  bool reached(const VulkanPoint& point);

 private:
  Status pump(std::vector<VulkanBatch>& ready);
  Status submit_ready(std::span<const VulkanBatch> ready);
  bool comes_soon(const VulkanPoint& point, uint64_t patience_ns);
  Status look_at_progress(const VulkanPoint& point, uint64_t* reached, uint64_t* since, bool* told);

  VulkanDevice& device_;
  VkQueue queue_ = VK_NULL_HANDLE;
  VulkanLock host_lock_;
};

class VulkanStream final : public Stream, public SharingStream {
 public:
  explicit VulkanStream(VulkanDevice& device) : device_(device) {}
  ~VulkanStream() override;  // finishes what was submitted
  Status open();

  Status dispatch(const Kernel& kernel, const uint32_t (&groups)[3], std::span<const uint8_t> block,
                  std::span<const Access> accesses) override;
  Status copy(const Slice& to, const Slice& from) override;
  Status fill(const Slice& to, uint32_t word) override;
  Status barrier() override;
  Status signal(Event& event) override;
  Status stamp(Event& event) override;
  Status wait_for(const Event& event) override;
  Status wait_for_host(uint64_t number) override;
  Status let_go(uint64_t number) override;
  void set_patience(uint64_t ns) override { patience_ns_ = ns; }
  Status begin_capture() override;
  Status split() override;
  Status end_capture(Graph* out) override;
  Status replay(const Graph& graph) override;
  Status submit() override;
  Status wait() override;
  Status wait(const Event& event) override;
  void abandon() noexcept override;
  Status signal_shared(const SharedTimeline& timeline, uint64_t value) override;
  Status wait_for_shared(const SharedTimeline& timeline, uint64_t value) override;

 private:
  struct Used {
    VkCommandBuffer commands;
    uint64_t value;
  };

  void order(VkPipelineStageFlags2 stage);  // called before each command
  void order_after(const VulkanOrder& graph);
  Status show_host();
  Status create_timeline(std::shared_ptr<VulkanTimeline>* out);
  uint64_t link(const Kernel& kernel,
                uint64_t groups);  // called before a launch for its cell in a chain, or 0
  void open_chain();
  Status fill_chain(VulkanChain& chain);
  Status not_capturing(const char* what) const;
  Status write_time(const VulkanEvent& event);
  Status begin();  // makes commands_ ready to record into
  Status take_buffer(VkCommandBuffer* out);
  Status close();              // ends commands_
  Status seal(bool for_host);  // ends the open batch
  Status reclaim();            // makes command buffers that have run free again

  VulkanDevice& device_;
  std::shared_ptr<VulkanTimeline> timeline_;
  std::shared_ptr<VulkanTimeline> gate_;  // its values are the host's; null until something waits for them
  uint64_t gates_ = 0, let_go_ = 0;       // the highest value that is waited for, and that was reached
  bool heeds_host_ = false;               // the open batch comes behind a gate, and has no barrier for it yet
  uint64_t patience_ns_ = 0;
  uint64_t value_ = 0;  // of the last sealed batch
  VkCommandPool pool_ = VK_NULL_HANDLE;
  VkCommandBuffer commands_ = VK_NULL_HANDLE;  // being recorded
  VkPipeline bound_ = VK_NULL_HANDLE;          // in commands_
  // Other streams may have submitted work of any kind before.
  VulkanOrder order_{VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_2_ALL_TRANSFER_BIT};
  bool shown_ = false;     // the host sees what the open batch writes
  bool follows_ = false;   // the chain's stage waits for the one before it by counters
  uint64_t abandons_ = 0;  // how often the stream was abandoned
  std::vector<VkCommandBuffer> free_;
  std::deque<Used> used_;             // by ascending value
  std::vector<VulkanBatch> batches_;  // sealed and not submitted
  VulkanBatch open_;
  std::unique_ptr<VulkanGraph> capture_;
};

class VulkanDevice final : public Device, public SharingDevice {
 public:
  VulkanDevice() : queue(*this) {}
  ~VulkanDevice() override;
  Status open(std::unique_ptr<VulkanInstance> instance, uint32_t index, const DeviceOptions& options);
  Status adopt(const HostHandles& handles, const DeviceOptions& options);

  const DeviceInfo& info() const override { return physical.info; }
  uint64_t memory_free() const override;
  Status allocate(uint64_t bytes, Memory memory, Buffer* out) override;
  Status import_host(const void* pages, uint64_t bytes, Buffer* out) override {
    return import_pages(pages, bytes, false, out);
  }
  Status share_host(void* pages, uint64_t bytes, Buffer* out) override {
    return import_pages(pages, bytes, true, out);
  }
  void release(Buffer& buffer) override;
  Status load(const KernelCode& code, Kernel* out) override;
  void unload(Kernel& kernel) override;
  Status create_stream(Stream** out) override;
  Status create_event(Event* out, bool timed) override;
  Status elapsed_ns(const Event& from, const Event& to, uint64_t* out) override;
  Status host_ns(const Event& event, uint64_t* out, uint64_t* error_ns) override;
  Status describe_code(const KernelCode& code, std::string* out) override;
  void destroy(Event& event) override;
  void destroy(Graph& graph) override;
  Status allocate_shared(uint64_t bytes, Buffer* out) override;
  Status export_memory(const Buffer& buffer, ExportedMemory* out) override;
  Status import_memory(const ExportedMemory& memory, uint64_t bytes, Buffer* out) override;
  Status adopt_buffer(uint64_t buffer, uint64_t bytes, Buffer* out) override;
  Status create_shared(SharedTimeline* out) override;
  Status export_timeline(const SharedTimeline& timeline, int* out_descriptor) override;
  Status import_timeline(int descriptor, SharedTimeline* out) override;
  Status adopt_timeline(uint64_t semaphore, SharedTimeline* out) override;
  void destroy_shared(SharedTimeline& timeline) override;
  Status value_of(const SharedTimeline& timeline, uint64_t* out) override;
  Status wait_shared(const SharedTimeline& timeline, uint64_t value) override;
  void discard(std::unique_ptr<VulkanGraph> graph);  // none of its command buffers may be pending

  // Makes a status of a driver's answer to the call `what`, a literal. A lost device stays lost: the driver
  // is not called again, and every later failure names the first one.
  Status result(VkResult result, const char* what);
  Status usable() const;
  // Whether the driver must not even be called to free something: in a child of fork(), since its objects are
  // the parent's, and once the device hangs, since such calls may wait for work that never ends.
  bool out_of_reach() const { return process_.elsewhere() || hangs_; }
  // Marks the device as lost because a wait has taken too long.
  void lose_by_hanging();
  uint64_t wait_limit_ns() const { return wait_limit_ns_; }
  const Log& log() const { return log_; }
  // Marks the device as lost. `by`, a literal, says what found that; the first one is kept.
  void lose(const char* by, VkResult with);
  bool lost_by_chains() const { return lost_by_chains_; }  // while it was opened
  Status waited_well();                                    // after a wait: fails if a kernel waited in vain
  // The address of a word that kernels set when they waited in vain.
  uint64_t stuck_address() const { return stuck_.address; }

  VulkanPhysical physical;
  VulkanFunctions vk;
  VkDevice handle = VK_NULL_HANDLE;
  VkPipelineLayout layout = VK_NULL_HANDLE;
  VulkanQueue queue;

 private:
  Status inspect_physical(uint32_t index, const DeviceOptions& options);
  Status create_device();
  Status use(VkDevice device);
  Status prove(const DeviceOptions& options);
  Status prove_chain();
  bool chain_failed_before() const;
  std::string chain_proof_path() const;
  Status check_chain(Stream& stream, const Kernel& kernel, const Slice& memory, Graph* graph);
  Status create_buffer(uint64_t bytes, const void* next, VulkanBuffer* out, VkMemoryRequirements* needs);
  Status bind_memory(int type, void* next, VulkanBuffer* out);
  Status bind_memory_of(Memory memory, uint32_t allowed, VulkanBuffer* out, int* type);
  Status allocate_memory(uint64_t bytes, Memory memory, VulkanBuffer* out, void** mapped);
  Status import_pages(const void* pages, uint64_t bytes, bool writable, Buffer* out);
  Status import_memory(uint64_t address, bool writable, VulkanBuffer* out);
  int type_of(Memory memory, uint32_t allowed) const;  // negative: there is none
  template <class Function>
  Status find(const char* name, Function* out);
  Status shares_memory(VkExternalMemoryFeatureFlags wanted, bool* alone);
  Status bind_shared(uint64_t bytes, int type, bool alone, VkBaseInStructure* next, VulkanBuffer* out);
  Status give_shared(const Status& status, uint64_t bytes, std::unique_ptr<VulkanBuffer> made, Buffer* out);
  Status shares_timelines(VkExternalSemaphoreFeatureFlags wanted);
  Status make_timeline(const void* next, SharedTimeline* out);
  uint64_t address_of(const VulkanBuffer& buffer) const;
  Status create_pipeline(const KernelCode& code, VkPipelineCreateFlags flags, VkPipeline* out);
  Status describe_pipeline(VkPipeline pipeline, std::string* out);
  uint64_t ticks_mask() const;  // the bits that the device's clock has
  Status ticks(const VulkanEvent& event, const char* which, uint64_t* out);
  void destroy_buffer(VulkanBuffer& buffer);

  Status open_pipeline_cache(const DeviceOptions& options);
  void save_pipeline_cache();

  Process process_;
  std::unique_ptr<VulkanInstance> instance_;
  bool adopted_ = false;  // the device is the host's
  PFN_vkGetMemoryHostPointerPropertiesEXT host_pointer_properties_ = nullptr;  // null without its extension
  Log log_;
  uint64_t wait_limit_ns_ = 0;
  std::string system_root_;  // where /sys is
  std::atomic<bool> hangs_{false};
  std::string cache_path_;  // "" if no cache is kept
  VkPipelineCache cache_ = VK_NULL_HANDLE;
  uint64_t cached_bytes_ = 0;  // in the file
  std::atomic<bool> compiled_{false};
  bool lost_by_chains_ = false, chain_proved_ = false;
  std::atomic<const char*> lost_by_{nullptr};  // what found that the device is lost; null while it is not
  std::atomic<int> lost_with_{VK_ERROR_DEVICE_LOST};  // a VkResult
  Buffer stuck_;
  std::atomic<uint64_t> used_bytes_{0};  // of the memory that memory_free() counts
  std::mutex pipelines_mutex_;
  std::map<std::string, std::unique_ptr<VulkanPipeline>> pipelines_;
};

}  // namespace greta
