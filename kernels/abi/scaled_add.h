// Argument block of scaled_add, the smallest kernel that is shaped like a real one. The engine
// does not use it: tests/spike takes it through every backend to prove how kernels are built and launched.
#ifndef GRETA_ABI_SCALED_ADD_H
#define GRETA_ABI_SCALED_ADD_H
#include "kernels/abi/abi.h"

// y[i] = a[i] + scale * pages[page_table[i / page_values]][i % page_values], i < count
struct ScaledAddBlock {
  ADDRESS(float) a;           // [count]
  ADDRESS(float) pages;       // [pool][page_values]
  ADDRESS(uint) page_table;   // [ceil(count / page_values)], pages of the pool
  ADDRESS(float) y;           // [count]
  uint count;
  float scale;
  uint page_values;           // fixed for a model: a specialization constant in Vulkan
};

#endif
