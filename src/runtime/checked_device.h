// Wraps any device and verifies what launches declare: buffers alive, ranges inside them, reads only
// of memory that was written, and a barrier between conflicting accesses. Where device memory is host
// memory, pages that a launch did not declare are protected while it runs, so that a missing
// declaration faults. Validation layers do not see hazards through addresses; this does.
#pragma once
#include "runtime/device.h"

namespace greta {

// `inner` must outlive the checked device. Each dispatch runs and completes at once.
// A finding is Code::Device with the kernel, buffer range and the two launches in its text.
Status open_checked_device(Device* inner, Device** out);

}  // namespace greta
