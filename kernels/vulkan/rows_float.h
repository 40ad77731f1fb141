// What dot/<type>.h of a float type multiplies with: 8 values of x.
#ifndef GRETA_VULKAN_ROWS_FLOAT_H
#define GRETA_VULKAN_ROWS_FLOAT_H

struct Values {
  vec4 x0, x1;
};
#endif
