#include "runtime/heap.h"

#include <algorithm>

namespace greta {

Heap::Blocks::iterator Heap::find(Chunk& chunk, uint64_t bytes) {
  return std::find_if(chunk.blocks.begin(), chunk.blocks.end(),
                      [&](const auto& each) { return !each.second.taken && each.second.bytes >= bytes; });
}

// What is left of the block behind the slice stays free.
void Heap::take_block(Chunk& chunk, Blocks::iterator block, uint64_t bytes) {
  const uint64_t left = block->second.bytes - bytes;
  if (left) chunk.blocks.emplace_hint(std::next(block), block->first + bytes, Block{left, false});
  block->second = {bytes, true};
  chunk.taken += bytes;
}

Status Heap::add_chunk(uint64_t bytes, bool own, uint64_t room) {
  if (bytes > room)
    return fail(Code::Memory, "cannot allocate %llu bytes: %llu may still be allocated",
                (unsigned long long)bytes, (unsigned long long)room);
  const uint64_t most = std::min(room, arena_limit(device_.info()));
  const uint64_t size = own ? bytes : std::clamp(next_chunk_, bytes, std::max(bytes, most));
  Chunk& chunk = chunks_.emplace_front();
  const auto allocate = [&]() -> Status {
    chunk.blocks.emplace(0, Block{size, false});
    return chunk.memory.allocate(device_, size, memory_);
  };
  try {
    const Status status = allocate();
    if (!status.ok()) chunks_.pop_front();
    GRETA_TRY(status);
  } catch (...) {
    chunks_.pop_front();
    throw;
  }
  chunk.own = own;
  allocated_ += size;
  if (!own) next_chunk_ = std::min(2 * next_chunk_, kLastChunkBytes);
  return {};
}

Status Heap::take(uint64_t bytes, uint64_t room, Slice* out) {
  if (!bytes || bytes > uint64_t(1) << 62)
    return fail(Code::Argument, "a buffer of %llu bytes", (unsigned long long)bytes);
  const std::lock_guard<std::mutex> lock(mutex_);
  const bool alone = device_.info().own_buffers;
  const uint64_t padded = alone ? bytes : round_up(bytes, kAlignment);
  const bool own = alone || padded > kLastChunkBytes / 4;
  Chunk* place = nullptr;
  Blocks::iterator block;
  if (!own)
    for (Chunk& chunk : chunks_) {
      if (chunk.own || (block = find(chunk, padded)) == chunk.blocks.end()) continue;
      place = &chunk;
      break;
    }
  if (!place) {
    GRETA_TRY(add_chunk(padded, own, room));
    place = &chunks_.front();
    block = place->blocks.begin();
  }
  take_block(*place, block, padded);
  taken_ += padded;
  *out = place->memory.slice(block->first, bytes);
  return {};
}

void Heap::give_back(const Slice& slice) noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto chunk = std::find_if(chunks_.begin(), chunks_.end(),
                                  [&](const Chunk& each) { return &each.memory.buffer() == slice.buffer; });
  if (chunk == chunks_.end()) return;
  Blocks& blocks = chunk->blocks;
  auto block = blocks.find(slice.offset);
  if (block == blocks.end() || !block->second.taken) return;
  taken_ -= block->second.bytes;
  chunk->taken -= block->second.bytes;
  block->second.taken = false;
  const auto after = std::next(block);
  if (after != blocks.end() && !after->second.taken) {
    block->second.bytes += after->second.bytes;
    blocks.erase(after);
  }
  if (block != blocks.begin())
    if (const auto before = std::prev(block); !before->second.taken) {
      before->second.bytes += block->second.bytes;
      blocks.erase(block);
    }
  const auto empty = [](const Chunk& each) { return !each.taken && !each.own; };
  if (chunk->taken || (!chunk->own && std::count_if(chunks_.begin(), chunks_.end(), empty) < 2)) return;
  allocated_ -= chunk->memory.buffer().bytes;
  chunks_.erase(chunk);
}

uint64_t Heap::allocated_bytes() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return allocated_;
}

uint64_t Heap::taken_bytes() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return taken_;
}

}  // namespace greta
