#include "tests/mock_hip/launch.h"

#include <algorithm>
#include <cstring>
#include <thread>

#include "tests/mock_hip/memory.h"
#include "tests/mock_hip/orders.h"
#include "tests/mock_hip/resident_grid.h"

namespace mock_hip {

constexpr uint64_t kMaxSharedBytes = 64 * 1024;

// Copies the kernel's argument out of either form of a launch; returns what is wrong with it, or "".
static std::string read_block(const KernelMetadata& kernel, void** parameters, void** extra,
                              std::vector<uint64_t>* block) {
  const KernelArgument* own = nullptr;
  for (const KernelArgument& argument : kernel.arguments) {
    if (argument.kind.rfind("hidden_", 0) == 0) return "the kernel takes hidden arguments";
    if (own || argument.kind != "by_value" || argument.offset)
      return "the kernel takes more than one block by value";
    own = &argument;
  }
  if (!own) return "the kernel takes no block";
  block->assign((own->bytes + 7) / 8, 0xeeeeeeeeeeeeeeee);
  if (parameters) {
    std::memcpy(block->data(), parameters[0], own->bytes);
    return "";
  }
  constexpr uintptr_t kBuffer = 1, kBytes = 2, kEnd = 3;
  const void* buffer = nullptr;
  uint64_t bytes = 0;
  for (; extra && reinterpret_cast<uintptr_t>(extra[0]) != kEnd; extra += 2) {
    if (reinterpret_cast<uintptr_t>(extra[0]) == kBuffer) buffer = extra[1];
    if (reinterpret_cast<uintptr_t>(extra[0]) == kBytes) bytes = *static_cast<size_t*>(extra[1]);
  }
  if (!buffer || bytes != own->bytes)
    return "a block of " + std::to_string(bytes) + " bytes, the code object takes " +
           std::to_string(own->bytes);
  std::memcpy(block->data(), buffer, bytes);
  return "";
}

static std::string check_shape(const Function& function, const LaunchShape& shape, unsigned dynamic_shared) {
  const KernelMetadata& metadata = *function.metadata;
  if (!shape.groups[0] || !shape.groups[1] || !shape.groups[2]) return "an empty grid";
  if (shape.threads > metadata.max_threads)
    return "a group of " + std::to_string(shape.threads) + " threads, the code object allows " +
           std::to_string(metadata.max_threads);
  if (shape.threads % function.host->threads)  // the argument block may ask for more (THREADS)
    return "a group of " + std::to_string(shape.threads) + " threads, the kernel takes multiples of " +
           std::to_string(function.host->threads);
  const uint64_t shared = number("MOCK_HIP_SHARED", kMaxSharedBytes);
  if (metadata.shared_bytes + dynamic_shared > shared)
    return "more than " + std::to_string(shared) + " bytes of shared memory";
  return "";
}

static std::string check_addresses(const HostKernel& host, const std::vector<uint64_t>& block) {
  if (host.block_bytes > block.size() * 8) return "the host build takes a larger block than the code object";
  for (unsigned i = 0; i < host.address_count; ++i)
    if (block[i] && !is_device_visible(reinterpret_cast<void*>(block[i]), 1))
      return "address " + std::to_string(i) + " of the block is not in device memory";
  return "";
}

std::string make_launch(const Function& function, const unsigned (&groups)[3], unsigned threads,
                        unsigned shared_bytes, void** parameters, void** extra, KernelLaunch* out) {
  out->function = function;
  const unsigned workers =
      unsigned(number("MOCK_HIP_THREADS", std::min(std::thread::hardware_concurrency(), 4u)));
  out->shape = {{groups[0], groups[1], groups[2]},
                threads,
                unsigned(function.metadata->wave),
                unsigned(number("MOCK_HIP_SEED", 0)),
                workers};
  std::string wrong = check_shape(function, out->shape, shared_bytes);
  if (wrong.empty()) wrong = read_block(*function.metadata, parameters, extra, &out->block);
  if (wrong.empty()) wrong = check_addresses(*function.host, out->block);
  return wrong.empty() ? "" : function.metadata->name + ": " + wrong;
}

std::string run_launch(const KernelLaunch& launch) {
  std::vector<uint64_t> block = launch.block;
  void (*const run)(void*) = launch.function.host->run;
  const Residence residence = {launch.resident, unsigned(number("MOCK_HIP_DIES", 1)), find_kernel};
  const char* fault = launch.resident ? run_resident_grid(launch.shape, residence, run, block.data())
                                      : run_grid(launch.shape, run, block.data());
  if (!fault && find_overrun()) fault = "it wrote behind the end of a buffer";
  return fault ? launch.function.metadata->name + ": " + fault : "";
}

}  // namespace mock_hip
