// route_plain: one group is one token.
#include "kernels/vulkan/step.h"

layout(push_constant, scalar) uniform Push { RouteBlock p; };

#include "kernels/vulkan/experts/route.h"

void main() {
  if (gl_WorkGroupID.x < live_rows(step_of(p.step), kRowsTokens)) route(gl_WorkGroupID.x);
}
