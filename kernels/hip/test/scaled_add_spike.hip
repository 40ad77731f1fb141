// scaled_add_spike: the test kernel of kernels/abi/scaled_add.h in HIP.
//   grid   ceil(count / GROUP)
//   group  GROUP threads, one value for each
#include "kernels/abi/scaled_add.h"
#include "kernels/hip/device.h"

KERNEL(GROUP) void KERNEL_NAME(ScaledAddBlock p) {
  const uint i = group_x() * GROUP + thread_x();
  if (i >= p.count) return;
  const uint page = p.page_table[i / p.page_values];
  p.y[i] = p.a[i] + p.scale * p.pages[page * p.page_values + i % p.page_values];
}
