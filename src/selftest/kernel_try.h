// Tries a kernel whose code comes from a file: checks it as the self-test does, and times it beside the code
// that was built in.
#pragma once
#include <string>

#include "selftest/rig.h"

namespace greta::selftest {

struct KernelTry {
  std::string name;                       // of rows of the kernel table
  std::span<const uint8_t> code = {};     // SPIR-V, or a code object; empty: what is built in
  uint32_t n = 0, depth = 0, tokens = 0;  // of the product that is timed; n 0: nothing is
};

struct KernelTried {
  uint32_t kernels = 0;  // rows that were checked
  uint64_t launches = 0;
  std::string failure;                       // what was wrong; "" if nothing was
  std::string untimed;                       // why nothing was timed; "" if it was
  std::vector<uint64_t> built_ns, given_ns;  // of a launch in each round; without code given_ns is empty
  double error = 0;                          // NMSE of the timed launch against the plain kernels
  uint64_t bytes = 0, flops = 0;             // of a launch
  std::string machine_code;                  // what the driver tells of what was timed; "" if nothing
};

// Fails with Argument if there is no such kernel, and with Unsupported if the driver refuses the code.
Status try_kernel(Device& device, const KernelTry& wanted, KernelTried* out);

// Machine code as the kernel table has it, without being made smaller.
std::vector<uint8_t> packed_plainly(std::span<const uint8_t> code);

}  // namespace greta::selftest
