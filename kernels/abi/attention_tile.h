// What a group of attention_tiles_cm1 takes to shared memory, for the kernel and for what decides whether it fits.
#ifndef GRETA_ABI_ATTENTION_TILE_H
#define GRETA_ABI_ATTENTION_TILE_H

// Positions at a time: within a page.
#define kAttentionTile 32

// Widths of keys and values, together, whose queries and sums fit in registers.
#define kAttentionTileWidths 256

// A row of float16 values, in whole matrices of 16, and 16 bytes more, which puts 8 neighbouring rows into different banks.
#define attention_padded(width) (((width) + 15) / 16 * 16)
#define attention_row_bytes(width) (attention_padded(width) * 2 + 16)

// Keys [tile][key_width] and values, [tile][value_width] or turned, where the queries [queries][key_width] lie before;
// weights [queries][tile]; six words for each query. At most:
#define attention_cache_bytes(key_width, value_width)                 \
  (kAttentionTile * (attention_row_bytes(key_width) + 16) +             \
   attention_padded(value_width) * attention_row_bytes(kAttentionTile))
#define attention_shared_bytes(queries, key_width, value_width)                                 \
  ((queries) * (attention_row_bytes(kAttentionTile) + 24) +                                     \
   (attention_cache_bytes(key_width, value_width) > (queries) * attention_row_bytes(key_width) \
        ? attention_cache_bytes(key_width, value_width)                                         \
        : (queries) * attention_row_bytes(key_width)))
#endif
