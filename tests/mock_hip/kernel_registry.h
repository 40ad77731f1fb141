// The kernels that the mock runtime can run: each registers itself when the library is loaded.
#pragma once
#include <cstdint>

namespace mock_hip {

struct HostKernel {
  const char* name;
  const char* target;      // "gfx942"
  unsigned threads;        // of a group
  unsigned block_bytes;    // of its only argument
  unsigned address_count;  // 64-bit addresses at the start of the block
  void (*run)(void* block);
  HostKernel* next;
};

void register_kernel(HostKernel* kernel);
const HostKernel* find_kernel(const char* name, const char* target);  // null if there is none

// Stands for any address when a block is tried out below.
struct AnyAddress {
  template <class T>
  operator T*() const;
};

// How many fields at the start of Block are addresses: as many as it can be built from.
template <class Block, class... Addresses>
constexpr unsigned count_addresses() {
  if constexpr (requires { Block{Addresses{}..., AnyAddress{}}; })
    return count_addresses<Block, Addresses..., AnyAddress>();
  else
    return sizeof...(Addresses);
}

template <auto kernel>
struct Runner;
template <class Block, void (*kernel)(Block)>
struct Runner<kernel> {
  static constexpr unsigned kBlockBytes = sizeof(Block);
  static constexpr unsigned kAddressCount = count_addresses<Block>();
  static void run(void* block) { kernel(*static_cast<Block*>(block)); }
};

struct Registration {
  HostKernel kernel;
  explicit Registration(const HostKernel& from) : kernel(from) { register_kernel(&kernel); }
};

#define EMULATED_KERNEL(function, target, threads)                          \
  static mock_hip::Registration registration(                               \
      {#function, target, threads, mock_hip::Runner<function>::kBlockBytes, \
       mock_hip::Runner<function>::kAddressCount, mock_hip::Runner<function>::run, nullptr});

}  // namespace mock_hip
