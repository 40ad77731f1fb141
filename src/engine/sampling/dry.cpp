// DRY ("don't repeat yourself", p-e-w 2024) lowers the logit of a token that would continue a repetition of
// earlier text. The longer the repetition, the lower the logit.
#include <algorithm>
#include <cmath>

#include "engine/sampling/steps.h"
#include "text/text.h"

namespace greta {

const std::string_view kDryBreakers[4] = {"\n", ":", "\"", "*"};

namespace {

// The tokens in reverse order: at(0) is the last one.
struct Reversed {
  std::span<const int32_t> history;
  int32_t at(size_t i) const { return history[history.size() - 1 - i]; }
};

// Returns how many tokens follow the last breaker. No repetition reaches across it.
size_t reach(const Reversed& text, size_t count, const std::vector<DryBreaker>& breakers) {
  for (size_t i = 0; i < count; ++i) {
    const auto by_token = [](const DryBreaker& b, int32_t token) { return b.token < token; };
    auto each = std::lower_bound(breakers.begin(), breakers.end(), text.at(i), by_token);
    size_t longest = SIZE_MAX;
    for (; each != breakers.end() && each->token == text.at(i); ++each) {
      size_t match = 0;
      while (match < each->tail.size() && match < i && text.at(i - 1 - match) == each->tail[match]) ++match;
      if (match == each->tail.size() && (longest == SIZE_MAX || match > longest)) longest = match;
    }
    if (longest != SIZE_MAX) return i - longest;
  }
  return count;
}

// For each position i of the reversed text: how many tokens from there equal those from its start (Z
// function, Gusfield 1997).
std::vector<uint32_t> copies(const Reversed& text, size_t count) {
  std::vector<uint32_t> z(count, 0);
  for (size_t i = 1, left = 0, right = 0; i < count; ++i) {
    if (i < right) z[i] = uint32_t(std::min<size_t>(right - i, z[i - left]));
    while (i + z[i] < count && text.at(z[i]) == text.at(i + z[i])) ++z[i];
    if (i + z[i] > right) left = i, right = i + z[i];
  }
  return z;
}

}  // namespace

void apply_dry(SamplerTurn& turn) {
  const DrySettings& s = turn.settings.dry;
  const Reversed text{turn.history};
  const size_t count = s.last_n ? std::min<size_t>(s.last_n, turn.history.size()) : turn.history.size();
  if (count <= s.allowed_length) return;
  const size_t limit = reach(text, count, s.breakers);
  if (limit < s.allowed_length) return;
  struct Repeat {
    int32_t token;
    size_t length;
    bool operator<(const Repeat& other) const {
      return token != other.token ? token < other.token : length > other.length;
    }
  };
  std::vector<Repeat> repeats;  // the tokens that would make a repetition longer
  const std::vector<uint32_t> z = copies(text, count);
  for (size_t i = 1; i < count; ++i) {
    const size_t length = std::min<size_t>(z[i], limit);
    if (length >= s.allowed_length) repeats.push_back({text.at(i - 1), length});
  }
  if (repeats.empty()) return;
  std::sort(repeats.begin(), repeats.end());
  // base^most must fit into a float, and e^88.7 is about the largest float.
  const double most = s.base > 1.000001f ? std::floor(88.7228391 / std::log(double(s.base))) : INFINITY;
  for (Candidate& each : turn.candidates.list) {
    const auto found = std::lower_bound(repeats.begin(), repeats.end(), Repeat{each.id, SIZE_MAX});
    if (found == repeats.end() || found->token != each.id) continue;
    const double over = std::min(double(found->length - s.allowed_length), most);
    each.logit = std::max(each.logit - double(s.multiplier) * std::pow(double(s.base), over), -kLargestLogit);
  }
  turn.candidates.sorted = 0;
}

// Encodes a text as it is within another text, without the space that some vocabularies put before a text.
static Status encode_within(const Tokenizer& tokenizer, std::string_view text, std::vector<int32_t>* out) {
  if (!tokenizer.adds_space_prefix()) return tokenizer.encode(text, {false, false}, out);
  std::vector<int32_t> ids;
  GRETA_TRY(tokenizer.encode("\n" + std::string(text), {false, false}, &ids));
  size_t at = 0;
  while (at < ids.size() && tokenizer.piece(ids[at]) == " ") ++at;
  if (at == ids.size() || tokenizer.piece(ids[at]) != "\n")
    return tokenizer.encode(text, {false, false}, out);
  out->assign(ids.begin() + at + 1, ids.end());
  return {};
}

Status find_dry_breakers(const Tokenizer& tokenizer, std::span<const std::string_view> texts,
                         std::vector<DryBreaker>* out) {
  constexpr size_t kMaxTail = 20;  // tokens
  if (texts.size() > kMaxDryBreakers)
    return fail(Code::Argument, "%zu sequence breakers, at most %u", texts.size(), kMaxDryBreakers);
  for (const std::string_view text : texts)
    if (text.empty() || text.size() > kMaxDryBreakerBytes)
      return fail(Code::Argument, "a sequence breaker of %zu bytes, expected 1 to %u", text.size(),
                  kMaxDryBreakerBytes);
  std::vector<DryBreaker> found;
  std::string piece;
  for (uint32_t id = 0; id < tokenizer.size(); ++id) {
    piece.clear();
    tokenizer.append_piece(int32_t(id), true, &piece);
    for (const std::string_view text : texts) {
      if (piece.find(text) != piece.npos) {
        found.push_back({int32_t(id), {}});
        continue;
      }
      for (size_t head = std::min(text.size() - 1, piece.size()); head > 0; --head) {
        if (!piece.ends_with(text.substr(0, head))) continue;
        DryBreaker breaker{int32_t(id), {}};
        GRETA_TRY(encode_within(tokenizer, text.substr(head), &breaker.tail));
        if (breaker.tail.size() > kMaxTail) breaker.tail.resize(kMaxTail);
        found.push_back(std::move(breaker));
      }
    }
  }
  std::sort(found.begin(), found.end(), [](const DryBreaker& a, const DryBreaker& b) {
    return a.token != b.token ? a.token < b.token : a.tail < b.tail;
  });
  *out = std::move(found);
  return {};
}

}  // namespace greta
