// Guesses of the next tokens of a text: drafts for speculative decoding. The device verifies several in one
// step, and a guess counts only if it is the token that is drawn, so no text depends on who has guessed.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "platform/platform.h"

namespace greta {

class Executor;

constexpr uint32_t kMaxDraftTokens = 7;  // a step verifies them and makes one more token

enum class DraftKind : uint8_t {
  None,
  Text,    // from what followed the same tokens earlier in the text
  Head,    // from the layers of the file that draft
  Model,   // from a second model
  Caller,  // from a callback
  count,
};
const char* draft_kind_name(DraftKind kind);

// Makes guesses for one text.
class DraftSource {
 public:
  virtual ~DraftSource() = default;
  // Whether a guess costs no work of a device. While such guesses are not verified, they are compared with
  // the tokens that come anyway.
  virtual bool is_free() const = 0;
  virtual void push(std::span<const int32_t> tokens) { (void)tokens; }  // they were added to the text
  // Gives at most `most` tokens that may follow the text, of which all are known.
  virtual Status guess(std::span<const int32_t> text, uint32_t most, std::vector<int32_t>* out) = 0;
};

// "Prompt lookup": what followed the last tokens of the text where they stood in it before.
class TextDraft final : public DraftSource {
 public:
  bool is_free() const override { return true; }
  void push(std::span<const int32_t> tokens) override;
  // None if the last kGram tokens that were pushed did not stand in the text before.
  Status guess(std::span<const int32_t> text, uint32_t most, std::vector<int32_t>* out) override;

 private:
  static constexpr uint32_t kGram = 3;           // tokens that have to agree
  static constexpr uint32_t kPlaces = 1u << 14;  // of `ends_`
  size_t place_of(std::span<const int32_t> gram) const;

  std::vector<int32_t> text_;  // also what a full context has forgotten
  // By hash of a gram: the index behind it where it stood last. Grams with the same hash share a place, so
  // the text itself has to be compared. The gram at the end of the text is not noted yet.
  std::vector<uint32_t> ends_;
};

// What the layer of the file that drafts tokens has guessed when it got the rows of the last step (Steps).
class HeadDraft final : public DraftSource {
 public:
  bool is_free() const override { return false; }
  void take(std::vector<int32_t>&& guesses, size_t behind) {
    guesses_ = std::move(guesses);
    behind_ = behind;
  }
  Status guess(std::span<const int32_t> text, uint32_t most, std::vector<int32_t>* out) override;

 private:
  std::vector<int32_t> guesses_;
  size_t behind_ = 0;  // so many tokens
};

// What a caller's function guesses. It may write up to `most` tokens to `out` and gives their number.
using GuessTokens = std::function<size_t(std::span<const int32_t> text, int32_t* out, size_t most)>;
class CallerDraft final : public DraftSource {
 public:
  explicit CallerDraft(GuessTokens call) : call_(std::move(call)) {}
  bool is_free() const override { return false; }
  Status guess(std::span<const int32_t> text, uint32_t most, std::vector<int32_t>* out) override;

 private:
  GuessTokens call_;
};

// Where a text's guesses come from, and the most that are verified in one step.
struct DraftSettings {
  DraftKind kind = DraftKind::None;
  uint32_t depth = 0;                        // 1 to kMaxDraftTokens
  GuessTokens guess_tokens = {};             // of DraftKind::Caller, or it changes what others have guessed
  std::shared_ptr<Executor> executor = {};   // of DraftKind::Model: that of the second model
  std::shared_ptr<DraftSource> source = {};  // what several texts share, one after the other
};
Status check_draft(const DraftSettings& settings, bool has_head);  // of the model
Status open_draft(const DraftSettings& settings, std::shared_ptr<DraftSource>* out);
// Lets the caller's function change the guesses of a source that is not itself that function.
void change_guesses(const DraftSettings& settings, std::span<const int32_t> text,
                    std::vector<int32_t>* guesses);

// Decides how many guesses the device verifies.
//
// Those that are free are verified when some that came anyway were right, and no longer when a step's first
// one was wrong. Others are tried at the beginning, one alone, and then verified as long as enough of them
// are right: the more are, the more in a step. Else they are tried again after some tokens, and after four
// times as many each time that they are wrong.
class DraftDepth {
 public:
  explicit DraftDepth(uint32_t most, bool free = true)
      : most_(most), free_(free), depth_(free ? 0 : std::min(most, 1u)) {}
  uint32_t depth() const { return depth_; }
  void watched(bool right);                         // a free guess while the depth was 0
  void passed();                                    // a token came without guesses
  void verified(uint32_t guesses, uint32_t right);  // a step that verified guesses
  void stop() { most_ = depth_ = pause_ = 0; }      // for good

 private:
  static constexpr uint32_t kTrust = 2;    // right guesses in a row before the device verifies any
  static constexpr uint32_t kCareful = 3;  // free ones, unless all guesses of the last step were right
  // The share of guesses that cost work that was right, of those that were compared with a token: a mean in
  // which each new one has this weight. What it is at the beginning, and what is too little.
  static constexpr float kWeight = 0.15f, kHope = 0.75f, kWorth = 0.5f, kLittleMore = 0.55f;
  // From each of these shares on a step has one guess more than two, and from the last one on as many as may
  // be: where a further guess pays by the times of steps on an H100 (docs/experiments/drafts.md).
  static constexpr float kDeeper[] = {0.62f, 0.8f, 0.87f, 0.93f};
  static constexpr uint32_t kFirstPause = 8, kLongestPause = 512;  // tokens
  uint32_t depth_by_share() const;
  void pause();
  uint32_t most_;
  bool free_;
  uint32_t depth_, right_ = 0;
  float share_ = kHope;
  bool tries_ = true;  // a single guess, and none in vain
  uint32_t pause_ = 0, next_pause_ = kFirstPause;
};

}  // namespace greta
