// Keys and values on their way from the cache to shared memory, for attention of many tokens (tiles.h). T is
// Heads<..> there.
#pragma once
#include "kernels/abi/attention_tile.h"
#include "kernels/hip/attention/cache_chunk.h"
#include "kernels/hip/attention/tile_lanes.h"
#include "kernels/hip/attention/tile_queries.h"

namespace {
constexpr uint kTile = kAttentionTile;

// Keys [kTile][kWidth], behind them values [kWidth][kTile], in words of 8 float16. Scores that waves exchange
// lie where the values will be.
SHARED uvec4 tile[attention_fixed_bytes(kWidest) / 16];

// Words of a row lie in such an order that eight neighbouring rows have the same word in different banks. On
// CDNA rows 0 to 3 and 12 to 15 of 16 have a word in other banks than rows 4 to 11 have the next one: lanes
// with these are served together (tests/hip/lds_trace.cpp).
template <class T>
DEVICE uint key_place(uint row, uint word) {
  const uint half = kWave == 64 && T::kChunks % 16 == 0 ? (row ^ row * 2) & 8 : 0;
  return row * T::kChunks + (word ^ (row % 8 + half));
}
template <class T>
DEVICE uint value_place(uint row, uint word) {
  return kTile * T::kChunks + row * (kTile / 8) + (word ^ row / 2 % 4);
}

// The row that has the keys of a position of the tile.
DEVICE uint key_row(uint position) {
  const uint score = position % 8, part = position % kFragmentColumns / 8;
  return position / kFragmentColumns * kFragmentColumns + score / kLayout.results * 16 +
         score % kLayout.results * kLayout.result_step + part * kLayout.result_part_step;
}

// The row that has a column of the values.
template <class T>
DEVICE uint value_row(uint column) {
  return (column / (16 * T::kRun) * T::kRun + column % T::kRun) * 16 + column / T::kRun % 16;
}

// Saturated halves, and NaN where a value is not finite: 0 times it is NaN.
DEVICE uvec4 halves_of(ChunkValues values) {
  uvec4 words;
#pragma unroll
  for (uint i = 0; i < 4; ++i) {
    const vec2 pair = values.pairs[i];
    const vec2 range = __builtin_elementwise_min(__builtin_elementwise_max(pair, vec2(-65504)), vec2(65504));
    const vec2 saturated = {fma(pair.x, 0.f, range.x), fma(pair.y, 0.f, range.y)};
    words[i] = __builtin_bit_cast(uint, __builtin_convertvector(saturated, f16vec2));
  }
  return words;
}

// A chunk as it lies where the kernel knows its type, else as float16.
template <class T>
DEVICE Chunk bring(uint type, const Place& place) {
  if constexpr (T::kType == kCacheAny) return halves_of(load_values(type, place));
  return load_chunk<T::kType>(place);
}
template <class T>
DEVICE uvec4 halves_of(Chunk chunk) {
  if constexpr (T::kType == kCacheQ8) return halves_of(decode_q8(chunk));
  return chunk;
}

// A tile of the cache: the KV head's keys and values at its first position.
struct Cached {
  const GLOBAL byte *keys, *values;
  uint live;  // positions from here on have no keys and no values
};

// The page of position s, or that of the run's last one where there is no such position.
DEVICE uint page_at(const Queries& q, const Run& run, uint s) {
  return scalar_page_of(q.step, run.sequence, min(s, run.until - 1));
}

DEVICE Cached find_tile(const AttentionBlock& p, const Queries& q, const Run& run, uint s, uint64_t page) {
  const uint at = q.kv_head * kPageTokens + s % kPageTokens;
  return {p.keys + page * p.key_page_bytes + at * cache_head_bytes(p.key_type, p.key_width),
          p.values + page * p.value_page_bytes + at * cache_head_bytes(p.value_type, p.value_stride),
          run.until - s};
}

// A chunk of a position, by threads or in their order.
struct ChunkAt {
  uint s, chunk;
};

// Whether a tile has the chunk; heads have `width` values.
DEVICE bool is_there(const Cached& cached, ChunkAt at, uint width) {
  return at.s < cached.live && at.chunk * kChunk < width;
}

// Loads a chunk of heads at `from`, `stride` values from each other, or one of the tile's where it has no
// such chunk. So no load stands in a branch, at whose end the compiler would wait for it. keep_there() puts
// zeros in place of what is not there, when it is stored. A cache of any type is decoded as it is loaded, in
// branches anyway.
template <class T>
DEVICE Chunk load_near(uint type, const GLOBAL byte* from, const Cached& cached, ChunkAt at, uint width,
                       uint stride) {
  if (T::kType == kCacheAny && !is_there(cached, at, width)) return Chunk{};
  const uint s = min(at.s, min(cached.live, kTile) - 1), chunk = min(at.chunk, width / kChunk - 1);
  return bring<T>(type, {from, s * cache_head_bytes(type, stride) + chunk_at(type, chunk), chunk});
}

template <class T>
DEVICE Chunk keep_there(Chunk chunk, const Cached& cached, ChunkAt at, uint width) {
  return T::kType == kCacheAny || is_there(cached, at, width) ? chunk : Chunk{};
}

// Which chunk a thread's chunk i of keys is.
template <class T>
DEVICE ChunkAt key_at(uint i) {
  const uint at = i * GROUP + thread_x();
  return {at / T::kChunks, at % T::kChunks};
}

template <class T>
DEVICE Chunk load_key(const AttentionBlock& p, const Cached& cached, uint i) {
  const uint type = T::kType == kCacheAny ? p.key_type : T::kType;
  return load_near<T>(type, cached.keys, cached, key_at<T>(i), p.key_width, p.key_width);
}

// Which chunk a thread's chunk i of values is. On CDNA 32 lanes have eight neighbouring chunks of four pairs
// of positions: once transposed, these lie in different banks.
template <class T>
DEVICE ChunkAt value_at(uint i) {
  const uint at = i / 2 * GROUP + thread_x(), eights = T::kChunks / 8;
  if constexpr (kWave == 32) return {at / T::kChunks * 2 + i % 2, at % T::kChunks};
  const uint pair = at / 32 / eights * 4 + at / 8 % 4;
  return {pair * 2 + i % 2, at / 32 % eights * 8 + at % 8};
}

template <class T>
DEVICE Chunk load_value(const AttentionBlock& p, const Cached& cached, uint i) {
  const uint type = T::kType == kCacheAny ? p.value_type : T::kType;
  return load_near<T>(type, cached.values, cached, value_at<T>(i), p.value_width, p.value_stride);
}

template <class T>
DEVICE void load_keys(T& t, const AttentionBlock& p, const Cached& cached) {
  if constexpr (T::kAhead)
#pragma unroll
    for (uint i = 0; i < T::kKeysEach; ++i) t.keys[i] = load_key<T>(p, cached, i);
}
template <class T>
DEVICE void load_values(T& t, const AttentionBlock& p, const Cached& cached) {
  if constexpr (T::kAhead)
#pragma unroll
    for (uint i = 0; i < T::kValuesEach; ++i) t.values[i] = load_value<T>(p, cached, i);
}

// Stores the keys of the tile, which load_keys() may have loaded.
template <class T>
DEVICE void store_keys(T& t, const AttentionBlock& p, const Cached& cached) {
#pragma unroll T::kUnroll
  for (uint i = 0; i < T::kKeysEach; ++i) {
    const ChunkAt at = key_at<T>(i);
    Chunk key;
    if constexpr (T::kAhead)
      key = t.keys[i];
    else
      key = load_key<T>(p, cached, i);
    key = keep_there<T>(key, cached, at, p.key_width);
    tile[key_place<T>(key_row(at.s), at.chunk)] = halves_of<T>(key);
  }
}

template <class T>
DEVICE void store_values(T& t, const AttentionBlock& p, const Cached& cached) {
#pragma unroll T::kUnroll
  for (uint i = 0; i < T::kValuesEach; i += 2) {
    const auto [s, chunk] = value_at<T>(i);
    Chunk pair[2];
#pragma unroll
    for (uint j = 0; j < 2; ++j) {
      if constexpr (T::kAhead)
        pair[j] = t.values[i + j];
      else
        pair[j] = load_value<T>(p, cached, i + j);
      pair[j] = keep_there<T>(pair[j], cached, {s + j, chunk}, p.value_width);
      if constexpr (T::kAhead && !T::kValuesFit) wait_for(pair[j]);
    }
    if (!T::kValuesFit && s >= kTile) continue;
    const uvec4 even = halves_of<T>(pair[0]), odd = halves_of<T>(pair[1]);
#pragma unroll
    for (uint j = 0; j < kChunk; ++j) {
      const uint place = value_place<T>(value_row<T>(chunk * kChunk + j), s / 8);
      ((uint*)tile)[place * 4 + s / 2 % 4] =
          pick_bytes(even[j / 2], odd[j / 2], j % 2 ? 0x07060302 : 0x05040100);
    }
  }
}
}  // namespace
