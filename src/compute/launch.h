// A complete kernel launch. GretaCompute makes it and GretaGraph keeps it.
#pragma once
#include <algorithm>

#include "compute/op.h"

namespace greta {

constexpr uint32_t kMaxAccesses = 16;
constexpr uint32_t kMaxConstantBytes = 40;
constexpr uint32_t kMaxFused = 9;  // ops that one kernel row may cover

struct Launch {
  const Kernel* kernel = nullptr;
  uint32_t groups[3] = {1, 1, 1};
  uint32_t bucket = 1;  // token rows of the plan
  // Fields after the first kMaxBlockBytes bytes are only constants of the kernel (KernelCode::appended).
  alignas(8) uint8_t block[kMaxBlockBytes + kMaxConstantBytes] = {};
  uint32_t block_bytes = 0, access_count = 0;
  Access accesses[kMaxAccesses];

  void read(const Slice& slice, bool sparse = false) { note(slice, Access::kRead, sparse); }
  void write(const Slice& slice, bool sparse = false) { note(slice, Access::kWrite, sparse); }
  void note(const Slice& slice, Access::Mode mode, bool sparse) {
    if (slice.buffer && access_count < kMaxAccesses) accesses[access_count++] = {slice, mode, sparse};
  }
  template <class Block>
  void set_block(const Block& from) {
    static_assert(sizeof(Block) <= sizeof block, "an argument block is at most 128 bytes, and constants");
    __builtin_memcpy(block, &from, sizeof from);
    block_bytes = sizeof from;
  }
  std::span<const uint8_t> fields() const { return {block, block_bytes}; }
  // What a dispatch passes to the kernel.
  std::span<const uint8_t> arguments() const { return {block, std::min(block_bytes, kMaxBlockBytes)}; }
};

}  // namespace greta
