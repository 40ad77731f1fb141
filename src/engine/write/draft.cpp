#include "engine/write/draft.h"

#include <algorithm>
#include <bit>

namespace greta {

size_t Draft::place_of(std::span<const int32_t> gram) const {
  uint64_t hash = 0;
  for (const int32_t token : gram) hash = (hash ^ uint32_t(token)) * 0x9e3779b97f4a7c15u;
  return hash >> (64 - std::countr_zero(kPlaces));
}

void Draft::push(std::span<const int32_t> tokens) {
  if (ends_.empty()) ends_.resize(kPlaces);
  for (const int32_t token : tokens) {
    if (text_.size() >= kGram) ends_[place_of(std::span(text_).last(kGram))] = uint32_t(text_.size());
    text_.push_back(token);
  }
}

std::span<const int32_t> Draft::guess(uint32_t most) const {
  const std::span<const int32_t> text = text_;
  if (!most || text.size() <= kGram) return {};
  const std::span<const int32_t> last = text.last(kGram);
  const size_t end = ends_[place_of(last)];
  if (!end || !std::ranges::equal(text.subspan(end - kGram, kGram), last)) return {};
  return text.subspan(end, std::min<size_t>(most, text.size() - end));
}

void DraftDepth::watched(bool right) {
  right_ = right ? right_ + 1 : 0;
  if (right_ >= kTrust) depth_ = std::min(most_, kCareful);
}

void DraftDepth::verified(uint32_t guesses, uint32_t right) {
  if (!right) right_ = 0;
  depth_ = right == guesses ? most_ : right ? std::min(most_, kCareful) : 0;
}

}  // namespace greta
