// scaled_add_mirrored: the test kernel again, with every value fetched by the opposite thread, so
// that it is right only if shared memory, the barrier and shuffles are.
//   grid   ceil(count / GROUP)
//   group  GROUP threads, several waves
#include "kernels/abi/scaled_add.h"
#include "kernels/hip/device.h"

KERNEL(GROUP) void KERNEL_NAME(ScaledAddBlock p) {
  SHARED float product[GROUP];
  const uint first = group_x() * GROUP, t = thread_x();

  const uint opposite = GROUP - 1 - t;
  if (first + opposite < p.count) {
    const uint i = first + opposite;
    const uint page = p.page_table[i / p.page_values];
    product[opposite] = p.scale * p.pages[page * p.page_values + i % p.page_values];
  }
  group_barrier();

  const uint mirror = kWave - 1 - lane();
  const uint from = first + t - lane() + mirror;
  const float a = shuffle(from < p.count ? p.a[from] : 0, mirror);
  if (first + t < p.count) p.y[first + t] = a + product[t];
}
