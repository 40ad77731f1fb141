// A device that does no work. The host's own cost is measured on it, and tests make it fail.
#pragma once
#include "runtime/device.h"

namespace greta {

struct NullOptions {
  uint64_t memory_bytes = uint64_t(1) << 40;
  uint64_t fail_allocation = 0;  // the n-th allocation (from 1) fails with Code::Memory; 0: none
  uint64_t fail_submit = 0;      // the n-th submit or wait reports a lost device; 0: none
};

Status open_null_device(const NullOptions& options, Device** out);

}  // namespace greta
