#include "engine/serve/places.h"

#include "engine/serve/request.h"

namespace greta {

void Places::Place::give_up() {
  if (!of_) return;
  const std::lock_guard<std::mutex> lock(of_->mutex_);
  of_->leave(*this);
}

void Places::Place::belong_to(Request* request) {
  const std::lock_guard<std::mutex> lock(of_->mutex_);
  request_ = request;
}

Status Places::take(uint64_t salt, std::unique_ptr<Place>* out) {
  auto place = std::make_unique<Place>();
  const std::lock_guard<std::mutex> lock(mutex_);
  for (;;) {
    const auto same = of_salt_.find(salt);
    const bool quota = salt && same != of_salt_.end() && same->second >= limits_.of_salt;
    if (!quota && held_.size() < limits_.all) break;
    Place* unread = longest_unread(quota ? &salt : nullptr);
    if (unread) {
      unread->request_->end_soon(StopReason::Unread);
      leave(*unread);
    } else if (quota) {
      return with_numbers(
          fail(kBusy, "%zu requests of this salt wait or run, and the service takes no more of one",
               limits_.of_salt),
          {same->second, limits_.of_salt});
    } else {
      return with_numbers(fail(kBusy, "%zu requests wait or run, and the service takes no more", limits_.all),
                          {held_.size(), limits_.all});
    }
  }
  size_t& of_salt = of_salt_[salt];
  place->at_ = held_.insert(held_.end(), place.get());
  ++of_salt;
  place->salt_ = salt;
  place->held_ = true;
  place->of_ = shared_from_this();
  *out = std::move(place);
  return {};
}

void Places::leave(Place& place) {
  if (!place.held_) return;
  place.held_ = false;
  held_.erase(place.at_);
  const auto same = of_salt_.find(place.salt_);
  if (--same->second == 0) of_salt_.erase(same);
}

// Of one salt, or of all. Null where every reader came in time.
Places::Place* Places::longest_unread(const uint64_t* salt) const {
  const uint64_t now = now_ns();
  Place* longest = nullptr;
  uint64_t most = limits_.unread_ns;
  for (Place* place : held_) {
    if (!place->request_ || (salt && place->salt_ != *salt)) continue;
    const uint64_t unread = place->request_->unread_ns(now);
    if (unread < most) continue;
    most = unread;
    longest = place;
  }
  return longest;
}

}  // namespace greta
