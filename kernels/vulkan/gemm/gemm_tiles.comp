// gemm_tiles: y[i] = alpha * A[i] . B[i] + beta * y[i] in float32, for types and devices without matrix units
//   A [m][k], B [k][n], either of them turned; float32, float16 or bfloat16. y [m][n] float32 or of that type
//   grid    (tiles of kWide columns, tiles of kHigh rows, matrices)
//   group   16 x 16 threads make a tile of y. A thread has quads of 4 x 4 values, 64 rows and columns apart,
//           and sums them in order of k
//   shared  kStep columns of A and rows of B as float32, and four values beside each
//   moves   A once for each tile of columns, B once for each tile of rows, y once; twice with beta
// The argument block is GemmBlock in kernels/abi/gemm.h.
#extension GL_EXT_control_flow_attributes : require
#include "kernels/vulkan/gemm/values.h"

layout(constant_id = 2) const uint kHigh = 64;  // the tile's rows
layout(constant_id = 3) const uint kWide = 64;  // its columns
layout(constant_id = 4) const uint kATurned = 0;
layout(constant_id = 5) const uint kBTurned = 0;
layout(constant_id = 6) const uint kType = 0;
layout(constant_id = 7) const uint kYType = 0;
layout(constant_id = 8) const uint kWhole = 0;
layout(push_constant, scalar) uniform Push { GemmBlock p; };

GRETA_ABI_BUFFER(uvec2, uvec2, 8)
GRETA_ABI_BUFFER(vec4, vec4, 16)

const uint kStep = 16, kThreads = 256, kQuad = 4, kApart = 64;
const uint kHighQuads = kHigh / kApart, kWideQuads = kWide / kApart;  // of a thread
const uint kAEach = kHigh * kStep / kQuad / kThreads, kBEach = kWide * kStep / kQuad / kThreads;
// A column of A, or a row of B, in quads; the last one is not used.
const uint kAPitch = kHigh / kQuad + 1, kBPitch = kWide / kQuad + 1;
shared vec4 tile[kStep * (kAPitch + kBPitch)];

// An operand in memory: so many lines, each with so many values.
struct Operand {
  uint64_t from;
  uint stride, lines, values;
  bool has_quads;  // rows begin at multiples of four values
};
Operand a, b;
vec4 a_quads[kAEach], b_quads[kBEach];
vec4 sums[kHighQuads * kQuad * kWideQuads];  // of quad and row, quads of columns

vec4 load_quad(Operand o, uint line, uint place) {
  const uint64_t at = uint64_t(line) * o.stride + place;
  if (kWhole != 0 || (line < o.lines && place + kQuad <= o.values && o.has_quads)) {
    if (kType == kGemmF32) return vec4_address(o.from + at * 4).at[0];
    const uvec2 words = uvec2_address(o.from + at * 2).at[0];
    if (kType == kGemmF16) return vec4(unpackHalf2x16(words.x), unpackHalf2x16(words.y));
    return vec4(uintBitsToFloat(words.x << 16), uintBitsToFloat(words.x & 0xffff0000u),
                uintBitsToFloat(words.y << 16), uintBitsToFloat(words.y & 0xffff0000u));
  }
  vec4 quad = vec4(0);
  [[unroll]] for (uint i = 0; i < kQuad; ++i)
    if (line < o.lines && place + i < o.values) quad[i] = load_value(o.from, kType, at + i);
  return quad;
}

// Lines along k have kStep / 4 quads of a step; lines across it have the tile's rows or columns.
uint line_of(uint quad, bool along, uint across) {
  return along ? quad / (kStep / kQuad) : quad / (across / kQuad);
}
uint place_of(uint quad, bool along, uint across) {
  return (along ? quad % (kStep / kQuad) : quad % (across / kQuad)) * kQuad;
}

vec4 load_of(Operand o, uint quad, bool along, uint across, uint first, uint k) {
  const uint line = line_of(quad, along, across), place = place_of(quad, along, across);
  return load_quad(o, line + (along ? first : k), place + (along ? k : first));
}

// Stores a quad so that columns of A, or rows of B, stand behind each other.
void store_quad(uint base, uint pitch, uint quad, bool along, uint across, vec4 values) {
  const uint line = line_of(quad, along, across), place = place_of(quad, along, across);
  if (!along) {
    tile[base + line * pitch + place / kQuad] = values;
    return;
  }
  [[unroll]] for (uint i = 0; i < kQuad; ++i)
    tile[base + (place + i) * pitch + line / kQuad][line % kQuad] = values[i];
}

void load_step(uint row, uint column, uint k) {
  const uint thread = gl_LocalInvocationIndex;
  [[unroll]] for (uint i = 0; i < kAEach; ++i)
    a_quads[i] = load_of(a, i * kThreads + thread, kATurned == 0, kHigh, row, k);
  [[unroll]] for (uint i = 0; i < kBEach; ++i)
    b_quads[i] = load_of(b, i * kThreads + thread, kBTurned != 0, kWide, column, k);
}

void store_step() {
  const uint thread = gl_LocalInvocationIndex;
  [[unroll]] for (uint i = 0; i < kAEach; ++i)
    store_quad(0, kAPitch, i * kThreads + thread, kATurned == 0, kHigh, a_quads[i]);
  [[unroll]] for (uint i = 0; i < kBEach; ++i)
    store_quad(kStep * kAPitch, kBPitch, i * kThreads + thread, kBTurned != 0, kWide, b_quads[i]);
}

void multiply_step() {
  const uint down = gl_LocalInvocationIndex / 16, across = gl_LocalInvocationIndex % 16;
  [[unroll]] for (uint k = 0; k < kStep; ++k) {
    vec4 columns[kWideQuads];
    [[unroll]] for (uint j = 0; j < kWideQuads; ++j)
      columns[j] = tile[kStep * kAPitch + k * kBPitch + j * 16 + across];
    [[unroll]] for (uint i = 0; i < kHighQuads; ++i) {
      const vec4 rows = tile[k * kAPitch + i * 16 + down];
      [[unroll]] for (uint r = 0; r < kQuad; ++r)
        [[unroll]] for (uint j = 0; j < kWideQuads; ++j) {
          const uint at = (i * kQuad + r) * kWideQuads + j;
          sums[at] = fma(vec4(rows[r]), columns[j], sums[at]);
        }
    }
  }
}

// Stores four sums of a row of y.
void store_sums(uint row, uint column, vec4 quad) {
  const uint64_t at = gl_WorkGroupID.z * uint64_t(p.y_batch) + uint64_t(row) * p.y_stride + column;
  quad *= p.alpha;
  if (kWhole != 0 && kYType == kGemmF32) {
    vec4_address to = vec4_address(uint64_t(p.y) + at * 4);
    if (p.beta != 0) quad = fma(vec4(p.beta), to.at[0], quad);
    to.at[0] = quad;
    return;
  }
  [[unroll]] for (uint i = 0; i < kQuad; ++i) {
    if (row >= p.m || column + i >= p.n) break;
    float value = quad[i];
    if (p.beta != 0) value = fma(p.beta, load_value(uint64_t(p.y), kYType, at + i), value);
    store_value(uint64_t(p.y), kYType, at + i, value);
  }
}

void main() {
  const uint row = gl_WorkGroupID.y * kHigh, column = gl_WorkGroupID.x * kWide;
  const uint64_t bytes = kType == kGemmF32 ? 4 : 2, matrix = gl_WorkGroupID.z;
  a = Operand(uint64_t(p.a) + matrix * p.a_batch * bytes, p.a_stride, kATurned != 0 ? p.k : p.m,
              kATurned != 0 ? p.m : p.k, (p.a_stride | p.a_batch) % kQuad == 0);
  b = Operand(uint64_t(p.b) + matrix * p.b_batch * bytes, p.b_stride, kBTurned != 0 ? p.n : p.k,
              kBTurned != 0 ? p.k : p.n, (p.b_stride | p.b_batch) % kQuad == 0);
  [[unroll]] for (uint i = 0; i < kHighQuads * kQuad * kWideQuads; ++i) sums[i] = vec4(0);
  load_step(row, column, 0);
  for (uint k = 0; k < p.k; k += kStep) {
    barrier();  // all threads have multiplied what is replaced now
    store_step();
    barrier();
    if (k + kStep < p.k) load_step(row, column, k + kStep);
    multiply_step();
  }
  const uint down = gl_LocalInvocationIndex / 16, across = gl_LocalInvocationIndex % 16;
  [[unroll]] for (uint i = 0; i < kHighQuads * kQuad; ++i)
    [[unroll]] for (uint j = 0; j < kWideQuads; ++j)
      store_sums(row + i / kQuad * kApart + down * kQuad + i % kQuad, column + j * kApart + across * kQuad,
                 sums[i * kWideQuads + j]);
}
