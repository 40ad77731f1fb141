// The prefix cache of a service: pages of texts that were read before, in the executor's pool, in the host's
// memory and in a folder, and which of them each request has.
#pragma once
#include "engine/serve/host_pages.h"
#include "engine/serve/page_folder.h"
#include "engine/serve/page_index.h"

namespace greta {

struct PrefixCacheOptions {
  bool on = true;
  uint64_t host_bytes = 0;        // of host memory for pages that leave the pool
  PageFolderOptions folder = {};  // for pages that have no place in memory any more
};

class PrefixCache {
 public:
  // The pages of a request's text that the cache has and the request keeps there.
  class Path {
   private:
    friend class PrefixCache;
    uint32_t node = PageIndex::kRoot;  // of the last page
    uint32_t pages = 0;
    uint32_t looked_up = 0;  // pages that were looked for in the folder
    bool searched = false;   // the folder, for states
    uint32_t branch = 0;     // pages that others have read as well, behind the last state of the cache
    uint32_t passing = PageIndex::kNone;  // the node whose state goes when there is a later one
  };
  // A request that uses the cache: its salt, its text, and where its sequence is.
  struct User {
    Path& path;
    uint64_t salt;
    std::span<const int32_t> tokens;
    uint32_t sequence, sent;  // tokens whose keys and values are there, or will be by steps under way
    uint32_t prompt;          // tokens of the text that are its prompt
    std::span<const uint32_t> places = {};  // within the prompt, ascending, at which messages begin
  };

  PrefixCache(Executor& executor, const PrefixCacheOptions& options);
  ~PrefixCache();  // no request uses it any more

  bool on() const { return options_.on; }
  const PageIndex& index() const { return index_; }
  uint64_t brought_back() const { return brought_back_; }

  // How many of the first `pages` pages of a text are here, which others use as well.
  uint32_t pages_in_use(uint64_t salt, std::span<const int32_t> tokens, uint32_t pages) const;
  // How many of the pages of a text are here, or in the host's memory, of those that it would take.
  uint32_t pages_known(uint64_t salt, std::span<const int32_t> tokens) const;
  // Hears that tokens have left the text, unless that changes none of the pages that the user has here.
  void follow(const User& user) {
    if (user.sent < user.path.pages * kPageTokens) leave(user.path);
  }
  // Gives the sequence the next page of its text, if it is here, or where there is a group of windows or
  // layers keep states, all pages up to the last one behind which it can go on. The last token is left to be
  // computed, for its logits. Returns for how many tokens; 0 if there is none.
  uint32_t adopt(const User& user);
  // What `user` could take next is what `other` computes now.
  bool computes(const User& other, const User& user) const;
  // How many of its next `rows` tokens a piece of the text should have, so that it ends where a state is
  // kept.
  uint32_t piece(const User& user, uint32_t rows) const;
  // Takes pages that are full, and the state behind the last of them. Steps that are submitted later may read
  // them.
  void keep(const User& user);
  void leave(Path& path);  // the text begins anew or has ended
  // Forgets the pages of a text, here, in the host's memory and in the folder, from its end on up to one that
  // a request uses or with which another text goes on. Returns how many.
  uint32_t forget(uint64_t salt, std::span<const int32_t> tokens);
  bool give_up_page() { return index_.give_up_page(); }  // frees the oldest; false if all are in use

 private:
  static PageIndex::Tokens page_of(const User& user) {  // that comes next
    return user.tokens.subspan(size_t(user.path.pages) * kPageTokens, kPageTokens);
  }
  // The text goes on with a whole page behind those that it has here, and a token more.
  static bool wants_page(const User& user) {
    return user.sent == user.path.pages * kPageTokens && user.tokens.size() > size_t(user.sent) + kPageTokens;
  }
  // Whether the text goes on with a whole page behind so many, and a token more.
  static bool goes_on(const User& user, uint32_t pages) {
    return user.tokens.size() > size_t(pages + 1) * kPageTokens;
  }
  // The last place before the prompt's end at which a state can be kept.
  static uint32_t prompt_place(const User& user) { return (user.prompt - 1) / kPageTokens * kPageTokens; }
  static uint32_t next_place(const User& user);
  static bool is_place(const User& user, uint32_t position);
  static PageIndex::Sides sides(Executor& executor);
  PagePool* windows() const { return executor_.windows(); }
  PagePool* states() const { return executor_.states(); }
  // How many pages of a text the cache has, and how many of them lie before the last place at which the text
  // can go on.
  struct Reach {
    uint32_t pages = 0, usable = 0;
  };
  Reach reach(uint64_t salt, std::span<const int32_t> tokens, uint32_t node = PageIndex::kRoot,
              uint32_t pages = 0) const;
  uint32_t usable_pages(const User& user) const;
  uint32_t stored_pages(const User& user) const;
  bool adopt_page(const User& user);
  bool adopt_windows(const User& user, uint32_t before);
  bool adopt_state(const User& user);
  bool bring_state_back(const User& user);
  void keep_state(const User& user);
  uint32_t window_page();
  void drop(const Executor::CachePage& page);
  uint32_t find(const User& user) const { return index_.find(user.path.node, user.salt, page_of(user)); }
  void move_to(Path& path, uint32_t node);
  uint32_t bring_back(const User& user);
  uint32_t read_back(const User& user);
  bool make_room();
  PageIndex::Host host();
  void store(uint32_t node);
  void store_state(uint32_t node);

  Executor& executor_;
  const PrefixCacheOptions options_;
  HostPages host_pages_;
  PageFolder folder_;
  uint64_t not_stored_ = 0;    // pages that are lost next, for which the folder has no room
  std::vector<int32_t> text_;  // of a page that is stored
  PageIndex index_;
  uint64_t brought_back_ = 0;
};

}  // namespace greta
