// Shared memory of a group of kernels/gpu/scan_chunks.h, in bytes: keys and queries of eight rows, sums, and
// what rows know of each other.
#ifndef GRETA_ABI_SCAN_CHUNK_H
#define GRETA_ABI_SCAN_CHUNK_H

#define scan_chunk_bytes(key_width) (64 * (key_width) + 10560)

#endif
