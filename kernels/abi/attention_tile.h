// What groups of the attention kernels for many tokens take, for them and for what decides their grid and whether they fit.
#ifndef GRETA_ABI_ATTENTION_TILE_H
#define GRETA_ABI_ATTENTION_TILE_H

// Positions at a time: within a page.
#define kAttentionTile 32

// Values of a head whose sums fit in a group's registers, without matrices: groups share the width of wider ones, and each
// makes all scores.
#define kAttentionValues 256

// The rest is of cooperative matrices. Widths of keys and values, together, whose queries and sums fit in the registers of
// so many subgroups, which share 16 queries.
#define attention_widths(sharing) ((sharing) * 256)

// A row of float16 values, in whole matrices of 16 for each of two subgroups, and 16 bytes more, which puts 8 neighbouring
// rows into different banks.
#define attention_padded(width) (((width) + 31) / 32 * 32)
#define attention_row_bytes(width) (attention_padded(width) * 2 + 16)

// Keys [tile][key_width] and, behind them, values, [tile][value_width] or turned, or scores [queries][tile] in float32 on their
// way between subgroups; before the first tile the queries [queries][key_width]. Weights [queries][tile], six words for each
// query. At most:
#define attention_most(a, b) ((a) > (b) ? (a) : (b))
#define attention_value_bytes(queries, value_width)                                  \
  attention_most(attention_padded(value_width) * attention_row_bytes(kAttentionTile), \
                 (queries) * kAttentionTile * 4)
#define attention_shared_bytes(queries, key_width, value_width)                                                               \
  ((queries) * (attention_row_bytes(kAttentionTile) + 24) +                                                                   \
   attention_most(kAttentionTile * (attention_row_bytes(key_width) + 16) + attention_value_bytes(queries, value_width),       \
                  (queries) * attention_row_bytes(key_width)))
#endif
