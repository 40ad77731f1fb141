// One spelling of kernel argument blocks for C++, HIP and GLSL. A block holds only addresses and 32-bit
// scalars, at most 128 bytes. Addresses come first, so that every language packs it alike.
//   ADDRESS(T)  C++ host and CPU kernels: uint64_t.  HIP: a typed global pointer (an integer cast
//               to a pointer would give slow flat_ accesses).  GLSL: a buffer reference,
//               T_address, read as block.x.at[i]. A kernel that reads other types casts the address.
#ifndef GRETA_ABI_H
#define GRETA_ABI_H

#if defined(GL_core_profile)
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_shader_explicit_arithmetic_types_int8 : require
#define ADDRESS(T) T##_address
#define GRETA_ABI_BUFFER(T, type, bytes) \
  layout(buffer_reference, scalar, buffer_reference_align = bytes) buffer T##_address { type at[]; };
GRETA_ABI_BUFFER(float, float, 4)
GRETA_ABI_BUFFER(uint, uint, 4)
GRETA_ABI_BUFFER(byte, uint8_t, 1)
#define output output_  // GLSL reserves these two words
#define sample sample_
#elif defined(__HIP__) && defined(__AMDGCN__) || defined(GRETA_PTX)  // tests/ptx_hip
typedef unsigned int uint;
typedef unsigned char byte;
#define ADDRESS(T) __attribute__((address_space(1))) T*
#elif defined(GRETA_EMULATED)  // HIP source compiled for the host by tests/mock_hip
typedef unsigned int uint;
typedef unsigned char byte;
#define ADDRESS(T) T*
#else
#include <stdint.h>
typedef uint32_t uint;
typedef uint8_t byte;
#define ADDRESS(T) uint64_t
#endif

#define kPageTokens 64  // positions in a page of the KV cache

#endif
