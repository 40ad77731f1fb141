#include "engine/executor/page_pool.h"

#include <algorithm>
#include <utility>

namespace greta {

PagePool::PagePool(const CacheGroup& group, uint32_t sequences, uint32_t pages_per_sequence)
    : window_(group.window),
      pages_per_sequence_(pages_per_sequence),
      users_(group.pages, 0),
      tables_(sequences) {
  free_.reserve(group.pages);
  for (uint32_t page = group.pages; page-- > 0;) free_.push_back(page);
  for (Table& table : tables_) table.pages.reserve(pages_per_sequence);
}

// Counts new pages, and copies of pages that will be written although other sequences use them too.
uint32_t PagePool::needed(const Want& want) const {
  const std::vector<uint32_t>& table = tables_[want.sequence].pages;
  const uint32_t pages = uint32_t(divide_up(want.end, kPageTokens));
  uint32_t count = pages > table.size() ? pages - uint32_t(table.size()) : 0;
  for (uint32_t i = want.begin / kPageTokens; i < pages && i < table.size(); ++i)
    count += users_[table[i]] > 1;
  return count;
}

Status PagePool::reserve(std::span<const Want> wants, std::vector<Copy>* copies,
                         const std::function<bool()>& give_up) {
  uint64_t count = 0;
  for (const Want& want : wants) {
    if (divide_up(want.end, kPageTokens) > pages_per_sequence_)
      return fail(Code::Full, "position %u is past the context window of %u tokens", want.end - 1,
                  pages_per_sequence_ * kPageTokens);
    Table& table = tables_[want.sequence];
    release(table, want.begin);
    table.begin = table.end = want.begin;  // so that trim() leaves what the step sees
  }
  for (bool more = true; more;) {
    count = 0;
    for (const Want& want : wants) count += needed(want);
    more = count > free_.size() && give_up && give_up();
  }
  if (count > free_.size())
    return fail(Code::Full, "the cache has %u of %u pages of %u tokens left, %llu are needed",
                uint32_t(free_.size()), uint32_t(users_.size()), kPageTokens, (unsigned long long)count);
  copies->clear();
  copies->reserve(count);  // nothing after this may throw
  for (const Want& want : wants) {
    tables_[want.sequence].end = want.end;
    std::vector<uint32_t>& table = tables_[want.sequence].pages;
    const uint32_t pages = uint32_t(divide_up(want.end, kPageTokens));
    for (uint32_t i = want.begin / kPageTokens; i < pages; ++i) {
      const bool fresh = i >= table.size();
      if (!fresh && users_[table[i]] == 1) continue;
      const uint32_t page = free_.back();
      free_.pop_back();
      users_[page] = 1;
      if (fresh) {
        table.push_back(page);
        continue;
      }
      copies->push_back({table[i], page, want.sequence, i});
      --users_[table[i]];
      table[i] = page;
    }
  }
  return {};
}

void PagePool::take_back(std::span<const Copy> copies) {
  for (const Copy& copy : copies) {
    tables_[copy.sequence].pages[copy.index] = copy.from;
    ++users_[copy.from];
    users_[copy.to] = 0;
    free_.push_back(copy.to);
  }
}

void PagePool::fork(uint32_t from, uint32_t to, uint32_t position) {
  const uint32_t pages = uint32_t(divide_up(position, kPageTokens));
  for (uint32_t i = 0; i < pages; ++i) share(tables_[from].pages[i], to);
  tables_[to].begin = tables_[to].end = position;
}

void PagePool::truncate(uint32_t sequence, uint32_t position) {
  Table& table = tables_[sequence];
  while (table.pages.size() > divide_up(position, kPageTokens)) {
    if (table.pages.back() == kGone)
      --table.gone;
    else
      drop(table.pages.back());
    table.pages.pop_back();
  }
  table.begin = table.end = std::min(table.end, position);
}

void PagePool::set_seen(uint32_t sequence, uint32_t position, std::span<const uint32_t> pages) {
  for (const uint32_t page : pages) hold(page);  // before the sequence's own go, which may be the same
  truncate(sequence, 0);
  Table& table = tables_[sequence];
  table.gone = uint32_t(divide_up(position, kPageTokens) - pages.size());
  table.pages.assign(table.gone, kGone);
  table.pages.insert(table.pages.end(), pages.begin(), pages.end());
  table.begin = table.end = position;
}

void PagePool::release(Table& table, uint32_t position) {
  const size_t first = std::min<size_t>(first_page_kept(window_, position), table.pages.size());
  for (; table.gone < first; ++table.gone) drop(std::exchange(table.pages[table.gone], kGone));
}

void PagePool::trim() {
  for (Table& table : tables_)
    release(table, std::max(table.begin, table.end - std::min(table.end, kBackTokens)));
}

}  // namespace greta
