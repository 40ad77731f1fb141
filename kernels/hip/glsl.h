// Gives GLSL's words a meaning in HIP, so that both languages share the headers of kernels/gpu:
//   #include "kernels/hip/glsl.h"
//   GLSL_BEGIN
//   #include "kernels/gpu/.."
//   GLSL_END
// From then on the words out, inout, precise and shared are taken. The build has these lines in front of a
// kernel with a weight, for its decode header and what WITH names.
#pragma once
#include "kernels/hip/device.h"

// Between these lines functions are those of the device, are private to the kernel, and are always inlined.
// The warnings are about habits of GLSL.
#define GLSL_IGNORE(warning) _Pragma(#warning)
#define GLSL_WARNINGS                                                                                        \
  _Pragma("clang diagnostic push") GLSL_IGNORE(clang diagnostic ignored "-Wunknown-attributes")              \
      GLSL_IGNORE(clang diagnostic ignored "-Wparentheses") GLSL_IGNORE(clang diagnostic ignored "-Wunused") \
          GLSL_IGNORE(clang diagnostic ignored "-Wunused-parameter")                                         \
              GLSL_IGNORE(clang diagnostic ignored "-Wsign-compare")
#ifdef GRETA_EMULATED
#define GLSL_BEGIN GLSL_WARNINGS namespace {
#define GLSL_END \
  }              \
  _Pragma("clang diagnostic pop")
#else
#define GLSL_BEGIN                              \
  GLSL_WARNINGS                                 \
  _Pragma("clang force_cuda_host_device begin") \
      _Pragma("clang attribute GLSL.push(__attribute__((always_inline)), apply_to = function)") namespace {
#define GLSL_END                                                                  \
  }                                                                               \
  _Pragma("clang attribute GLSL.pop") _Pragma("clang force_cuda_host_device end") \
      _Pragma("clang diagnostic pop")
#endif

typedef unsigned char uint8_t;
typedef _Float16 float16_t;

#define VECTOR(T, count) T __attribute__((ext_vector_type(count)))
typedef VECTOR(uint, 2) uvec2;
typedef VECTOR(uint, 4) uvec4;
typedef VECTOR(int, 4) ivec4;
typedef VECTOR(float, 2) vec2;
typedef VECTOR(float, 4) vec4;
typedef VECTOR(float16_t, 2) f16vec2;
typedef VECTOR(float16_t, 4) f16vec4;
#undef VECTOR

#define out
#define inout
#define precise  // no product and sum is contracted anyway
#define shared SHARED
#define length_of(array) (sizeof(array) / sizeof((array)[0]))
#define gl_LocalInvocationIndex thread_x()
#define gl_WorkGroupSize (GroupSize{group_threads()})
struct GroupSize {
  uint x;
};
#define barrier() group_barrier()

#ifdef GRETA_EMULATED
#define WORD inline
#else
#define WORD inline __attribute__((device, host, always_inline))
#endif

// A buffer reference: at[i] of T_address(address).
#define GRETA_ABI_BUFFER(T, type, bytes)                                       \
  struct T##_address {                                                         \
    GLOBAL type* at;                                                           \
    WORD explicit T##_address(uint64_t address) : at((GLOBAL type*)address) {} \
    template <class From>                                                      \
    WORD T##_address(GLOBAL From* from) : at((GLOBAL type*)from) {}            \
    WORD explicit operator uint64_t() const { return (uint64_t)at; }           \
  };

// Constructors, which convert what they are given. A macro has the type's name, but only before a bracket.
#define uvec2(...) make_uvec2(__VA_ARGS__)
#define uvec4(...) make_uvec4(__VA_ARGS__)
#define ivec4(...) make_ivec4(__VA_ARGS__)
#define vec2(...) make_vec2(__VA_ARGS__)
#define vec4(...) make_vec4(__VA_ARGS__)
namespace {
WORD constexpr uvec2 make_uvec2(uint a) { return uvec2{a, a}; }
WORD constexpr uvec2 make_uvec2(uint a, uint b) { return uvec2{a, b}; }
WORD constexpr uvec4 make_uvec4(uint a) { return uvec4{a, a, a, a}; }
WORD constexpr uvec4 make_uvec4(uvec4 a) { return a; }
WORD constexpr uvec4 make_uvec4(uint a, uint b, uint c, uint d) { return uvec4{a, b, c, d}; }
WORD constexpr uvec4 make_uvec4(uvec2 a, uvec2 b) { return uvec4{a.x, a.y, b.x, b.y}; }
WORD constexpr uvec4 make_uvec4(uvec2 a, uint b, uint c) { return uvec4{a.x, a.y, b, c}; }
WORD constexpr ivec4 make_ivec4(vec4 a) { return __builtin_convertvector(a, ivec4); }
WORD constexpr vec2 make_vec2(float a) { return vec2{a, a}; }
WORD constexpr vec2 make_vec2(float a, float b) { return vec2{a, b}; }
WORD constexpr vec2 make_vec2(uvec2 a) { return __builtin_convertvector(a, vec2); }
WORD constexpr vec4 make_vec4(float a) { return vec4{a, a, a, a}; }
WORD constexpr vec4 make_vec4(float a, float b, float c, float d) { return vec4{a, b, c, d}; }
WORD constexpr vec4 make_vec4(vec2 a, vec2 b) { return vec4{a.x, a.y, b.x, b.y}; }

GRETA_ABI_BUFFER(float, float, 4)
GRETA_ABI_BUFFER(uint, uint, 4)
GRETA_ABI_BUFFER(byte, uint8_t, 1)

WORD uint floatBitsToUint(float a) { return __builtin_bit_cast(uint, a); }
WORD float uintBitsToFloat(uint a) { return __builtin_bit_cast(float, a); }
WORD vec4 uintBitsToFloat(uvec4 a) { return __builtin_bit_cast(vec4, a); }
WORD float intBitsToFloat(int a) { return __builtin_bit_cast(float, a); }
WORD vec2 unpackHalf2x16(uint a) { return __builtin_convertvector(__builtin_bit_cast(f16vec2, a), vec2); }

// `count` is 1 to 31.
WORD uint bitfieldExtract(uint a, int from, int count) { return a >> from & ((1u << count) - 1); }
WORD int bitfieldExtract(int a, int from, int count) {
  return int(uint(a) << (32 - count - from)) >> (32 - count);
}
WORD int bitCount(uint a) { return __builtin_popcount(a); }

WORD float abs(float a) { return __builtin_fabsf(a); }
WORD vec4 abs(vec4 a) { return __builtin_elementwise_abs(a); }
WORD float roundEven(float a) { return __builtin_roundevenf(a); }
WORD vec4 roundEven(vec4 a) { return __builtin_elementwise_roundeven(a); }
WORD float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
WORD float min(float a, float b) { return __builtin_fminf(a, b); }
WORD float max(float a, float b) { return __builtin_fmaxf(a, b); }
WORD uint min(uint a, uint b) { return a < b ? a : b; }
WORD uint max(uint a, uint b) { return a > b ? a : b; }
WORD float clamp(float a, float least, float most) { return min(max(a, least), most); }
WORD float dot(vec4 a, vec4 b) { return a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w; }

template <class T>
DEVICE T subgroupShuffleXor(T value, uint mask) {
  return shuffle_xor(value, mask);
}
}  // namespace
