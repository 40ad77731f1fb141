#include "keys.h"

namespace greta::serve {
namespace {

// Takes as long for any two keys of the same length as the given one.
bool same_key(std::string_view given, std::string_view key) {
  if (key.empty()) return false;
  unsigned difference = given.size() == key.size() ? 0 : 1;
  for (size_t i = 0; i < given.size(); ++i)
    difference |= static_cast<unsigned char>(given[i]) ^ static_cast<unsigned char>(key[i % key.size()]);
  return difference == 0;
}

}  // namespace

Keys::Keys(std::vector<Key> keys) {
  for (Key& key : keys) states_.push_back({std::move(key), 0, {}});
}

int Keys::find(std::string_view given) const {
  int found = -1;
  for (size_t i = 0; i < states_.size(); ++i)
    found = same_key(given, states_[i].key.text) ? static_cast<int>(i) : found;
  return found;
}

bool Keys::enter(int key, Run run) {
  {
    const std::lock_guard lock(mutex_);
    State& state = states_[static_cast<size_t>(key)];
    const size_t all = state.running + state.waiting.size();
    if (state.key.queue > 0 && all >= state.key.queue) return false;
    if (state.key.parallel > 0 && state.running >= state.key.parallel) {
      state.waiting.push_back(std::move(run));
      return true;
    }
    ++state.running;
  }
  run(std::make_shared<Ticket>(this, key));
  return true;
}

void Keys::leave(int key) {
  Run next;
  {
    const std::lock_guard lock(mutex_);
    State& state = states_[static_cast<size_t>(key)];
    if (state.waiting.empty()) return void(--state.running);
    next = std::move(state.waiting.front());
    state.waiting.pop_front();
  }
  next(std::make_shared<Ticket>(this, key));
}

}  // namespace greta::serve
