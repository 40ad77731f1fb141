#include "engine/write/stop.h"

#include <algorithm>

#include "text/text.h"

namespace greta {

static constexpr char kHides = '\xff';  // never in UTF-8

Status StopMatcher::open(std::span<const std::string_view> texts) {
  if (texts.size() > kMaxStopStrings)
    return fail(Code::Argument, "%zu stop strings, at most %u", texts.size(), kMaxStopStrings);
  patterns_.clear();
  held_.clear();
  found_ = -1;
  for (size_t i = 0; i < texts.size(); ++i) {
    const std::string_view text = texts[i];
    if (text.empty() || text.size() > kMaxStopBytes)
      return fail(Code::Argument, "stop string %zu has %zu bytes, expected 1 to %u", i, text.size(),
                  kMaxStopBytes);
    if (!is_valid_utf8(text)) return fail(Code::Argument, "stop string %zu is not valid UTF-8", i);
    Pattern pattern{std::string(text), std::vector<uint32_t>(text.size(), 0), 0};
    for (uint32_t at = 1, length = 0; at < text.size(); ++at) {
      while (length && text[at] != text[length]) length = pattern.shorter[length - 1];
      pattern.shorter[at] = length += text[at] == text[length];
    }
    patterns_.push_back(pattern);             // matches in the whole text
    patterns_.push_back(std::move(pattern));  // matches in what is shown
  }
  return {};
}

// Takes a byte into a pattern, of which `matched` bytes came before. Returns true if it is complete.
static bool take(const std::string& text, const std::vector<uint32_t>& shorter, char byte,
                 uint32_t* matched) {
  uint32_t& m = *matched;
  while (m && (m == text.size() || text[m] != byte)) m = shorter[m - 1];
  m += text[m] == byte;
  return m == text.size();
}

// The place in `held` from which on there are `bytes`, of those that are shown alone or of all.
static size_t start_of(const std::string& held, uint32_t bytes, bool shown_alone) {
  size_t at = held.size();
  while (bytes) {
    const bool hidden = at > 1 && held[at - 2] == kHides;
    at -= 1 + hidden;
    bytes -= !(hidden && shown_alone);
  }
  return at;
}

// Appends the first `bytes` of `held` that are shown, and takes them all off.
static void release(std::string* held, size_t bytes, std::string* out) {
  for (size_t at = 0; at < bytes; ++at)
    if ((*held)[at] == kHides)
      ++at;
    else
      out->push_back((*held)[at]);
  held->erase(0, bytes);
}

bool StopMatcher::push(std::string_view text, std::string* out) {
  const auto is_shown = [&](const Pattern& p) { return (&p - patterns_.data()) % 2 != 0; };
  const auto settle = [&] {
    size_t start = held_.size();
    for (const Pattern& p : patterns_)
      if (p.matched) start = std::min(start, start_of(held_, p.matched, is_shown(p)));
    release(&held_, start, out);
  };
  for (size_t at = 0; at < text.size(); ++at) {
    const bool hidden = text[at] == kHides && at + 1 < text.size();
    if (hidden) held_ += text[at++];
    held_ += text[at];
    size_t start = held_.size();
    for (Pattern& p : patterns_) {
      if ((hidden && is_shown(p)) || !take(p.text, p.shorter, text[at], &p.matched)) continue;
      const size_t from = start_of(held_, p.matched, is_shown(p));
      if (from >= start) continue;
      start = from;
      found_ = int32_t(&p - patterns_.data()) / 2;
    }
    if (found_ >= 0) {
      release(&held_, start, out);
      held_.clear();
      return true;
    }
    if (held_.size() % 512 == 0) settle();  // larger pieces rather than single bytes
  }
  settle();
  return false;
}

void StopMatcher::begin_anew() {
  for (Pattern& pattern : patterns_) pattern.matched = 0;
}

void StopMatcher::flush(std::string* out) { release(&held_, held_.size(), out); }

}  // namespace greta
