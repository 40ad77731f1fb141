// Keys of clients, and how many calls of each run or wait.
#pragma once
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "serve.h"

namespace greta::serve {

class Keys {
 public:
  explicit Keys(std::vector<Key> keys);

  bool empty() const { return states_.empty(); }  // everybody may ask
  // The number of the key, or -1. It takes as long for all keys.
  int find(std::string_view given) const;

  // A call that runs holds one until it is answered; then another call of the key may run.
  class Ticket {
   public:
    Ticket(Keys* keys, int key) : keys_(keys), key_(key) {}
    ~Ticket() { keys_->leave(key_); }
    Ticket(const Ticket&) = delete;
    Ticket& operator=(const Ticket&) = delete;

   private:
    Keys* keys_;
    int key_;
  };
  using Run = std::function<void(std::shared_ptr<Ticket>)>;
  // Calls `run` now, or when earlier calls of the key are over, on their thread. False: too many wait.
  bool enter(int key, Run run);
  bool limits(int key) const {
    return key >= 0 && (states_[key].key.parallel > 0 || states_[key].key.queue > 0);
  }

 private:
  struct State {
    Key key;
    uint32_t running = 0;
    std::deque<Run> waiting;
  };
  void leave(int key);

  std::mutex mutex_;
  std::vector<State> states_;
};

}  // namespace greta::serve
