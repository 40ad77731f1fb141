// Which pages of the KV cache belong to which sequence. This is bookkeeping of the host: the bytes of a page
// lie at its index in each layer's cache and in the token log.
//
// A page has 64 positions. Forked sequences share pages, and a page is copied before one of its users writes
// into it. The pages of a step are reserved before it is submitted, all or none.
#pragma once
#include <span>
#include <vector>

#include "engine/model/shape.h"

namespace greta {

class PagePool {
 public:
  PagePool(uint32_t pages, uint32_t sequences, uint32_t pages_per_sequence);

  // A page that must be copied before the step runs, and where it stands: table(sequence)[index].
  struct Copy {
    uint32_t from, to, sequence, index;
  };
  // Positions [begin, end) that will be written.
  struct Want {
    uint32_t sequence, begin, end;
  };

  // Gives every wanted position a page that only its sequence uses. Code::Full leaves everything as it was.
  Status reserve(std::span<const Want> wants, std::vector<Copy>* copies);

  // Undoes copies that were not made: their sequences share the pages again.
  void take_back(std::span<const Copy> copies);

  void fork(uint32_t from, uint32_t to,
            uint32_t position);                         // `to`, which is empty, shares pages below `position`
  void truncate(uint32_t sequence, uint32_t position);  // gives back pages that begin at `position` or later
  void exchange(uint32_t a, uint32_t b) { tables_[a].swap(tables_[b]); }

  // A page may also be held by who is no sequence, and given to a sequence behind those that it has. take()
  // gives a free page, of which there is one, to who is no sequence.
  void hold(uint32_t page) { ++users_[page]; }
  uint32_t take() {
    const uint32_t page = free_.back();
    free_.pop_back();
    hold(page);
    return page;
  }
  void drop(uint32_t page) {
    if (--users_[page] == 0) free_.push_back(page);
  }
  void share(uint32_t page, uint32_t sequence) {
    tables_[sequence].push_back(page);
    hold(page);
  }

  std::span<const uint32_t> table(uint32_t sequence) const { return tables_[sequence]; }
  uint32_t users(uint32_t page) const { return users_[page]; }
  uint32_t free_pages() const { return uint32_t(free_.size()); }

 private:
  uint32_t needed(const Want& want) const;

  uint32_t pages_per_sequence_;
  std::vector<uint32_t> users_;                // sequences and others that use each page
  std::vector<uint32_t> free_;                 // a stack with capacity for all pages
  std::vector<std::vector<uint32_t>> tables_;  // by sequence, with capacity for all its pages
};

}  // namespace greta
