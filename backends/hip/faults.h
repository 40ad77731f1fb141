// What ROCr reports of a GPU in trouble. Without a handler of ours it would end the process. A report
// concerns the process as a whole: the device that caused it is not told apart, so all open ones count as
// lost.
#pragma once
#include "backends/hip/loader.h"

namespace greta {

void hip_watch_faults(const HipLibrary& hip);  // from now on; once a device was counted
uint32_t hip_fault_count();                    // of the process, so far
void hip_fault_text(char (&out)[128]);         // what the last one was

}  // namespace greta
