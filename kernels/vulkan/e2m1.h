// A 4-bit float (2 bits of exponent, 1 of mantissa), doubled: kernels/tables/e2m1_values.inc in arithmetic.
#ifndef GRETA_VULKAN_E2M1_H
#define GRETA_VULKAN_E2M1_H

// Of the low four bits of q.
float e2m1(uint q) {
  const int magnitude = int((0xc8643210u >> ((q & 7) * 4)) & 15);
  return float((q & 8) != 0 ? -magnitude : magnitude);
}
#endif
