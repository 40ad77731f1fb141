// The kernels that the mock runtime can run: each registers itself when the library is loaded.
#pragma once
#include <cstdint>
#include <string_view>

namespace mock_hip {

// What a source is built as for the host. It differs by the lanes of a wave: CDNA has 64, RDNA 32.
constexpr std::string_view host_kind(std::string_view target) {
  return target.starts_with("gfx9") ? "wave64" : "wave32";
}

struct HostKernel {
  const char* name;
  const char* kind;        // host_kind of the targets that it stands for
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

#define EMULATED_KERNEL(function, kind, threads)                          \
  static mock_hip::Registration registration(                             \
      {#function, kind, threads, mock_hip::Runner<function>::kBlockBytes, \
       mock_hip::Runner<function>::kAddressCount, mock_hip::Runner<function>::run, nullptr});

}  // namespace mock_hip
