#include "engine/serve/prefix_cache.h"

#include <algorithm>
#include <utility>

namespace greta {

// Without their states, pages of models that keep some are of no use in a folder.
static bool has_folder(const Executor& executor, const PrefixCacheOptions& options) {
  return options.on && (!executor.model().shape.recurrent_layers || executor.kept_state_bytes());
}

PrefixCache::PrefixCache(Executor& executor, const PrefixCacheOptions& options)
    : executor_(executor),
      options_(options),
      host_pages_(executor, options.on ? options.host_bytes : 0),
      folder_(executor, has_folder(executor, options) ? options.folder : PageFolderOptions{}),
      index_(executor.pages(), sides(executor), executor.plan().pages, host()) {
  executor_.set_spare_pages([this] { return index_.give_up_side(); });
}

PageIndex::Sides PrefixCache::sides(Executor& executor) {
  if (executor.states()) return {PageIndex::Sides::Of::States, executor.states()};
  return {PageIndex::Sides::Of::Windows, executor.windows()};
}

// Pages are lost in the order in which the folder would give them up, so only the last ones are stored.
PrefixCache::~PrefixCache() {
  executor_.set_spare_pages({});
  if (folder_.there()) {
    const uint64_t pages = index_.idle_pages() + index_.kept_pages();
    not_stored_ = pages - std::min(pages, folder_.room());
  }
  index_.forget_all();
}

uint32_t PrefixCache::pages_in_use(uint64_t salt, std::span<const int32_t> tokens, uint32_t pages) const {
  uint32_t node = PageIndex::kRoot, count = 0;
  for (; on() && count < pages && size_t(count + 1) * kPageTokens < tokens.size(); ++count) {
    node = index_.find(node, salt, tokens.subspan(size_t(count) * kPageTokens, kPageTokens));
    if (node == PageIndex::kNone || index_.idle(node)) break;
  }
  return states() ? std::min(count, reach(salt, tokens).usable) : count;
}

uint32_t PrefixCache::pages_known(uint64_t salt, std::span<const int32_t> tokens) const {
  return reach(salt, tokens).usable;
}

// node: that of the first `pages` pages
PrefixCache::Reach PrefixCache::reach(uint64_t salt, std::span<const int32_t> tokens, uint32_t node,
                                      uint32_t pages) const {
  Reach reach{pages, pages};
  while (on() && size_t(reach.pages + 1) * kPageTokens < tokens.size()) {
    node = index_.find(node, salt, tokens.subspan(size_t(reach.pages) * kPageTokens, kPageTokens));
    if (node == PageIndex::kNone) break;
    ++reach.pages;
    if (!states() || index_.has_side(node)) reach.usable = reach.pages;
  }
  return reach;
}

uint32_t PrefixCache::forget(uint64_t salt, std::span<const int32_t> tokens) {
  const size_t pages = on() ? tokens.size() / kPageTokens : 0;
  std::vector<uint32_t> known;
  for (uint32_t node = PageIndex::kRoot; known.size() < pages; known.push_back(node)) {
    node = index_.find(node, salt, tokens.subspan(known.size() * kPageTokens, kPageTokens));
    if (node == PageIndex::kNone) break;
  }
  uint32_t gone = 0;
  for (size_t page = pages; page-- > 0;) {
    const bool here = page < known.size();
    if (here && !index_.forget_unused(known[page])) break;
    const bool stored = folder_.there() && folder_.remove(salt, tokens.first((page + 1) * kPageTokens));
    gone += here || stored;
  }
  return gone;
}

void PrefixCache::move_to(Path& path, uint32_t node) {
  index_.move_pin(path.node, node);
  path.node = node;
  ++path.pages;
}

// How many of the next pages can be taken. Behind the last of them, all pages of windows that the next token
// sees must be here.
uint32_t PrefixCache::usable_pages(const User& user) const {
  if (states()) {
    const Reach known = reach(user.salt, user.tokens, user.path.node, user.path.pages);
    if (known.pages > known.usable) user.path.branch = known.pages;
    return std::max(known.usable, stored_pages(user)) - user.path.pages;
  }
  if (!windows()) return 1;
  const uint32_t before = user.path.pages, seen = checkpoint_pages(windows()->window());
  uint32_t node = user.path.node, best = before;
  uint32_t run = before - std::min(before, windows()->gone(user.sequence));  // pages of windows in a row
  for (uint32_t pages = before; goes_on(user, pages); ++pages) {
    const PageIndex::Tokens text = user.tokens.first(size_t(pages + 1) * kPageTokens);
    if (node != PageIndex::kNone) node = index_.find(node, user.salt, text.last(kPageTokens));
    bool window = node != PageIndex::kNone && index_.has_side(node);
    if (node == PageIndex::kNone) {
      if (!folder_.there()) break;
      window = folder_.has(user.salt, text);
      if (!window && !folder_.has(user.salt, text, PageFolder::Part::NoWindow)) break;
    }
    run = window ? run + 1 : 0;
    if (run >= std::min(seen, pages + 1)) best = pages + 1;
  }
  return best - before;
}

// How many pages of a text the cache and the folder have up to the last one behind which one of both has a
// state. The folder is searched once for a text.
uint32_t PrefixCache::stored_pages(const User& user) const {
  uint32_t node = user.path.node, usable = 0;
  if (!folder_.there() || std::exchange(user.path.searched, true)) return usable;
  for (uint32_t pages = user.path.pages; goes_on(user, pages); ++pages) {
    const PageIndex::Tokens text = user.tokens.first(size_t(pages + 1) * kPageTokens);
    if (node != PageIndex::kNone) node = index_.find(node, user.salt, text.last(kPageTokens));
    const bool here = node != PageIndex::kNone;
    if (!here && !folder_.has(user.salt, text)) break;
    if ((here && index_.has_side(node)) || folder_.has(user.salt, text, PageFolder::Part::State))
      usable = pages + 1;
  }
  return usable;
}

// Gives the sequence the next page of group 0.
bool PrefixCache::adopt_page(const User& user) {
  uint32_t node = find(user);
  if (node == PageIndex::kNone)
    node = read_back(user);
  else if (index_.slot(node) != PageIndex::kNone)
    node = bring_back(user);
  if (node == PageIndex::kNone) return false;
  executor_.pages().share(index_.page(node), user.sequence);
  if (windows()) index_.use_side(node);
  move_to(user.path, node);
  return true;
}

// Gives the sequence the pages of windows that the next token sees. It had `before` pages.
bool PrefixCache::adopt_windows(const User& user, uint32_t before) {
  if (!windows()) return true;
  std::vector<uint32_t> seen(std::min(checkpoint_pages(windows()->window()), user.path.pages));
  uint32_t node = user.path.node;
  for (uint32_t at = user.path.pages, i = uint32_t(seen.size()); i-- > 0;) {
    const bool own = --at < before;
    seen[i] = own ? windows()->table(user.sequence)[at] : index_.side(node);
    if (seen[i] == PagePool::kGone) return false;
    if (!own) node = index_.parent(node);
  }
  windows()->set_seen(user.sequence, user.path.pages * kPageTokens, seen);
  return true;
}

// Gives the sequence the state behind its pages.
bool PrefixCache::adopt_state(const User& user) {
  const uint32_t position = user.path.pages * kPageTokens;
  if (index_.side(user.path.node) == PageIndex::kNone && !bring_state_back(user)) return false;
  index_.use_side(user.path.node);
  executor_.set_state(user.sequence, index_.side(user.path.node), position);
  if (position > prompt_place(user)) user.path.passing = user.path.node;
  return true;
}

uint32_t PrefixCache::adopt(const User& user) {
  if (!on() || !wants_page(user)) return 0;
  const Path before = user.path;
  const auto undo = [&](uint32_t looked_up) {
    executor_.pages().truncate(user.sequence, before.pages * kPageTokens);
    index_.pin(before.node);
    index_.unpin(user.path.node);
    user.path = before;
    user.path.looked_up = looked_up;
    user.path.searched = true;
    return 0;
  };
  for (uint32_t left = usable_pages(user); left; --left)
    if (!adopt_page(user)) return undo(user.path.looked_up);
  if (user.path.pages == before.pages) return 0;
  if (!(states() ? adopt_state(user) : adopt_windows(user, before.pages))) return undo(user.path.looked_up);
  return (user.path.pages - before.pages) * kPageTokens;
}

// The next place at which the user's prompt leaves a state; 0 if there is none.
uint32_t PrefixCache::next_place(const User& user) {
  const uint32_t last = prompt_place(user);
  uint32_t next = last > user.sent ? last : 0;
  const auto consider = [&](uint32_t position) {
    if (position > user.sent) next = std::min(next, position);
  };
  consider(user.path.branch * kPageTokens);
  for (const uint32_t place : user.places) consider(place / kPageTokens * kPageTokens);
  return next;
}

// Whether a state stays at a position that the user has come to.
bool PrefixCache::is_place(const User& user, uint32_t position) {
  return position == user.path.branch * kPageTokens || position == prompt_place(user) ||
         std::ranges::any_of(user.places,
                             [&](uint32_t place) { return place / kPageTokens * kPageTokens == position; });
}

uint32_t PrefixCache::piece(const User& user, uint32_t rows) const {
  if (!on() || !states()) return rows;
  const uint32_t end = uint32_t(std::min<size_t>(size_t(user.sent) + rows, user.tokens.size()));
  uint32_t cut = end;
  for (const uint32_t place : {next_place(user), end / kPageTokens * kPageTokens})
    if (place > user.sent) cut = std::min(cut, place);
  return cut - user.sent;
}

bool PrefixCache::computes(const User& other, const User& user) const {
  if (states()) {
    const uint32_t place = next_place(other);
    return on() && wants_page(user) && other.salt == user.salt && user.sent <= other.sent && place &&
           user.tokens.size() > place &&
           std::ranges::equal(other.tokens.first(place), user.tokens.first(place));
  }
  return on() && wants_page(user) && other.path.node == user.path.node && other.salt == user.salt &&
         other.tokens.size() >= size_t(user.path.pages + 1) * kPageTokens &&
         std::ranges::equal(other.tokens.subspan(size_t(user.path.pages) * kPageTokens, kPageTokens),
                            page_of(user));
}

void PrefixCache::keep(const User& user) {
  if (!on()) return;
  const uint32_t known = uint32_t(std::min<size_t>(user.sent, user.tokens.size()));
  const std::span<const uint32_t> table = executor_.pages().table(user.sequence);
  while (user.path.pages < known / kPageTokens) {
    Executor::CachePage page{table[user.path.pages]};
    if (windows()) page.window = windows()->table(user.sequence)[user.path.pages];
    const uint32_t node = index_.add(user.path.node, user.salt, page_of(user), page);
    // What others had read, but had left no state of, was read again. One page of it is enough.
    if (states()) executor_.pages().replace(user.sequence, user.path.pages, index_.page(node));
    move_to(user.path, node);
  }
  if (states()) keep_state(user);
}

// A text keeps its states where others may go on: at its branch, where messages begin, at its prompt's end,
// and the last one behind that. So it takes few, however long it is.
void PrefixCache::keep_state(const User& user) {
  Path& path = user.path;
  const uint32_t position = path.pages * kPageTokens, state = executor_.state_at(user.sequence, position);
  if (state == PagePool::kGone || index_.has_side(path.node)) return;
  index_.set_side(path.node, state);
  if (path.passing != PageIndex::kNone) index_.drop_side(path.passing);
  path.passing = is_place(user, position) ? PageIndex::kNone : path.node;
}

void PrefixCache::leave(Path& path) {
  index_.unpin(path.node);
  path = {};
}

// ---- pages that left the pool ---------------------------------------------------------------------

PageIndex::Host PrefixCache::host() {
  PageIndex::Host host = {host_pages_.count()};
  host.keep = [this](const Executor::CachePage& page, uint32_t slot) { return host_pages_.keep(page, slot); };
  host.state_slots = host_pages_.states();
  host.keep_state = [this](uint32_t state, uint32_t slot) { return host_pages_.keep_state(state, slot); };
  if (folder_.there()) host.lose = [this](uint32_t node) { store(node); };
  if (folder_.there() && states()) host.lose_state = [this](uint32_t node) { store_state(node); };
  return host;
}

// Stores the page of a node in the folder, unless it is there.
void PrefixCache::store(uint32_t node) {
  if (not_stored_ && not_stored_--) return;
  store_state(node);
  const Status status = guarded([&]() -> Status {
    const uint64_t salt = index_.salt(node);
    index_.text_of(node, &text_);
    const bool whole = !windows() || index_.has_side(node);
    const PageFolder::Part part = whole ? PageFolder::Part::Page : PageFolder::Part::NoWindow;
    if (folder_.has(salt, text_, part)) return folder_.touch(salt, text_, part), Status{};
    uint32_t slot = index_.slot(node);
    if (slot == PageIndex::kNone) {
      slot = host_pages_.spare();
      const uint32_t window = windows() ? index_.side(node) : PagePool::kGone;
      GRETA_TRY(host_pages_.keep({index_.page(node), window}, slot));
    }
    std::span<uint8_t> page;
    GRETA_TRY(host_pages_.bytes_of(slot, &page));
    folder_.store(salt, text_, page, part);
    return {};
  });
  (void)status;  // then the page is lost, and will be computed again
}

// Stores the state behind a node in the folder, if it has one that is not there.
void PrefixCache::store_state(uint32_t node) {
  if (!states() || !index_.has_side(node)) return;
  const Status status = guarded([&]() -> Status {
    constexpr PageFolder::Part kState = PageFolder::Part::State;
    const uint64_t salt = index_.salt(node);
    index_.text_of(node, &text_);
    if (folder_.has(salt, text_, kState)) return folder_.touch(salt, text_, kState), Status{};
    uint32_t slot = index_.state_slot(node);
    if (slot == PageIndex::kNone) {
      slot = host_pages_.spare_state();
      GRETA_TRY(host_pages_.keep_state(index_.side(node), slot));
    }
    std::span<uint8_t> state;
    GRETA_TRY(host_pages_.bytes_of_state(slot, &state));
    folder_.store(salt, text_, state, kState);
    return {};
  });
  (void)status;  // then texts go on from an earlier one
}

// Makes sure that there is a free page. Returns false if all are in use.
bool PrefixCache::make_room() {
  while (executor_.pages().free_pages() == 0)
    if (!index_.give_up_page()) return false;
  return true;
}

// A page of windows to be filled, which its taker drops; kGone if there is none.
uint32_t PrefixCache::window_page() {
  return windows() && executor_.free_window_page() ? windows()->take() : PagePool::kGone;
}

// Reads the user's next page from the folder. Returns its node, kNone where there is none.
uint32_t PrefixCache::read_back(const User& user) {
  if (!folder_.there() || user.path.looked_up > user.path.pages) return PageIndex::kNone;
  user.path.looked_up = user.path.pages + 1;
  uint32_t node = PageIndex::kNone;
  const Status status = guarded([&]() -> Status {
    const std::span<const int32_t> text = user.tokens.first(size_t(user.path.pages + 1) * kPageTokens);
    const bool window = folder_.has(user.salt, text);
    const PageFolder::Part part = window ? PageFolder::Part::Page : PageFolder::Part::NoWindow;
    if (!folder_.has(user.salt, text, part) || !make_room()) return {};
    std::span<uint8_t> bytes;
    GRETA_TRY(host_pages_.bytes_of(host_pages_.spare(), &bytes));
    if (!folder_.load(user.salt, text, bytes, part)) return {};
    const Executor::CachePage page{executor_.pages().take(), window ? window_page() : PagePool::kGone};
    const Status copied = host_pages_.bring_back(host_pages_.spare(), page);
    if (copied.ok()) node = index_.add(user.path.node, user.salt, text.last(kPageTokens), page);
    drop(page);
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
  Executor::CachePage page{executor_.pages().take()};
  if (index_.has_side(node)) page.window = window_page();
  if (!host_pages_.bring_back(index_.slot(node), page).ok()) {
    drop(page);
    index_.forget(node);
    return PageIndex::kNone;
  }
  index_.bring_back(node, page);
  if (page.window != PagePool::kGone) windows()->drop(page.window);  // the node has it now
  ++brought_back_;
  return node;
}

// Gives the last node of the user's path its state, which the host or the folder has.
bool PrefixCache::bring_state_back(const User& user) {
  if (!executor_.free_state()) return false;
  const uint32_t node = user.path.node, state = states()->take();
  bool found = true;
  const Status status = guarded([&]() -> Status {
    uint32_t slot = index_.state_slot(node);  // it may have left that a moment ago
    if (slot == PageIndex::kNone) {
      slot = host_pages_.spare_state();
      const PageIndex::Tokens text = user.tokens.first(size_t(user.path.pages) * kPageTokens);
      std::span<uint8_t> bytes;
      GRETA_TRY(host_pages_.bytes_of_state(slot, &bytes));
      found = folder_.there() && folder_.load(user.salt, text, bytes, PageFolder::Part::State);
    }
    return found ? host_pages_.bring_state_back(slot, state) : Status{};
  });
  const bool copied = found && status.ok();
  if (copied)
    index_.set_side(node, state);
  else
    index_.drop_side(node);
  states()->drop(state);
  return copied;
}

void PrefixCache::drop(const Executor::CachePage& page) {
  executor_.pages().drop(page.full);
  if (page.window != PagePool::kGone) windows()->drop(page.window);
}

}  // namespace greta
