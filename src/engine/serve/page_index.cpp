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

void fill_downwards(std::vector<uint32_t>* list, uint32_t count) {
  list->reserve(count);
  for (uint32_t i = count; i-- > 0;) list->push_back(i);
}

}  // namespace

PageIndex::PageIndex(PagePool& pages, Sides sides, uint32_t count, Host host)
    : pages_(pages),
      sides_(sides),
      host_(std::move(host)),
      nodes_(size_t(count) + host_.slots),
      buckets_(std::bit_ceil(std::max(nodes_.size(), size_t(1))), kNone) {
  fill_downwards(&free_, count + host_.slots);
  fill_downwards(&free_slots_, host_.slots);
  fill_downwards(&free_state_slots_, host_.state_slots);
}

void PageIndex::text_of(uint32_t at, std::vector<int32_t>* out) const {
  uint32_t pages = 0;
  for (uint32_t node = at; node != kRoot; node = nodes_[node].parent) ++pages;
  out->resize(size_t(pages) * kPageTokens);
  for (; at != kRoot; at = nodes_[at].parent)
    memcpy(out->data() + size_t(--pages) * kPageTokens, nodes_[at].tokens, sizeof nodes_[at].tokens);
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

uint32_t PageIndex::add(uint32_t parent, uint64_t salt, Tokens tokens, const Executor::CachePage& page) {
  const uint32_t there = find(parent, salt, tokens);
  if (there != kNone) {
    if (nodes_[there].slot == kNone) {
      set_side(there, page.window);
      return there;
    }
    pages_.hold(page.full);
    bring_back(there, page);
    return there;
  }
  const uint32_t at = free_.back();  // each node has a page or a slot of its own, so there is one
  free_.pop_back();
  Node& node = nodes_[at];
  node = {};
  node.parent = parent;
  node.page = page.full;
  node.salt = salt;
  node.hash = hash_of(parent, salt, tokens);
  memcpy(node.tokens, tokens.data(), sizeof node.tokens);
  node.next_of_hash = std::exchange(bucket(node.hash), at);
  pages_.hold(page.full);
  set_side(at, page.window);
  if (parent != kRoot) ++nodes_[parent].children, ++nodes_[parent].children_on_device;
  ++idle_;
  join(on_device_, at, false);
  return at;
}

void PageIndex::pin(uint32_t at) {
  for (; at != kRoot; at = nodes_[at].parent) {
    Node& node = nodes_[at];
    if (may_go(node)) leave(on_device_, at);
    if (node.users++) return;
    --idle_;
  }
}

void PageIndex::unpin(uint32_t at) {
  for (; at != kRoot; at = nodes_[at].parent) {
    Node& node = nodes_[at];
    if (--node.users) return;
    ++idle_;
    if (may_go(node)) join(on_device_, at, false);
  }
}

bool PageIndex::give_up_page() {
  if (on_device_.oldest == kNone) return false;
  give_up(on_device_.oldest, take_slot());
  return true;
}

// Moves a node of the line to a slot, or where that is kNone or the copy fails, takes it out of the tree.
void PageIndex::give_up(uint32_t at, uint32_t slot) {
  leave(on_device_, at);
  Node& node = nodes_[at];
  const bool windows = sides_.of == Sides::Of::Windows;
  const bool kept =
      slot != kNone && host_.keep({node.page, windows ? node.side : PagePool::kGone}, slot).ok();
  if (!kept && host_.lose) host_.lose(at);
  if (windows) {
    node.slot_has_side = kept && node.side != kNone;
    free_side(at);
  }
  pages_.drop(std::exchange(node.page, kNone));
  --idle_;
  const uint32_t parent = node.parent;
  if (kept) {
    node.slot = slot;
    ++kept_;
    if (node.children == 0) join(on_host_, at, false);
  } else {
    if (slot != kNone) free_slots_.push_back(slot);
    while (node.children) forget_leaf(on_host_.oldest);  // without this page they are of no use
    remove(at);
  }
  lost_device_child(parent);
}

// The parent was last used when the last of its children was, or later: it is the oldest now.
void PageIndex::lost_device_child(uint32_t parent) {
  if (parent == kRoot) return;
  --nodes_[parent].children_on_device;
  if (may_go(nodes_[parent])) join(on_device_, parent, true);
}

void PageIndex::bring_back(uint32_t at, const Executor::CachePage& page) {
  Node& node = nodes_[at];
  node.slot_has_side = false;
  set_side(at, page.window);
  if (node.children == 0) leave(on_host_, at);
  free_slots_.push_back(std::exchange(node.slot, kNone));
  --kept_;
  node.page = page.full;
  ++idle_;
  if (node.parent != kRoot) ++nodes_[node.parent].children_on_device;
  join(on_device_, at, false);
}

void PageIndex::forget(uint32_t at) {
  while (nodes_[at].children) forget_leaf(on_host_.oldest);
  forget_leaf(at);
}

void PageIndex::forget_all() {
  while (on_host_.oldest != kNone) forget_leaf(on_host_.oldest);
  while (on_device_.oldest != kNone) give_up(on_device_.oldest, kNone);
}

// A free slot, if need be that of the oldest leaf; kNone if the host has none.
uint32_t PageIndex::take_slot() {
  if (free_slots_.empty() && on_host_.oldest != kNone) forget_leaf(on_host_.oldest);
  if (free_slots_.empty()) return kNone;
  const uint32_t slot = free_slots_.back();
  free_slots_.pop_back();
  return slot;
}

void PageIndex::forget_leaf(uint32_t at) {
  if (host_.lose) host_.lose(at);
  free_slot_of(at);
  remove(at);
}

void PageIndex::free_slot_of(uint32_t at) {
  leave(on_host_, at);
  free_slots_.push_back(std::exchange(nodes_[at].slot, kNone));
  --kept_;
}

bool PageIndex::forget_unused(uint32_t at) {
  Node& node = nodes_[at];
  if (node.users || node.children) return false;
  if (node.slot != kNone) return free_slot_of(at), remove(at), true;
  const uint32_t parent = node.parent;
  leave(on_device_, at);
  pages_.drop(std::exchange(node.page, kNone));
  --idle_;
  remove(at);
  lost_device_child(parent);
  return true;
}

// Takes a leaf out of the tree that is in no line.
void PageIndex::remove(uint32_t at) {
  drop_side(at);
  const Node& node = nodes_[at];
  uint32_t* link = &bucket(node.hash);
  while (*link != at) link = &nodes_[*link].next_of_hash;
  *link = node.next_of_hash;
  free_.push_back(at);
  if (node.parent == kRoot) return;
  Node& parent = nodes_[node.parent];
  if (--parent.children == 0 && parent.slot != kNone) join(on_host_, node.parent, true);
}

void PageIndex::set_side(uint32_t at, uint32_t side) {
  if (side == PagePool::kGone || nodes_[at].side != kNone) return;
  free_state_slot(at);
  sides_.pool->hold(side);
  nodes_[at].side = side;
  join(with_side_, at, false);
}

void PageIndex::free_side(uint32_t at) {
  if (nodes_[at].side == kNone) return;
  leave(with_side_, at);
  sides_.pool->drop(std::exchange(nodes_[at].side, kNone));
}

void PageIndex::free_state_slot(uint32_t at) {
  if (nodes_[at].state_slot == kNone) return;
  leave(with_state_slot_, at);
  free_state_slots_.push_back(std::exchange(nodes_[at].state_slot, kNone));
}

void PageIndex::drop_side(uint32_t at) {
  free_side(at);
  free_state_slot(at);
}

// A free slot, if need be that of the state that was not used for longest; kNone if the host has none.
uint32_t PageIndex::take_state_slot() {
  const uint32_t oldest = with_state_slot_.oldest;
  if (free_state_slots_.empty() && oldest != kNone) {
    if (host_.lose_state) host_.lose_state(oldest);
    free_state_slot(oldest);
  }
  if (free_state_slots_.empty()) return kNone;
  const uint32_t slot = free_state_slots_.back();
  free_state_slots_.pop_back();
  return slot;
}

void PageIndex::use_side(uint32_t at) {
  if (nodes_[at].side == kNone) return;
  leave(with_side_, at);
  join(with_side_, at, false);
}

bool PageIndex::give_up_side() {
  const uint32_t at = with_side_.oldest;
  if (at == kNone) return false;
  const uint32_t slot = take_state_slot();
  const bool kept = slot != kNone && host_.keep_state(nodes_[at].side, slot).ok();
  if (slot != kNone && !kept) free_state_slots_.push_back(slot);
  if (!kept && host_.lose_state) host_.lose_state(at);
  free_side(at);
  if (!kept) return true;
  nodes_[at].state_slot = slot;
  join(with_state_slot_, at, false);
  return true;
}

void PageIndex::join(Line& line, uint32_t at, bool oldest) {
  const auto links_of = [&](uint32_t node) -> Links& { return nodes_[node].*line.links; };
  Links& own = links_of(at);
  own.older = oldest ? kNone : line.newest;
  own.newer = oldest ? line.oldest : kNone;
  (own.older == kNone ? line.oldest : links_of(own.older).newer) = at;
  (own.newer == kNone ? line.newest : links_of(own.newer).older) = at;
}

void PageIndex::leave(Line& line, uint32_t at) {
  const auto links_of = [&](uint32_t node) -> Links& { return nodes_[node].*line.links; };
  const Links& own = links_of(at);
  (own.older == kNone ? line.oldest : links_of(own.older).newer) = own.newer;
  (own.newer == kNone ? line.newest : links_of(own.newer).older) = own.older;
}

}  // namespace greta
