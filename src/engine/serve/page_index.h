// The prefix cache: which pages of the KV cache hold which tokens after which others.
//
// It is a tree. A node is a page of 64 tokens, and its parent is the page before it, so that a path from the
// root is the beginning of a text. Children are found by a hash of parent and tokens and are then compared in
// full, so a page is used only for the very text that it was computed from. Texts of different salts have
// different roots.
//
// A request pins the last node of its path. Nodes on no pinned path are idle; their pages are given up leaves
// first, and of these the least recently used one. Where the host has slots, a page that is given up moves to
// one, and its node is kept: what is on the device is the upper part of the tree, what the host keeps the
// lower one. Where no slot is free, the kept leaf that has not been used for longest is forgotten. Who made
// the index is told before a page is lost. All memory is allocated when the index is made.
//
// A node may have a *side*: where the cache has a group of windows, the page of that group with its tokens;
// where layers are recurrent, the state behind its last token. It has it until that is needed for something
// else. Those that were not used for longest go first, whoever has pinned their nodes. A page of windows
// follows its node to the host. A state stays on the device when its node's page moves to the host. Where a
// state has to go from the device, it moves to a slot for states, if the host has any.
#pragma once
#include "engine/executor/executor.h"

namespace greta {

class PageIndex {
 public:
  static constexpr uint32_t kNone = ~0u;        // no node, no slot
  static constexpr uint32_t kRoot = kNone - 1;  // the parent of first pages
  using Tokens = std::span<const int32_t>;      // kPageTokens of them
  struct Host {
    uint32_t slots = 0;  // pages that it has room for
    std::function<Status(const Executor::CachePage& page, uint32_t slot)> keep = {};  // copies it to a slot
    // The node's page or slot will be used for something else, and so will its state or the state's slot.
    std::function<void(uint32_t node)> lose = {};
    uint32_t state_slots = 0;                                              // for states
    std::function<Status(uint32_t state, uint32_t slot)> keep_state = {};  // copies it to a slot
    std::function<void(uint32_t node)> lose_state = {};  // the node stays, but not its state or state's slot
  };

  // What sides of nodes are, and their pool, or null if there are none.
  struct Sides {
    enum class Of : uint8_t { Windows, States } of = Of::Windows;
    PagePool* pool = nullptr;
  };

  // count: pages in the pool
  PageIndex(PagePool& pages, Sides sides, uint32_t count, Host host);

  uint32_t find(uint32_t parent, uint64_t salt, Tokens tokens) const;  // kNone: there is none
  // Adds a page that holds `tokens` after those of `parent`, which must be pinned or the root. Where there is
  // such a node already, that one stays; if the host kept it, it has this page now. Gives the node.
  uint32_t add(uint32_t parent, uint64_t salt, Tokens tokens, const Executor::CachePage& page);
  uint32_t page(uint32_t node) const { return nodes_[node].page; }
  uint32_t slot(uint32_t node) const { return nodes_[node].slot; }  // kNone: the node is on the device
  uint64_t salt(uint32_t node) const { return nodes_[node].salt; }
  uint32_t parent(uint32_t node) const { return nodes_[node].parent; }
  uint32_t side(uint32_t node) const { return nodes_[node].side; }  // kNone: it has none, or it is gone
  uint32_t state_slot(uint32_t node) const { return nodes_[node].state_slot; }  // kNone: no slot has it
  // Whether the node, or the host, has its side.
  bool has_side(uint32_t node) const {
    const Node& of = nodes_[node];
    return of.side != kNone || of.slot_has_side || of.state_slot != kNone;
  }
  void set_side(uint32_t node, uint32_t side);  // unless `side` is PagePool::kGone or the node has one
  void use_side(uint32_t node);                 // it is used now, if the node has it
  void drop_side(uint32_t node);                // the node has none any more
  bool give_up_side();  // frees the device's that was not used for longest; false: none is left
  void text_of(uint32_t node, std::vector<int32_t>* out) const;  // from its beginning to the end of the page
  bool idle(uint32_t node) const { return nodes_[node].users == 0; }

  void pin(uint32_t node);  // both do nothing for the root
  void unpin(uint32_t node);
  // Moves a pin from a node to one of its children, which may be idle, but is on the device.
  void move_pin(uint32_t from, uint32_t to) { pin(to), unpin(from); }

  uint32_t idle_pages() const { return idle_; }
  uint32_t kept_pages() const { return kept_; }  // that the host has
  bool give_up_page();  // frees the page of the oldest idle leaf; false if there is none
  // Gives a node that the host keeps a page of the pool, which the caller has filled. Its parent is pinned or
  // the root.
  void bring_back(uint32_t node, const Executor::CachePage& page);
  void forget(uint32_t node);  // a node that the host keeps, with all below it and leaves that are older
  void forget_all();           // idle and kept nodes
  // Takes a node out of the tree, and tells nobody. False: a request or another node needs it.
  bool forget_unused(uint32_t node);

 private:
  struct Links {
    uint32_t older = 0, newer = 0;
  };
  struct Node {
    uint32_t parent;
    uint32_t page = kNone, slot = kNone;  // it has one of them
    uint32_t side = kNone;                // in the pool of sides
    bool slot_has_side = false;
    uint32_t state_slot = kNone;  // which has its state in place of the device
    uint32_t users = 0;  // pins, and children with users
    uint32_t children = 0, children_on_device = 0;
    uint32_t next_of_hash = 0;  // a list of each bucket
    Links links, side_links;    // in the lines that the node and its side stand in
    uint64_t salt, hash;
    int32_t tokens[kPageTokens];
  };
  // Nodes that may go, in the order in which they were last used.
  struct Line {
    Links Node::* links = &Node::links;
    uint32_t oldest = kNone, newest = kNone;
  };
  uint32_t& bucket(uint64_t hash) { return buckets_[hash & (buckets_.size() - 1)]; }
  uint32_t bucket(uint64_t hash) const { return buckets_[hash & (buckets_.size() - 1)]; }
  void join(Line& line, uint32_t node, bool oldest);
  void leave(Line& line, uint32_t node);
  bool may_go(const Node& node) const { return node.users == 0 && node.children_on_device == 0; }
  uint32_t take_slot();
  uint32_t take_state_slot();
  void free_side(uint32_t node);
  void free_state_slot(uint32_t node);
  void lost_device_child(uint32_t parent);
  void give_up(uint32_t node, uint32_t slot);
  void forget_leaf(uint32_t node);
  void free_slot_of(uint32_t node);
  void remove(uint32_t node);

  PagePool& pages_;
  const Sides sides_;
  const Host host_;
  std::vector<Node> nodes_;
  std::vector<uint32_t> free_, free_slots_, free_state_slots_;
  std::vector<uint32_t> buckets_;  // the first node of each hash, kNone if there is none
  Line on_device_;                 // idle nodes without children on the device
  Line on_host_;                   // kept nodes without children
  Line with_side_{&Node::side_links}, with_state_slot_{&Node::side_links};
  uint32_t idle_ = 0, kept_ = 0;
};

}  // namespace greta
