// scaled_add_spike: the test kernel of kernels/abi/scaled_add.h in Vulkan.
//   grid   ceil(count / group)
//   group  one value for each thread
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
