// In front of a kernel's own source that is compiled as a body of decode_stages: it is a function of the
// device, and the registers that it may take are those of decode_stages.
#include "kernels/hip/device.h"
#undef KERNEL_OF
#define KERNEL_OF(least, most) static inline __attribute__((device, always_inline))
#define amdgpu_waves_per_eu(least)
