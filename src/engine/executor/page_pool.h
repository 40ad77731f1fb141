// Which pages of a cache group belong to which sequence. This is bookkeeping of the host: the bytes of a page
// lie at its index in the cache of each of the group's layers, and those of group 0 in the token log.
//
// A page has 64 positions. Forked sequences share pages, and a page is copied before one of its users writes
// into it. The pages of a step are reserved before it is submitted, all or none.
//
// In a group with a window, pages that a sequence has left behind go back to the pool. Its table begins with
// kGone in their place.
#pragma once
#include <algorithm>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "engine/executor/cache_groups.h"

namespace greta {

class PagePool {
 public:
  static constexpr uint32_t kGone = ~0u;

  PagePool(const CacheGroup& group, uint32_t sequences, uint32_t pages_per_sequence);

  uint32_t window() const { return window_; }

  // A page that must be copied before the step runs, and where it stands: table(sequence)[index].
  struct Copy {
    uint32_t from, to, sequence, index;
  };
  // Positions [begin, end) that will be written.
  struct Want {
    uint32_t sequence, begin, end;
  };

  // Gives every wanted position a page that only its sequence uses. Pages before first_page_kept() of the
  // beginning of a want go back. Code::Full leaves everything else as it was. Where pages are short,
  // `give_up` is asked to free some, and returns false if it cannot.
  Status reserve(std::span<const Want> wants, std::vector<Copy>* copies,
                 const std::function<bool()>& give_up = {});
  // Frees what the sequences have left behind since their last reservation.
  void trim();

  // Whether the sequence has all pages from first_page_kept() on, with which it can go on at `position`.
  bool whole(uint32_t sequence, uint32_t position) const {
    return tables_[sequence].gone <= first_page_kept(window_, position) &&
           size_t(divide_up(position, kPageTokens)) <= tables_[sequence].pages.size();
  }
  // The pages that a row at `position`, which is whole, sees of those before it.
  std::span<const uint32_t> seen(uint32_t sequence, uint32_t position) const {
    const size_t first =
        std::min<size_t>(first_page_seen(window_, position), divide_up(position, kPageTokens));
    return table(sequence).first(divide_up(position, kPageTokens)).subspan(first);
  }
  // Gives the sequence, in place of its pages, those that a row at `position` sees.
  void set_seen(uint32_t sequence, uint32_t position, std::span<const uint32_t> pages);

  // Undoes copies that were not made: their sequences share the pages again.
  void take_back(std::span<const Copy> copies);

  void fork(uint32_t from, uint32_t to,
            uint32_t position);                         // `to`, which is empty, shares pages below `position`
  void truncate(uint32_t sequence, uint32_t position);  // gives back pages that begin at `position` or later
  void exchange(uint32_t a, uint32_t b) { std::swap(tables_[a], tables_[b]); }

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
    tables_[sequence].pages.push_back(page);
    if (page == kGone)
      ++tables_[sequence].gone;
    else
      hold(page);
  }

  // Gives the sequence, in place of its page at `index`, one that has the same.
  void replace(uint32_t sequence, uint32_t index, uint32_t page) {
    hold(page);  // before the other goes, which may be the same
    drop(std::exchange(tables_[sequence].pages[index], page));
  }

  std::span<const uint32_t> table(uint32_t sequence) const { return tables_[sequence].pages; }
  uint32_t gone(uint32_t sequence) const { return tables_[sequence].gone; }  // pages before those it has
  uint32_t users(uint32_t page) const { return users_[page]; }
  uint32_t free_pages() const { return uint32_t(free_.size()); }

 private:
  struct Table {
    std::vector<uint32_t> pages;  // with capacity for all pages of a sequence
    uint32_t gone = 0;            // how many at the beginning are kGone
    uint32_t begin = 0, end = 0;  // of the last reservation
  };
  uint32_t needed(const Want& want) const;
  void release(Table& table, uint32_t position);

  uint32_t window_, pages_per_sequence_;
  std::vector<uint32_t> users_;  // sequences and others that use each page
  std::vector<uint32_t> free_;   // a stack with capacity for all pages
  std::vector<Table> tables_;    // by sequence
};

}  // namespace greta
