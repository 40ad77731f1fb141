// One spelling of kernel argument blocks for C++, HIP and GLSL. A block holds only addresses and
// 32-bit scalars, at most 128 bytes; addresses come first, so that every language packs it alike.
//   ADDRESS(T)  C++ host and CPU kernels: uint64_t.  HIP: a typed global pointer (an integer cast
//               to a pointer would give slow flat_ accesses).  GLSL: a buffer reference, T_address.
#ifndef GRETA_ABI_H
#define GRETA_ABI_H

#if defined(GL_core_profile)
#define ADDRESS(T) T##_address
#define GRETA_ABI_BUFFER(T) layout(buffer_reference, scalar) buffer T##_address { T at[]; };
#define GRETA_ABI_BYTES layout(buffer_reference, scalar) buffer byte_address { uint8_t at[]; };
GRETA_ABI_BUFFER(float)
GRETA_ABI_BUFFER(uint)
GRETA_ABI_BYTES
#elif defined(__HIP__) && defined(__AMDGCN__)
typedef unsigned int uint;
typedef unsigned char byte;
#define ADDRESS(T) __attribute__((address_space(1))) T*
#else
#include <stdint.h>
typedef uint32_t uint;
typedef uint8_t byte;
#define ADDRESS(T) uint64_t
#endif

#define kPageTokens 64  // positions in a page of the KV cache

#endif
