// scaled_add_spike, for tests/spike: y[i] = a[i] + scale * pages[page_table[i / page_values]][i %
// page_values], i < count
//   grid    (count / GROUP)
//   group   GROUP threads with a value each
//   shared  none
//   moves   a, y and the values of the pages once
// The argument block is ScaledAddBlock of kernels/abi/scaled_add.h.
#include "kernels/vulkan/device.h"
#include "kernels/abi/scaled_add.h"

layout(constant_id = 2) const uint kPageValues = 1;
layout(push_constant, scalar) uniform Push { ScaledAddBlock p; };

void main() {
  const uint i = gl_GlobalInvocationID.x;
  if (i >= p.count) return;
  const uint page = p.page_table.at[i / kPageValues];
  precise float sum = p.a.at[i] + p.scale * p.pages.at[page * kPageValues + i % kPageValues];
  p.y.at[i] = sum;
}
