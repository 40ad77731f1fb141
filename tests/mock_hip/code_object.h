// Reads what a HIP runtime reads of an AMD GPU code object: the ELF header and the kernel metadata
// (MessagePack in a note), version 5.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace mock_hip {

struct KernelArgument {
  uint64_t offset = 0, bytes = 0;
  std::string kind;  // "by_value", "global_buffer", "hidden_.."
};

struct KernelMetadata {
  std::string name, symbol;
  std::vector<KernelArgument> arguments;
  uint64_t kernarg_bytes = 0, shared_bytes = 0, max_threads = 0, wave = 0;
  uint64_t vgprs = 0, vgpr_spills = 0, sgpr_spills = 0, private_bytes = 0;
};

struct CodeObject {
  std::string target;  // "gfx942"
  std::vector<KernelMetadata> kernels;

  // Returns what is wrong with the bytes, or "". Their number is not known to hipModuleLoadData, so
  // the ELF headers say how far they go.
  std::string parse(const uint8_t* bytes);
  const KernelMetadata* find(const std::string& name) const;
};

}  // namespace mock_hip
