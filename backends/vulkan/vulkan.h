// The Vulkan device: memory known by address, one compute queue, kernels as pipelines of one layout.
//
// A stream records command buffers and hands them to the queue in batches; each batch signals the next
// value of the stream's timeline semaphore. An event is a value of a timeline. Vulkan lets nothing of a
// queue overtake a batch that waits, so a batch that waits for a signal which nobody has submitted yet
// is held back on the host until it is.
#pragma once
#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "backends/vulkan/chain.h"
#include "backends/vulkan/physical.h"

namespace greta {

class VulkanDevice;

// Behind Buffer::handle.
struct VulkanBuffer {
  VkBuffer buffer = VK_NULL_HANDLE;
  VkDeviceMemory memory = VK_NULL_HANDLE;
  uint64_t bytes = 0;  // of the memory
  bool device_local = false;
  bool imported = false;  // read-only host pages
  uint64_t first = 0;     // imported: bytes before those that were asked for
};

// Behind Kernel::handle; shared by all loads of the same code and constants.
struct VulkanPipeline {
  VkPipeline pipeline = VK_NULL_HANDLE;
  std::string key;
  uint32_t users = 0;
};

// How far a stream has come. Guarded by VulkanQueue::mutex_ but for the semaphore itself.
struct VulkanTimeline {
  explicit VulkanTimeline(const VulkanDevice& owner) : device(owner) {}
  ~VulkanTimeline();
  const VulkanDevice& device;
  VkSemaphore semaphore = VK_NULL_HANDLE;
  uint64_t given = 0;      // highest value that the stream gave to the queue
  uint64_t submitted = 0;  // highest value that the driver has
  bool closed = false;     // the stream is gone: what was not submitted will never come
  std::thread::id owner_thread;
};

struct VulkanPoint {  // a value of a timeline
  std::shared_ptr<VulkanTimeline> timeline;
  uint64_t value = 0;
};

// Behind Event::handle. `last` is guarded by VulkanQueue::mutex_.
struct VulkanEvent {
  VkQueryPool query = VK_NULL_HANDLE;
  VulkanPoint last;  // the last signal that was recorded
};

// What a barrier has to order, as stages.
struct VulkanOrder {
  VkPipelineStageFlags2 since = 0;  // of what was recorded after the last barrier()
  VkPipelineStageFlags2 owed_to_kernels = 0,
                        owed_to_transfers = 0;  // what these are still to be ordered after
};

// Behind Graph::handle. Its command buffers may be pending several times at once.
struct VulkanGraph {
  VkCommandPool pool = VK_NULL_HANDLE;
  std::vector<VkCommandBuffer> parts;  // submitted one by one
  VulkanOrder order;                   // of the stream while it is captured, then what is left at its end
  std::unique_ptr<VulkanChain> chain;  // where the device has them
};

struct VulkanBatch {
  VulkanPoint done;  // signalled at its end
  std::vector<VkCommandBuffer> commands;
  std::vector<VulkanPoint> waits;
  bool alone = false;  // ends a vkQueueSubmit2
  bool empty() const { return commands.empty() && waits.empty(); }
};

class VulkanQueue {
 public:
  explicit VulkanQueue(VulkanDevice& device) : device_(device) {}
  void set(VkQueue queue) { queue_ = queue; }

  Status submit(std::vector<VulkanBatch>& batches);  // leaves it empty
  Status wait(const VulkanPoint& point);             // blocks until it was reached
  void close(VulkanTimeline& timeline);              // drops what is held back of a stream that ends
  void wait_idle();                                  // all that was submitted; a lost device answers at once

  void set_event(VulkanEvent& event, const VulkanPoint& point);
  VulkanPoint event_point(const VulkanEvent& event);
  bool reached(const VulkanPoint& point);

 private:
  Status pump(std::vector<VulkanBatch>& ready);
  Status submit_ready(std::span<const VulkanBatch> ready);
  bool waits_for_own_thread(const VulkanTimeline& timeline) const;

  VulkanDevice& device_;
  VkQueue queue_ = VK_NULL_HANDLE;
  std::mutex mutex_;
  Unforked<std::condition_variable> changed_;
  std::deque<VulkanBatch> held_;  // given but not submitted, in order
};

class VulkanStream final : public Stream {
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
  Status wait_for(const Event& event) override;
  Status begin_capture() override;
  Status split() override;
  Status end_capture(Graph* out) override;
  Status replay(const Graph& graph) override;
  Status submit() override;
  Status wait() override;
  Status wait(const Event& event) override;
  void abandon() noexcept override;

 private:
  struct Used {
    VkCommandBuffer commands;
    uint64_t value;
  };

  void order(VkPipelineStageFlags2 stage);  // before each command
  void order_after(const VulkanOrder& graph);
  Status show_host();
  uint64_t link(const Kernel& kernel, uint64_t groups);  // and before a launch: its cell in a chain, or 0
  void open_chain();
  Status fill_chain(VulkanChain& chain);
  Status not_capturing(const char* what) const;
  Status begin();  // makes commands_ ready to record into
  Status take_buffer(VkCommandBuffer* out);
  Status close();              // ends commands_
  Status seal(bool for_host);  // ends the open batch
  Status reclaim();            // command buffers that have run

  VulkanDevice& device_;
  std::shared_ptr<VulkanTimeline> timeline_;
  uint64_t value_ = 0;  // of the last batch sealed
  VkCommandPool pool_ = VK_NULL_HANDLE;
  VkCommandBuffer commands_ = VK_NULL_HANDLE;  // being recorded
  VkPipeline bound_ = VK_NULL_HANDLE;          // in commands_
  // Others may have been before.
  VulkanOrder order_{VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_2_ALL_TRANSFER_BIT};
  bool shown_ = false;    // the host sees what the open batch writes
  bool follows_ = false;  // the stage waits for the one before by a chain
  uint64_t abandons_ = 0;
  std::vector<VkCommandBuffer> free_;
  std::deque<Used> used_;             // by value
  std::vector<VulkanBatch> batches_;  // sealed
  VulkanBatch open_;
  std::unique_ptr<VulkanGraph> capture_;
};

class VulkanDevice final : public Device {
 public:
  VulkanDevice() : queue(*this) {}
  ~VulkanDevice() override;
  Status open(std::unique_ptr<VulkanInstance> instance, uint32_t index, const DeviceOptions& options);

  const DeviceInfo& info() const override { return physical.info; }
  uint64_t memory_free() const override;
  Status allocate(uint64_t bytes, Memory memory, Buffer* out) override;
  Status import_host(const void* pages, uint64_t bytes, Buffer* out) override;
  void release(Buffer& buffer) override;
  Status load(const KernelCode& code, Kernel* out) override;
  void unload(Kernel& kernel) override;
  Status create_stream(Stream** out) override;
  Status create_event(Event* out, bool timed) override;
  Status elapsed_ns(const Event& from, const Event& to, uint64_t* out) override;
  void destroy(Event& event) override;
  void destroy(Graph& graph) override;
  void discard(std::unique_ptr<VulkanGraph> graph);  // none of it is pending

  // A driver's answer to `what`, a literal, as a status. A device that was lost stays lost: nothing is asked
  // of it again, and every later failure names the first.
  Status result(VkResult result, const char* what);
  Status usable() const;
  // In a child of fork() the driver's objects are the parent's, and none is touched.
  bool elsewhere() const { return process_.elsewhere(); }
  void lose(const char* by,
            VkResult with);  // from now on nothing is asked of it; `by` is a literal, the first one is told
  bool lost_by_chains() const { return lost_by_chains_; }  // while it was opened
  Status waited_well();                                    // after a wait: that no kernel waited in vain
  uint64_t stuck_address() const {
    return stuck_.address;
  }  // of a word that kernels set when they have waited in vain

  VulkanPhysical physical;
  VulkanFunctions vk;
  VkDevice handle = VK_NULL_HANDLE;
  VkPipelineLayout layout = VK_NULL_HANDLE;
  VulkanQueue queue;

 private:
  Status create_device();
  Status prove();  // that work comes back right
  Status prove_chain();
  Status check_chain(Stream& stream, const Kernel& kernel, const Slice& memory, Graph* graph);
  Status create_buffer(uint64_t bytes, const void* next, VulkanBuffer* out, VkMemoryRequirements* needs);
  Status bind_memory(int type, void* next, VulkanBuffer* out);
  Status allocate_memory(uint64_t bytes, Memory memory, VulkanBuffer* out, void** mapped);
  Status import_memory(uint64_t address, VulkanBuffer* out);
  uint64_t address_of(const VulkanBuffer& buffer) const;
  bool reads_file_pages();
  Status create_pipeline(const KernelCode& code, VkPipeline* out);
  Status nanoseconds(const VulkanEvent& event, const char* which, uint64_t* out);
  void destroy_buffer(VulkanBuffer& buffer);

  Status open_pipeline_cache(const DeviceOptions& options);
  void save_pipeline_cache();

  Process process_;
  std::unique_ptr<VulkanInstance> instance_;
  PFN_vkGetMemoryHostPointerPropertiesEXT host_pointer_properties_ = nullptr;  // of an extension
  Log log_;
  std::string cache_path_;  // "": none is kept
  VkPipelineCache cache_ = VK_NULL_HANDLE;
  uint64_t cached_bytes_ = 0;  // in the file
  std::atomic<bool> compiled_{false};
  bool lost_by_chains_ = false;
  std::atomic<const char*> lost_by_{nullptr};         // the call that said so, once it is lost
  std::atomic<int> lost_with_{VK_ERROR_DEVICE_LOST};  // a VkResult
  Buffer stuck_;
  std::atomic<uint64_t> used_bytes_{0};  // device-local
  std::mutex pipelines_mutex_;
  std::map<std::string, std::unique_ptr<VulkanPipeline>> pipelines_;
};

}  // namespace greta
