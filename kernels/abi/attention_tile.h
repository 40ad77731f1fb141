// The sizes of a group's work in the attention kernels for many tokens. The kernels use them, and so does the
// host code that computes their grid and decides whether they fit a device.
#ifndef GRETA_ABI_ATTENTION_TILE_H
#define GRETA_ABI_ATTENTION_TILE_H

// Positions of a tile, which lies within a page.
#define kAttentionTile 32

// Without cooperative matrices: values of a head whose sums fit in a group's registers. Several groups share
// a wider head; each of them makes all scores and a share of the sums.
#define kAttentionValues 256

// HIP: shared memory for keys and values of a tile, where the widest heads have `width` values.
#define attention_fixed_bytes(width) ((width) * kAttentionTile * 4)

// All that follows is for cooperative matrices. The largest key width + value width whose queries and sums
// fit in the registers of `sharing` subgroups that have the same 16 queries.
#define attention_widths(sharing) ((sharing) * 256)

// A row of float16 values in shared memory: whole matrices of 16 columns for each of two subgroups. A row is
// 16 bytes longer, which puts 8 neighbouring rows into different banks.
#define attention_padded(width) (((width) + 31) / 32 * 32)
#define attention_row_bytes(width) (attention_padded(width) * 2 + 16)

// The most shared memory of a group, in bytes. It holds
//   the keys [tile][key_width] and behind them the values, [tile][value_width] or transposed. Before the
//   first tile the queries
//   [queries][key_width] lie there; scores [queries][tile] in float32 lie where the values will be
//   the weights [queries][tile], and 24 bytes for each query
#define attention_most(a, b) ((a) > (b) ? (a) : (b))
#define attention_value_bytes(queries, value_width)                                   \
  attention_most(attention_padded(value_width) * attention_row_bytes(kAttentionTile), \
                 (queries) * kAttentionTile * 4)
#define attention_shared_bytes(queries, key_width, value_width)             \
  ((queries) * (attention_row_bytes(kAttentionTile) + 24) +                 \
   attention_most(kAttentionTile * (attention_row_bytes(key_width) + 16) +  \
                      attention_value_bytes(queries, value_width),          \
                  (queries) * attention_row_bytes(key_width)))
#endif
