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

// A row of float16 values in shared memory: whole matrices of 16 columns for each of the subgroups, and for
// two where there is one. A row is 16 bytes longer, which puts 8 neighbouring rows into different banks.
#define attention_most(a, b) ((a) > (b) ? (a) : (b))
#define attention_padded(width, sharing)                                 \
  (((width) + attention_most(sharing, 2) * 16 - 1) / (attention_most(sharing, 2) * 16) * \
   (attention_most(sharing, 2) * 16))
#define attention_row_bytes(width, sharing) (attention_padded(width, sharing) * 2 + 16)

// The most shared memory of a group, in bytes. It holds
//   the keys [tile][key_width] and behind them the values, [tile][value_width] or transposed. Before the
//   first tile the queries [queries][key_width] lie there; scores [queries][tile] in float32 lie where the
//   values will be
//   the weights [queries][tile], and 24 bytes for each query
// Where four subgroups have the same queries, values lie where keys were, and so do the scores of each.
#define attention_key_bytes(key_width, sharing) \
  (kAttentionTile * (attention_row_bytes(key_width, sharing) + 16))
#define attention_score_bytes(queries, sharing) \
  ((queries) * kAttentionTile * 4 * ((sharing) > 2 ? (sharing) : 1))
#define attention_value_bytes(queries, value_width, sharing)                                      \
  attention_most(attention_padded(value_width, sharing) * attention_row_bytes(kAttentionTile, 1), \
                 attention_score_bytes(queries, sharing))
#define attention_tile_bytes(keys, values, sharing) \
  ((sharing) > 2 ? attention_most(keys, values) : (keys) + (values))
#define attention_shared_bytes(queries, key_width, value_width, sharing)                     \
  ((queries) * (attention_row_bytes(kAttentionTile, 1) + 24) +                               \
   attention_most(attention_tile_bytes(attention_key_bytes(key_width, sharing),              \
                                       attention_value_bytes(queries, value_width, sharing), \
                                       sharing),                                             \
                  (queries) * attention_row_bytes(key_width, sharing)))
#endif
