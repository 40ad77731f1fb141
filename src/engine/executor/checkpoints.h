// Places of sequences at which they can go on, although they have gone past. Pages of group 0 are the
// sequence's own up to there.
//   of windows  The pages of a window group that a row there sees. A place is a multiple of kPageTokens, so
//               that its last page is full and nobody writes into it any more.
//   of states   The state that the sequence has there, which a step that goes on copies first.
#pragma once
#include "engine/executor/page_pool.h"

namespace greta {

class Checkpoints {
 public:
  enum class Of : uint8_t { Windows, States };
  Checkpoints(PagePool& pool, Of of, uint32_t sequences) : pool_(pool), of_(of), places_(sequences) {}

  // Makes one at the last place up to `position`, if the sequence has what it needs. A state ends there.
  // One that is passing goes when there is a later one (drop_passed).
  void make(uint32_t sequence, uint32_t position, bool passing = false);
  void drop_passed(uint32_t sequence);  // passing ones but for the last
  // Makes sure that there is one of a state at `position`, which is not given up until it is dropped. A
  // sequence has one of these at most, all sequences together `most`; false if that would be more.
  bool keep_for_guesses(uint32_t sequence, uint32_t position, uint32_t most);
  void drop_for_guesses(uint32_t sequence);
  // The last one up to `position`; 0 if there is none.
  uint32_t last(uint32_t sequence, uint32_t position) const;
  // Gives the sequence the pages of its checkpoint at `position`, or none at 0.
  void resume(uint32_t sequence, uint32_t position);
  void forget(uint32_t sequence, uint32_t position);  // those behind `position`
  void fork(uint32_t from, uint32_t to, uint32_t position);
  bool give_up();  // the one that was not used for longest; false if there is none

 private:
  struct Place {
    uint32_t position;
    uint64_t used;                // when, by clock_
    std::vector<uint32_t> pages;  // PagePool::seen, or the state
    bool passing;
    bool held = false;   // for guesses, and
    bool guess = false;  // made for them alone
  };
  using Places = std::vector<Place>;  // in order of position
  void drop(Places& places, size_t index);

  PagePool& pool_;
  const Of of_;
  std::vector<Places> places_;  // by sequence
  uint64_t clock_ = 0;
};

}  // namespace greta
