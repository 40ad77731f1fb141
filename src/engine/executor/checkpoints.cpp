#include "engine/executor/checkpoints.h"

#include <algorithm>
#include <utility>

namespace greta {

void Checkpoints::make(uint32_t sequence, uint32_t position, bool passing) {
  if (of_ == Of::Windows) position -= position % kPageTokens;
  if (position == 0 || (of_ == Of::Windows && !pool_.whole(sequence, position))) return;
  Places& places = places_[sequence];
  const auto at = std::ranges::lower_bound(places, position, {}, &Place::position);
  if (at != places.end() && at->position == position) {
    at->used = ++clock_;
    at->passing &= passing;
    return;
  }
  const std::span<const uint32_t> pages =
      of_ == Of::States ? pool_.table(sequence) : pool_.seen(sequence, position);
  places.insert(at, {position, ++clock_, {pages.begin(), pages.end()}, passing});
  for (const uint32_t page : pages) pool_.hold(page);
}

void Checkpoints::drop_passed(uint32_t sequence) {
  Places& places = places_[sequence];
  bool last = true;
  for (size_t i = places.size(); i-- > 0;) {
    if (!places[i].passing || places[i].held || std::exchange(last, false)) continue;
    drop(places, i);
  }
}

bool Checkpoints::keep_for_guesses(uint32_t sequence, uint32_t position, uint32_t most) {
  const auto at = [&](const Place& place) { return place.position == position; };
  const auto held = std::ranges::find(places_[sequence], true, &Place::held);
  if (held != places_[sequence].end()) {
    if (at(*held)) return true;
    drop_for_guesses(sequence);
  }
  size_t all = 0;
  for (const Places& places : places_) all += size_t(std::ranges::count(places, true, &Place::held));
  if (all >= most) return false;
  const bool there = std::ranges::any_of(places_[sequence], at);
  make(sequence, position);
  const auto place = std::ranges::find_if(places_[sequence], at);
  if (place == places_[sequence].end()) return false;
  place->held = true;
  place->guess = !there;
  return true;
}

void Checkpoints::drop_for_guesses(uint32_t sequence) {
  Places& places = places_[sequence];
  const auto held = std::ranges::find(places, true, &Place::held);
  if (held == places.end()) return;
  held->held = false;
  if (held->guess) drop(places, size_t(held - places.begin()));
}

uint32_t Checkpoints::last(uint32_t sequence, uint32_t position) const {
  const Places& places = places_[sequence];
  const auto behind = std::ranges::upper_bound(places, position, {}, &Place::position);
  return behind == places.begin() ? 0 : std::prev(behind)->position;
}

void Checkpoints::resume(uint32_t sequence, uint32_t position) {
  if (position == 0) return pool_.truncate(sequence, 0);
  Places& places = places_[sequence];
  const auto at = std::ranges::find(places, position, &Place::position);
  at->used = ++clock_;
  pool_.set_seen(sequence, of_ == Of::States ? 1 : position, at->pages);
}

void Checkpoints::forget(uint32_t sequence, uint32_t position) {
  Places& places = places_[sequence];
  while (!places.empty() && places.back().position > position) drop(places, places.size() - 1);
}

void Checkpoints::fork(uint32_t from, uint32_t to, uint32_t position) {
  for (const Place& place : places_[from]) {
    if (place.position > position) return;
    if (place.guess) continue;
    places_[to].push_back(place);
    places_[to].back().held = false;
    for (const uint32_t page : place.pages) pool_.hold(page);
  }
}

bool Checkpoints::give_up() {
  Places* owner = nullptr;
  size_t index = 0;
  for (Places& places : places_)
    for (size_t i = 0; i < places.size(); ++i)
      if (!places[i].held && (!owner || places[i].used < (*owner)[index].used)) owner = &places, index = i;
  if (!owner) return false;
  drop(*owner, index);
  return true;
}

void Checkpoints::drop(Places& places, size_t index) {
  for (const uint32_t page : places[index].pages) pool_.drop(page);
  places.erase(places.begin() + std::ptrdiff_t(index));
}

}  // namespace greta
