// rope_heads: heads of queries or keys, normalised, rotated and stored.
//   y[t][h] = rotate(x[t][h] / rms(x[t][h]) * gain, position of t), or into the page pool
//     where x [tokens][heads][head_width]
//   grid    (tokens, heads / p.tile)
//   group   GROUP threads. A wave makes a head, up to 4 waves at a time. Where the norm is over all heads of
//           a token, all threads add up their squares first
//   shared  kHeadsAtOnce heads of the widest, for a cache of q8_0; sums of the waves
//   moves   x and y once; x of all heads of the token once more for each group where the norm is over all
//           heads
// The argument block is RopeHeadsBlock in kernels/abi/ops.h.
#include "kernels/hip/attention/cache.h"
#include "kernels/hip/norm/heads.h"
#include "kernels/hip/reduce.h"

constexpr uint kHeadsAtOnce = GROUP / kWave < 4 ? GROUP / kWave : 4;

using Head = float[kMaxHeadWidth];
SHARED_ARRAY(Head, staged, kHeadsAtOnce, 0);  // heads on their way into blocks of q8_0

// The factor of a norm over all heads of token t.
DEVICE float factor_of_token(const RopeHeadsBlock& p, uint t) {
  const auto x = p.x + t * p.norm_width;
  float sum = 0;
  for (uint i = thread_x(); i < p.norm_width; i += GROUP) sum += x[i] * x[i];
  return norm_factor(group_sum(sum), p.norm_width, p.epsilon);
}

// Makes head h of token t, and stores it at `to`, or in `staged` where it becomes blocks.
DEVICE void make(const RopeHeadsBlock& p, uint t, uint h, uint type, float factor, const Rotation& rotation,
                 GLOBAL byte* to) {
  const uint width = p.head_width;
  const bool all_heads = p.norm_width != width;
  const auto x = p.x + (t * p.heads + h) * width;
  const auto gain = p.gain && all_heads ? p.gain + h * width : p.gain;
  make_head(x, gain, width, factor, p.epsilon, rotation, [&](uint i, float y) {
    if (type == kCacheF32)
      ((GLOBAL float*)to)[i] = y;
    else if (type == kCacheF16)
      ((GLOBAL uint16_t*)to)[i] = f32_to_f16(y);
    else
      staged[wave_index()][i] = y;
  });
}

DEVICE void store_staged(uint width, GLOBAL byte* to) {
  for (uint block = lane(); block < width / 32; block += kWave) {
    float values[32];
    for (uint i = 0; i < 32; ++i) values[i] = staged[wave_index()][block * 32 + i];
    store_q8_0(to + block * kQ8BlockBytes, values);
  }
}

KERNEL(GROUP) void KERNEL_NAME(RopeHeadsBlock p) {
  const Step step = step_of(p.step);
  const uint t = group_x(), first = group_y() * p.tile, wave = wave_index();
  if (t >= live_rows(step, kRowsTokens)) return;
  const uint type = p.page_bytes != 0 ? p.cache_type : kCacheF32;
  const Rotation rotation = {p.table + uint64_t(step->row[t].position) * p.rope_width, p.rope_width,
                             p.rope_halves != 0};
  float factor = -1;
  if (p.gain && p.norm_width != p.head_width) factor = factor_of_token(p, t);
  // All waves go through the loop equally often, since it has barriers.
  for (uint done = 0; done < p.tile; done += kHeadsAtOnce) {
    const uint h = first + done + wave;
    const bool has_head = wave < kHeadsAtOnce && done + wave < p.tile && h < p.heads;
    GLOBAL byte* to = nullptr;
    if (has_head) {
      to = p.page_bytes == 0 ? (GLOBAL byte*)(p.y + (t * p.heads + h) * p.head_width)
                             : head_in_page(step, t, (GLOBAL byte*)p.y, p.page_bytes, h,
                                            cache_head_bytes(type, p.head_width));
      make(p, t, h, type, factor, rotation, to);
    }
    if (type != kCacheQ8) continue;
    group_barrier();
    if (has_head) store_staged(p.head_width, to);
    group_barrier();
  }
}
