#include "engine/session/stop.h"

#include <algorithm>

#include "text/text.h"

namespace greta {

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
    patterns_.push_back(std::move(pattern));
  }
  return {};
}

bool StopMatcher::push(std::string_view text, std::string* out) {
  if (patterns_.empty()) return out->append(text), false;
  for (const char byte : text) {
    held_ += byte;
    uint32_t wait = 0, longest = 0;
    for (Pattern& p : patterns_) {
      while (p.matched && (p.matched == p.text.size() || p.text[p.matched] != byte))
        p.matched = p.shorter[p.matched - 1];
      p.matched += p.text[p.matched] == byte;
      wait = std::max(wait, p.matched);
      if (p.matched == p.text.size() && p.matched > longest) {
        longest = p.matched;
        found_ = int32_t(&p - patterns_.data());
      }
    }
    if (longest) {
      out->append(held_, 0, held_.size() - longest);
      held_.clear();
      return true;
    }
    if (held_.size() > wait + 256) {  // appends larger pieces rather than single bytes
      out->append(held_, 0, held_.size() - wait);
      held_.erase(0, held_.size() - wait);
    }
  }
  uint32_t wait = 0;
  for (const Pattern& p : patterns_) wait = std::max(wait, p.matched);
  out->append(held_, 0, held_.size() - wait);
  held_.erase(0, held_.size() - wait);
  return false;
}

void StopMatcher::flush(std::string* out) {
  out->append(held_);
  held_.clear();
}

}  // namespace greta
