#include "engine/serve/page_index.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

namespace greta {

namespace {

uint64_t hash_of(uint32_t parent, uint64_t salt, PageIndex::Tokens tokens) {
  Checksum sum;
  sum.add(&parent, sizeof parent);
  sum.add(&salt, sizeof salt);
  sum.add(tokens.data(), tokens.size_bytes());
  return sum.value();
}

}  // namespace

PageIndex::PageIndex(PagePool& pages, uint32_t count)
    : pages_(pages), nodes_(count), buckets_(std::bit_ceil(std::max(count, 1u)), kNone) {
  free_.reserve(count);
  for (uint32_t node = count; node-- > 0;) free_.push_back(node);
}

uint32_t PageIndex::find(uint32_t parent, uint64_t salt, Tokens tokens) const {
  const uint64_t hash = hash_of(parent, salt, tokens);
  for (uint32_t at = bucket(hash); at != kNone; at = nodes_[at].next_of_hash) {
    const Node& node = nodes_[at];
    if (node.hash == hash && node.parent == parent && node.salt == salt &&
        !memcmp(node.tokens, tokens.data(), sizeof node.tokens))
      return at;
  }
  return kNone;
}

uint32_t PageIndex::add(uint32_t parent, uint64_t salt, Tokens tokens, uint32_t page) {
  const uint32_t there = find(parent, salt, tokens);
  if (there != kNone) return there;
  const uint32_t at = free_.back();  // each node has a page of its own, so there is one
  free_.pop_back();
  Node& node = nodes_[at];
  node = {};
  node.parent = parent;
  node.page = page;
  node.salt = salt;
  node.hash = hash_of(parent, salt, tokens);
  memcpy(node.tokens, tokens.data(), sizeof node.tokens);
  node.next_of_hash = std::exchange(bucket(node.hash), at);
  pages_.hold(page);
  if (parent != kRoot) ++nodes_[parent].children;
  ++idle_;
  line_up(at, false);
  return at;
}

void PageIndex::pin(uint32_t at) {
  for (; at != kRoot; at = nodes_[at].parent) {
    Node& node = nodes_[at];
    if (in_line(node)) leave_line(at);
    if (node.users++) return;
    --idle_;
  }
}

void PageIndex::unpin(uint32_t at) {
  for (; at != kRoot; at = nodes_[at].parent) {
    Node& node = nodes_[at];
    if (--node.users) return;
    ++idle_;
    if (node.children == 0) line_up(at, false);
  }
}

bool PageIndex::give_up_page() {
  const uint32_t at = oldest_;
  if (at == kNone) return false;
  Node& node = nodes_[at];
  leave_line(at);
  uint32_t* link = &bucket(node.hash);
  while (*link != at) link = &nodes_[*link].next_of_hash;
  *link = node.next_of_hash;
  pages_.drop(node.page);
  --idle_;
  free_.push_back(at);
  // The parent was last used when the last of its children was, or later: it is the oldest now.
  if (node.parent != kRoot && --nodes_[node.parent].children == 0 && idle(node.parent))
    line_up(node.parent, true);
  return true;
}

void PageIndex::line_up(uint32_t at, bool oldest) {
  Node& node = nodes_[at];
  node.older = oldest ? kNone : newest_;
  node.newer = oldest ? oldest_ : kNone;
  (node.older == kNone ? oldest_ : nodes_[node.older].newer) = at;
  (node.newer == kNone ? newest_ : nodes_[node.newer].older) = at;
}

void PageIndex::leave_line(uint32_t at) {
  const Node& node = nodes_[at];
  (node.older == kNone ? oldest_ : nodes_[node.older].newer) = node.newer;
  (node.newer == kNone ? newest_ : nodes_[node.newer].older) = node.older;
}

}  // namespace greta
