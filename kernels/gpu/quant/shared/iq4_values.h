// The numbers that the 4 bits of the IQ4 types stand for, in shared memory.
#ifndef GRETA_GPU_IQ4_VALUES_H
#define GRETA_GPU_IQ4_VALUES_H

const float kIq4Values[16] = {
#include "kernels/tables/iq4_values.inc"
};
shared float iq4_values[16];

void quant_begin() {
  for (uint i = gl_LocalInvocationIndex; i < 16; i += gl_WorkGroupSize.x) iq4_values[i] = kIq4Values[i];
  barrier();
}
#endif
