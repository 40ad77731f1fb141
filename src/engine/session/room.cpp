// Makes room in a full context: some of the tokens that a session holds leave, and those behind them are read
// again. So the cache is what reading the kept text for the first time gives, on every device and for every
// type of cache and architecture.
#include <algorithm>

#include "engine/session/session.h"

namespace greta {

Status forget_half(std::span<const int32_t> held, uint32_t keep, std::vector<int32_t>* instead) {
  instead->clear();
  if (keep >= held.size()) return {};
  const size_t leave = (held.size() - keep) / 2;
  if (leave == 0) return {};
  instead->assign(held.begin(), held.begin() + keep);
  instead->insert(instead->end(), held.begin() + std::ptrdiff_t(keep + leave), held.end());
  return {};
}

// Nothing changes if on_full gives no tokens. The text goes on behind the last token as if it had not moved:
// the grammar and the sampler keep what they know.
Status Session::make_room(bool on_device, const GenerateOptions& options, Undo* undo,
                          GenerateResult* result) {
  std::vector<int32_t> instead;
  if (options.on_full) GRETA_TRY(options.on_full(tokens_, &instead));
  if (instead.empty()) return {};
  const uint32_t before = position_;
  if (instead.size() >= before)
    return fail(Code::Full, "%zu tokens shall take the place of %u, which makes no room", instead.size(),
                before);
  const auto differs = std::mismatch(instead.begin(), instead.end(), tokens_.begin()).first;
  // At least the last token is read again, since a step needs one.
  const auto common = uint32_t(std::min<size_t>(size_t(differs - instead.begin()), instead.size() - 1));
  undo->to = std::min(undo->to, common);
  executor_->truncate(sequence_, common);
  position_ = common;
  tokens_.resize(common);
  sampler_.move_back(before - uint32_t(instead.size()));
  grammar_.move_back(before - uint32_t(instead.size()));
  const Status fed = feed(std::span<const int32_t>(instead).subspan(common), on_device, options);
  if (!fed.ok()) {
    sampler_.truncate(position_);
    grammar_.truncate(position_);
    return fed;
  }
  result->forgotten_tokens += before - position_;
  return {};
}

}  // namespace greta
