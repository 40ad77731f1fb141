// The prefix cache: which pages of the KV cache hold which tokens after which others.
//
// It is a tree. A node is a page of 64 tokens, and its parent is the page before it, so that a path from the
// root is the beginning of a text. Children are found by a hash of parent and tokens and are then compared in
// full, so a page is used only for the very text that it was computed from. Texts of different salts have
// different roots.
//
// A request pins the last node of its path. Nodes on no pinned path are idle; their pages are given up leaves
// first, and of these the least recently used one. All memory is allocated when the index is made.
#pragma once
#include "engine/executor/page_pool.h"

namespace greta {

class PageIndex {
 public:
  static constexpr uint32_t kNone = ~0u;        // no node
  static constexpr uint32_t kRoot = kNone - 1;  // the parent of first pages
  using Tokens = std::span<const int32_t>;      // kPageTokens of them

  PageIndex(PagePool& pages, uint32_t count);  // count: pages in the pool

  uint32_t find(uint32_t parent, uint64_t salt, Tokens tokens) const;  // kNone: there is none
  // Adds a page that holds `tokens` after those of `parent`, which must be pinned or the root. Where there is
  // such a node already, that one stays. Gives the node.
  uint32_t add(uint32_t parent, uint64_t salt, Tokens tokens, uint32_t page);
  uint32_t page(uint32_t node) const { return nodes_[node].page; }
  bool idle(uint32_t node) const { return nodes_[node].users == 0; }

  void pin(uint32_t node);  // both do nothing for the root
  void unpin(uint32_t node);
  // Moves a pin from a node to one of its children, which may be idle.
  void move_pin(uint32_t from, uint32_t to) { pin(to), unpin(from); }

  uint32_t idle_pages() const { return idle_; }
  bool give_up_page();  // frees the page of the oldest idle leaf; false if there is none
  void clear() {
    while (give_up_page()) {
    }
  }

 private:
  struct Node {
    uint32_t parent, page;
    uint32_t users = 0;             // pins, and children with users
    uint32_t children = 0;          // a node of which other nodes are the continuation is no leaf
    uint32_t next_of_hash = 0;      // a list of each bucket
    uint32_t older = 0, newer = 0;  // idle leaves, in the order in which they became idle
    uint64_t salt, hash;
    int32_t tokens[kPageTokens];
  };
  uint32_t& bucket(uint64_t hash) { return buckets_[hash & (buckets_.size() - 1)]; }
  uint32_t bucket(uint64_t hash) const { return buckets_[hash & (buckets_.size() - 1)]; }
  void line_up(uint32_t node, bool oldest);  // a leaf became idle
  void leave_line(uint32_t node);
  bool in_line(const Node& node) const { return node.users == 0 && node.children == 0; }

  PagePool& pages_;
  std::vector<Node> nodes_;
  std::vector<uint32_t> free_;
  std::vector<uint32_t> buckets_;  // the first node of each hash, kNone if there is none
  uint32_t oldest_ = kNone, newest_ = kNone;
  uint32_t idle_ = 0;
};

}  // namespace greta
