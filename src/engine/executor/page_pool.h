// Which pages of the KV pool belong to which sequence. Host bookkeeping only: the bytes of a page lie
// in each layer's slabs and in the token log, at the page's index.
//
// Pages of 64 positions. Forked sequences share pages; a page is copied before one of them writes
// into it. What a step needs is reserved before it is submitted, all or nothing.
#pragma once
#include <span>
#include <vector>

#include "engine/model/shape.h"

namespace greta {

class PagePool {
 public:
  PagePool(uint32_t pages, uint32_t sequences, uint32_t pages_per_sequence);

  struct Copy {
    uint32_t from, to, sequence, index;
  };  // pages to copy before the step runs; in whose table, where
  struct Want {
    uint32_t sequence, begin, end;
  };  // positions that will be written

  // Gives every wanted position a page of its sequence's own. Code::Full leaves everything as it was.
  Status reserve(std::span<const Want> wants, std::vector<Copy>* copies);

  // The copies were not made: their sequences share the pages again.
  void take_back(std::span<const Copy> copies);

  void fork(uint32_t from, uint32_t to, uint32_t position);  // `to` is empty; shares pages below position
  void truncate(uint32_t sequence, uint32_t position);       // gives back pages wholly at or past position
  void exchange(uint32_t a, uint32_t b) { tables_[a].swap(tables_[b]); }

  std::span<const uint32_t> table(uint32_t sequence) const { return tables_[sequence]; }
  uint32_t free_pages() const { return uint32_t(free_.size()); }

 private:
  uint32_t needed(const Want& want) const;

  uint32_t pages_per_sequence_;
  std::vector<uint32_t> users_;                // of each page
  std::vector<uint32_t> free_;                 // a stack; capacity for all
  std::vector<std::vector<uint32_t>> tables_;  // by sequence; capacity for all its pages
};

}  // namespace greta
