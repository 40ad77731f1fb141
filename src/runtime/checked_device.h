// Wraps any device and verifies what launches declare: buffers are alive, ranges lie inside them, only
// written memory is read, and a barrier stands between conflicting accesses. Where kernels are functions of
// this process, pages that a launch did not declare are protected while it runs, so that a missing
// declaration faults. Validation layers do not see hazards through addresses; this device does.
#pragma once
#include "runtime/device.h"

namespace greta {

// `inner` must outlive the checked device. Each dispatch runs and completes at once.
// A violation is Code::Device; its text names the kernel, the range of the buffer and the two launches.
Status open_checked_device(Device* inner, Device** out);

}  // namespace greta
