#include "engine/executor/page_pool.h"

namespace greta {

PagePool::PagePool(uint32_t pages, uint32_t sequences, uint32_t pages_per_sequence)
    : pages_per_sequence_(pages_per_sequence), users_(pages, 0), tables_(sequences) {
  free_.reserve(pages);
  for (uint32_t page = pages; page-- > 0;) free_.push_back(page);
  for (auto& table : tables_) table.reserve(pages_per_sequence);
}

// Counts new pages, and copies of pages that will be written although other sequences use them too.
uint32_t PagePool::needed(const Want& want) const {
  const std::vector<uint32_t>& table = tables_[want.sequence];
  const uint32_t pages = uint32_t(divide_up(want.end, kPageTokens));
  uint32_t count = pages > table.size() ? pages - uint32_t(table.size()) : 0;
  for (uint32_t i = want.begin / kPageTokens; i < pages && i < table.size(); ++i)
    count += users_[table[i]] > 1;
  return count;
}

Status PagePool::reserve(std::span<const Want> wants, std::vector<Copy>* copies) {
  uint64_t count = 0;
  for (const Want& want : wants) {
    if (divide_up(want.end, kPageTokens) > pages_per_sequence_)
      return fail(Code::Full, "position %u is past the context window of %u tokens", want.end - 1,
                  pages_per_sequence_ * kPageTokens);
    count += needed(want);
  }
  if (count > free_.size())
    return fail(Code::Full, "the cache has %u of %u pages of %u tokens left, %llu are needed",
                uint32_t(free_.size()), uint32_t(users_.size()), kPageTokens, (unsigned long long)count);
  copies->clear();
  copies->reserve(count);  // nothing after this may throw
  for (const Want& want : wants) {
    std::vector<uint32_t>& table = tables_[want.sequence];
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
    tables_[copy.sequence][copy.index] = copy.from;
    ++users_[copy.from];
    users_[copy.to] = 0;
    free_.push_back(copy.to);
  }
}

void PagePool::fork(uint32_t from, uint32_t to, uint32_t position) {
  const uint32_t pages = uint32_t(divide_up(position, kPageTokens));
  for (uint32_t i = 0; i < pages; ++i) share(tables_[from][i], to);
}

void PagePool::truncate(uint32_t sequence, uint32_t position) {
  std::vector<uint32_t>& table = tables_[sequence];
  while (table.size() > divide_up(position, kPageTokens)) {
    drop(table.back());
    table.pop_back();
  }
}

}  // namespace greta
