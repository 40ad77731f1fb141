// The definition of right: each op in float64, written naively from the comments of its block in
// kernels/abi/ops.h. Nothing here shares code with a kernel. Arrays are row-major.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace greta::reference {

using Values = std::vector<double>;
using Ids = std::vector<uint32_t>;

Values embed(const Values& weight, uint32_t width, const Ids& tokens, double scale);

// Rows of `width` values.
Values norm(const Values& x, const Values& gain, double epsilon);
// Of each head of `width` values; gain and bias are [heads][width] or empty.
Values layer_norm(const Values& x, const Values& gain, const Values& bias, size_t width, double epsilon);

// weight [n][depth], x [t][depth] -> [t][n]
Values matmul(const Values& weight, const Values& x, uint32_t depth);

struct Gemm {
  uint32_t m, n, k;
  bool a_turned, b_turned;
  double alpha, beta;
};
// a [m][k], or turned [k][m]; b [k][n], or [n][k]; y [m][n], which is not read if beta is 0 -> [m][n]
Values gemm(const Values& a, const Values& b, const Values& y, const Gemm& shape);

struct Rope {
  uint32_t heads, head_width, rope_width;
  bool halves;
};
// x [t][heads][head_width]; table [context][rope_width / 2][cos, sin]
Values rope(const Values& x, const Ids& positions, const Values& table, const Rope& shape);

struct Attention {
  uint32_t heads, kv_heads, key_width, value_width;
  double scale, softcap;
  uint32_t window;
};
// One token at `position`: q [heads][key_width], keys [position + 1][kv_heads][key_width], values
// likewise, sinks [heads] or empty -> [heads][value_width]
Values attention(const Values& q, const Values& keys, const Values& values, const Values& sinks,
                 const Attention& shape);

enum class Activation { Silu, Gelu, Clamped };
Values gate(const Values& gate, const Values& up, Activation activation);
Values add(const Values& a, const Values& b, double scale);
// x [t][slots][width], scales [experts], bias [experts][width] or empty, ids [t][slots] or empty: expert 0
Values scale(const Values& x, const Values& scales, const Values& bias, const Ids& ids, uint32_t width);
struct XieluConstants {
  double positive, negative, linear;
};
Values multiply(const Values& x, const Values& by, uint32_t factor, const XieluConstants& xielu);  // kFactor*
Values softcap(const Values& x, double cap, double scale);  // cap 0: only the scale
// The nearest values with so many bits, halves to even; below 2^least_exponent they are as far apart as
// there, and beyond the largest they are infinite.
Values cast(const Values& x, int bits, int least_exponent, double largest);
// Of each row of `width` scores; sinks [rows] or empty. Where all scores are -infinity it is 0, or -infinity.
Values softmax(const Values& scores, const Values& sinks, size_t width, bool logarithm);

// Rows of one sequence: x [t][channels], weight [channels][width], bias [channels] or empty. `state` has the
// width - 1 rows before, and gets the last ones.
Values conv1d(const Values& x, const Values& weight, const Values& bias, uint32_t width, bool silu,
              Values* state);

enum class ScanForm { Delta, Groups, Selective };
struct Scan {
  ScanForm form;
  uint32_t heads, groups, key_width, value_width;
  bool tiled;
  double epsilon;  // negative: keys and queries stay as they are
};
// query and key [t][groups][key_width], value [t][heads][value_width], dt [t][heads]; strength likewise for
// the delta rule; a [heads], selective [heads][key_width]; dt_bias and skip [heads] or empty
struct ScanRows {
  Values query, key, value, dt, strength, a, dt_bias, skip;
};
// Rows of one sequence, whose state [heads][key_width][value_width] is changed -> [t][heads][value_width]
Values scan(const ScanRows& rows, const Scan& shape, Values* state);

struct Routing {
  Ids ids;         // [t][used]
  Values weights;  // [t][used]
};
struct Router {
  uint32_t experts, used, groups, groups_used;
  bool normalise, sigmoid;
  double scale;
};
Routing route(const Values& logits, const Values& bias, const Router& router);  // bias [experts] or empty

struct Experts {
  uint32_t n, depth, used, x_slots;
};
// weight [experts][n][depth], bias [experts][n] or empty, x [t][x_slots][depth], ids [t][used] ->
// [t][used][n]
Values matmul_expert(const Values& weight, const Values& bias, const Values& x, const Ids& ids,
                     const Experts& shape);

// x [t][used][width], weights [t][used] -> [t][width]
Values combine(const Values& x, const Values& weights, uint32_t width, uint32_t used);

// convert_q8 makes one row in the q8 format of kernels/abi/q8.h, byte for byte. decode_q8 gives rows' values.
std::vector<uint8_t> convert_q8(const std::vector<float>& x);
Values decode_q8(const std::vector<uint8_t>& rows, uint32_t depth);

// The same for the format q8x16; `gain` is [depth] or empty. Scales are made in float64 and rounded to float.
std::vector<uint8_t> convert_q8x16(const std::vector<float>& x, const Values& gain);
Values decode_q8x16(const std::vector<uint8_t>& rows, uint32_t depth);
// What is wrong with a row that a kernel made of x, or "". Scales may be off by units in the last place, and
// values half-way between two integers may be rounded to either.
const char* wrong_q8x16(const uint8_t* row, const std::vector<float>& x, const Values& gain);

// The nearest float16 values, at most 65504 in magnitude, and their bytes.
Values halves(const Values& x);
std::vector<uint8_t> half_bytes(const Values& x);

// What values become in a cache of this type ("f32", "f16", "q8_0"). There are whole blocks of them.
Values cached(const std::vector<float>& x, const char* type);

struct Sampling {
  double temperature, top_p, min_p, repeat_penalty;
  uint32_t top_k, repeat_last_n;
  uint64_t seed;
  double frequency = 0, presence = 0;
};
struct Draw {
  uint32_t id;
  double margin;  // how far the draw, or a filter, was from another answer
};
// `recent` are the sequence's tokens up to the current one.
Draw sample(const std::vector<float>& logits, const Ids& recent, uint32_t position, const Sampling& params);

}  // namespace greta::reference
