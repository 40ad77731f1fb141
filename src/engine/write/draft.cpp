#include "engine/write/draft.h"

#include <algorithm>
#include <bit>

#include "engine/write/model_draft.h"

namespace greta {

size_t TextDraft::place_of(std::span<const int32_t> gram) const {
  uint64_t hash = 0;
  for (const int32_t token : gram) hash = (hash ^ uint32_t(token)) * 0x9e3779b97f4a7c15u;
  return hash >> (64 - std::countr_zero(kPlaces));
}

void TextDraft::push(std::span<const int32_t> tokens) {
  if (ends_.empty()) ends_.resize(kPlaces);
  for (const int32_t token : tokens) {
    if (text_.size() >= kGram) ends_[place_of(std::span(text_).last(kGram))] = uint32_t(text_.size());
    text_.push_back(token);
  }
}

Status TextDraft::guess(std::span<const int32_t>, uint32_t most, std::vector<int32_t>* out) {
  out->clear();
  const std::span<const int32_t> text = text_;
  if (!most || text.size() <= kGram) return {};
  const std::span<const int32_t> last = text.last(kGram);
  const size_t end = ends_[place_of(last)];
  if (!end || !std::ranges::equal(text.subspan(end - kGram, kGram), last)) return {};
  const std::span<const int32_t> next = text.subspan(end, std::min<size_t>(most, text.size() - end));
  out->assign(next.begin(), next.end());
  return {};
}

Status HeadDraft::guess(std::span<const int32_t> text, uint32_t most, std::vector<int32_t>* out) {
  out->clear();
  if (behind_ == text.size())
    out->assign(guesses_.begin(), guesses_.begin() + std::ptrdiff_t(std::min<size_t>(most, guesses_.size())));
  return {};
}

Status CallerDraft::guess(std::span<const int32_t> text, uint32_t most, std::vector<int32_t>* out) {
  out->assign(most, 0);
  out->resize(std::min<size_t>(most, call_(text, out->data(), most)));
  return {};
}

const char* draft_kind_name(DraftKind kind) {
  static constexpr const char* kNames[] = {"none", "text", "head", "model", "caller"};
  static_assert(std::size(kNames) == size_t(DraftKind::count));
  return kNames[size_t(kind)];
}

Status check_draft(const DraftSettings& settings, bool has_head) {
  if (settings.kind == DraftKind::None) return {};
  if (settings.depth == 0 || settings.depth > kMaxDraftTokens)
    return fail(Code::Argument, "%u tokens to guess in a step, expected 1 to %u", settings.depth,
                kMaxDraftTokens);
  if (settings.kind == DraftKind::Caller && !settings.guess_tokens)
    return fail(Code::Argument, "a draft by a callback, but there is no callback");
  if (settings.kind == DraftKind::Model && !settings.executor)
    return fail(Code::Argument, "a draft by a second model, but there is no executor of one");
  if (settings.kind == DraftKind::Head && !has_head)
    return fail(Code::Argument,
                "a draft by the model's own layer, but the model was opened without it (draft_head)");
  return {};
}

Status open_draft(const DraftSettings& settings, std::shared_ptr<DraftSource>* out) {
  *out = settings.source;
  if (*out) return {};
  switch (settings.kind) {
    case DraftKind::Text:
      *out = std::make_shared<TextDraft>();
      return {};
    case DraftKind::Head:
      *out = std::make_shared<HeadDraft>();
      return {};
    case DraftKind::Model:
      *out = std::make_shared<ModelDraft>(settings.executor);
      return {};
    case DraftKind::Caller:
      *out = std::make_shared<CallerDraft>(settings.guess_tokens);
      return {};
    default:
      out->reset();
      return {};
  }
}

void change_guesses(const DraftSettings& settings, std::span<const int32_t> text,
                    std::vector<int32_t>* guesses) {
  if (settings.kind == DraftKind::Caller || !settings.guess_tokens || guesses->empty()) return;
  const size_t most = guesses->size();
  guesses->resize(std::min(most, settings.guess_tokens(text, guesses->data(), most)));
}

void DraftDepth::watched(bool right) {
  right_ = right ? right_ + 1 : 0;
  if (right_ >= kTrust) depth_ = std::min(most_, kCareful);
}

void DraftDepth::passed() {
  if (pause_ == 0 || --pause_ != 0) return;
  depth_ = std::min(most_, 1u);
}

void DraftDepth::pause() {
  depth_ = 0;
  pause_ = next_pause_;
  next_pause_ = std::min(4 * next_pause_, kLongestPause);
  share_ = std::max(share_, kLittleMore);
  tries_ = true;
}

uint32_t DraftDepth::depth_by_share() const {
  if (share_ >= kDeeper[std::size(kDeeper) - 1]) return most_;
  const auto deeper = std::ranges::count_if(kDeeper, [this](float from) { return share_ >= from; });
  return std::min(most_, 2 + uint32_t(deeper));
}

void DraftDepth::verified(uint32_t guesses, uint32_t right) {
  if (free_) {
    if (!right) right_ = 0;
    depth_ = right == guesses ? most_ : right ? std::min(most_, kCareful) : 0;
    return;
  }
  for (uint32_t i = 0; i < right; ++i) share_ += kWeight * (1 - share_);
  if (right < guesses) share_ -= kWeight * share_;
  if ((tries_ && !right) || share_ < kWorth) return pause();
  if (right == guesses) next_pause_ = kFirstPause;
  tries_ = false;
  depth_ = depth_by_share();
}

}  // namespace greta
