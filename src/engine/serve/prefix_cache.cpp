#include "engine/serve/prefix_cache.h"

#include <algorithm>

namespace greta {

PrefixCache::PrefixCache(Executor& executor, const PrefixCacheOptions& options)
    : executor_(executor),
      options_(options),
      host_pages_(executor, options.on ? options.host_bytes : 0),
      folder_(executor, options.on ? options.folder : PageFolderOptions{}),
      index_(executor.pages(), executor.plan().pages, host()) {}

// Pages are lost in the order in which the folder would give them up, so only the last ones are stored.
PrefixCache::~PrefixCache() {
  if (!folder_.there()) return;
  const uint64_t pages = index_.idle_pages() + index_.kept_pages();
  not_stored_ = pages - std::min(pages, folder_.room());
  index_.forget_all();
}

uint32_t PrefixCache::pages_in_use(uint64_t salt, std::span<const int32_t> tokens, uint32_t pages) const {
  uint32_t node = PageIndex::kRoot, count = 0;
  for (; on() && count < pages && size_t(count + 1) * kPageTokens < tokens.size(); ++count) {
    node = index_.find(node, salt, tokens.subspan(size_t(count) * kPageTokens, kPageTokens));
    if (node == PageIndex::kNone || index_.idle(node)) break;
  }
  return count;
}

uint32_t PrefixCache::pages_known(uint64_t salt, std::span<const int32_t> tokens) const {
  uint32_t node = PageIndex::kRoot, count = 0;
  for (; on() && size_t(count + 1) * kPageTokens < tokens.size(); ++count) {
    node = index_.find(node, salt, tokens.subspan(size_t(count) * kPageTokens, kPageTokens));
    if (node == PageIndex::kNone) break;
  }
  return count;
}

void PrefixCache::move_to(Path& path, uint32_t node) {
  index_.move_pin(path.node, node);
  path.node = node;
  ++path.pages;
}

bool PrefixCache::adopt(const User& user) {
  if (!on() || !wants_page(user)) return false;
  uint32_t node = find(user);
  if (node == PageIndex::kNone)
    node = read_back(user);
  else if (index_.slot(node) != PageIndex::kNone)
    node = bring_back(user);
  if (node == PageIndex::kNone) return false;
  executor_.pages().share(index_.page(node), user.sequence);
  move_to(user.path, node);
  return true;
}

bool PrefixCache::computes(const User& other, const User& user) const {
  return on() && wants_page(user) && other.path.node == user.path.node && other.salt == user.salt &&
         other.tokens.size() >= size_t(user.path.pages + 1) * kPageTokens &&
         std::ranges::equal(other.tokens.subspan(size_t(user.path.pages) * kPageTokens, kPageTokens),
                            page_of(user));
}

void PrefixCache::keep(const User& user) {
  if (!on()) return;
  const uint32_t known = uint32_t(std::min<size_t>(user.sent, user.tokens.size()));
  const std::span<const uint32_t> table = executor_.pages().table(user.sequence);
  while (user.path.pages < known / kPageTokens)
    move_to(user.path, index_.add(user.path.node, user.salt, page_of(user), table[user.path.pages]));
}

void PrefixCache::leave(Path& path) {
  index_.unpin(path.node);
  path = {};
}

// ---- pages that left the pool ---------------------------------------------------------------------

PageIndex::Host PrefixCache::host() {
  PageIndex::Host host = {host_pages_.count()};
  host.keep = [this](uint32_t page, uint32_t slot) { return host_pages_.keep(page, slot); };
  if (folder_.there()) host.lose = [this](uint32_t node) { store(node); };
  return host;
}

// Stores the page of a node in the folder, unless it is there.
void PrefixCache::store(uint32_t node) {
  if (not_stored_ && not_stored_--) return;
  const Status status = guarded([&]() -> Status {
    const uint64_t salt = index_.salt(node);
    index_.text_of(node, &text_);
    if (folder_.has(salt, text_)) return folder_.touch(salt, text_), Status{};
    uint32_t slot = index_.slot(node);
    if (slot == PageIndex::kNone) {
      slot = host_pages_.spare();
      GRETA_TRY(host_pages_.keep(index_.page(node), slot));
    }
    std::span<uint8_t> page;
    GRETA_TRY(host_pages_.bytes_of(slot, &page));
    folder_.store(salt, text_, page);
    return {};
  });
  (void)status;  // then the page is lost, and will be computed again
}

// Makes sure that there is a free page. Returns false if all are in use.
bool PrefixCache::make_room() {
  while (executor_.pages().free_pages() == 0)
    if (!index_.give_up_page()) return false;
  return true;
}

// Reads the user's next page from the folder. Returns its node, kNone where there is none.
uint32_t PrefixCache::read_back(const User& user) {
  if (!folder_.there() || user.path.looked_up > user.path.pages) return PageIndex::kNone;
  user.path.looked_up = user.path.pages + 1;
  uint32_t node = PageIndex::kNone;
  const Status status = guarded([&]() -> Status {
    const std::span<const int32_t> text = user.tokens.first(size_t(user.path.pages + 1) * kPageTokens);
    if (!folder_.has(user.salt, text) || !make_room()) return {};
    std::span<uint8_t> bytes;
    GRETA_TRY(host_pages_.bytes_of(host_pages_.spare(), &bytes));
    if (!folder_.load(user.salt, text, bytes)) return {};
    const uint32_t page = executor_.pages().take();
    const Status copied = host_pages_.bring_back(host_pages_.spare(), page);
    if (copied.ok()) node = index_.add(user.path.node, user.salt, text.last(kPageTokens), page);
    executor_.pages().drop(page);
    brought_back_ += copied.ok();
    return copied;
  });
  (void)status;  // then the page is computed
  return node;
}

// Copies the user's next page back from the host. Returns its node, kNone where there is no page for it.
uint32_t PrefixCache::bring_back(const User& user) {
  if (!make_room()) return PageIndex::kNone;
  const uint32_t node = find(user);  // its slot may have gone to a page that was given up
  if (node == PageIndex::kNone) return node;
  const uint32_t page = executor_.pages().take();
  if (!host_pages_.bring_back(index_.slot(node), page).ok()) {
    executor_.pages().drop(page);
    index_.forget(node);
    return PageIndex::kNone;
  }
  index_.bring_back(node, page);
  ++brought_back_;
  return node;
}

}  // namespace greta
