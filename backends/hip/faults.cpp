#include "backends/hip/faults.h"

#include <atomic>
#include <mutex>
#include <set>
#include <string>

namespace greta {

static std::atomic<uint64_t> last_address{0};
static std::atomic<uint32_t> last_type{kHsaMemoryFault}, fault_count{0};

// Runs in a thread of ROCr. The answer 0 says that the event was taken care of.
static int on_fault(const HsaEvent* event, void*) {
  last_type = event->type;
  last_address = event->type == kHsaMemoryFault ? event->address : 0;
  ++fault_count;
  return 0;
}

// A HIP runtime that opens ROCr itself does not show its functions. By now it has opened it.
template <class Function>
static Function find_in_rocr(const char* symbol) {
  static auto& rocr = *new DynamicLibrary;  // stays open, as the runtime does
  const std::string path = loaded_library("libhsa-runtime64.so");
  if (path.empty() || !rocr.open(path.c_str()).ok()) return nullptr;
  return reinterpret_cast<Function>(rocr.find(symbol));
}

// Handlers cannot be taken back, so each library gets one.
void hip_watch_faults(const HipLibrary& hip) {
  static std::mutex mutex;
  static auto& watched = *new std::set<const HipLibrary*>;
  const std::lock_guard<std::mutex> lock(mutex);
  if (watched.contains(&hip)) return;
  auto add = hip.hsa_amd_register_system_event_handler;
  if (!add) add = find_in_rocr<decltype(add)>("hsa_amd_register_system_event_handler");
  if (add && add(on_fault, nullptr) == 0) watched.insert(&hip);
}

uint32_t hip_fault_count() { return fault_count; }

void hip_fault_text(char (&out)[128]) {
  if (last_type == kHsaMemoryFault)
    format_text(out, sizeof out, "a page fault: a kernel used memory at 0x%llx",
                (unsigned long long)last_address.load());
  else
    format_text(out, sizeof out, "%s", last_type == kHsaMemoryError ? "a memory error" : "the GPU was reset");
}

}  // namespace greta
