// The kernels attention_heads and attention_lone_heads, which differ in the ranges of their groups (range.h).
#pragma once
#include "kernels/hip/attention/heads_of_group.h"

// The block of attention alone that says the same.
DEVICE AttentionBlock attention_of(const AttentionHeads& p) {
  const AttentionHeadsBlock& b = p.block;
  const AttentionHeadsConstants& c = p.constants;
  AttentionBlock attention = {};
  attention.y = b.y;
  attention.keys = b.keys;
  attention.values = b.values;
  attention.step = b.step;
  attention.scratch = b.scratch;
  attention.counters = b.counters;
  (kLone && c.halves ? attention.halves : attention.rounded) = b.rounded;
  attention.heads = b.heads;
  attention.kv_heads = b.kv_heads;
  attention.key_width = attention.value_width = attention.value_stride = c.head_width;
  attention.key_page_bytes = b.key_page_bytes;
  attention.value_page_bytes = b.value_page_bytes;
  attention.key_type = c.key_type;
  attention.value_type = c.value_type;
  attention.scale = b.scale;
  attention.softcap = c.softcap;
  attention.window = b.window;
  return attention;
}

AT_LEAST_WAVES(3) KERNEL(GROUP) void KERNEL_NAME(AttentionHeads p) {
  const AttentionBlock attention = attention_of(p);
  Range range;
  if (!find_range(attention, range)) return;
  make_heads(p, range);
  const uint head_fours = p.constants.head_width / 4;
  uint from = 0, last = 0;  // the query heads at hand, among those of the KV head
  attend_range([] { return attention_of((const AttentionHeads&)reloaded_block<AttentionHeads>()); }, range,
               [&](const AttentionBlock& again, uint first, uint count) {
                 from = first - range.kv_head * (again.heads / again.kv_heads);
                 last = from + count - 1;
               },
               [&](uint h, uint i) { return made[min(from + h, last) * head_fours + i]; });
}
