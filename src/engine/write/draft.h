// Guesses the next tokens of a text from what followed the same tokens earlier in it: drafts for speculative
// decoding by "prompt lookup". A guess needs no model, and the device verifies several in one step.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace greta {

constexpr uint32_t kMaxDraftTokens = 7;  // a step verifies them and makes one more token

class Draft {
 public:
  // Appends tokens to the text.
  void push(std::span<const int32_t> tokens);

  // Gives at most `most` tokens that may follow the text; none if its last kGram tokens did not stand in it
  // before. They are valid until the next push.
  std::span<const int32_t> guess(uint32_t most) const;

 private:
  static constexpr uint32_t kGram = 3;           // tokens that have to agree
  static constexpr uint32_t kPlaces = 1u << 14;  // of `ends_`
  size_t place_of(std::span<const int32_t> gram) const;

  std::vector<int32_t> text_;
  // By hash of a gram: the index behind it where it stood last. Grams with the same hash share a place, so
  // the text itself has to be compared. The gram at the end of the text is not noted yet.
  std::vector<uint32_t> ends_;
};

// Decides how many guesses the device verifies. While the depth is 0 guesses are compared with the tokens
// that come anyway, which costs nothing; a text that repeats itself is noticed by that.
class DraftDepth {
 public:
  explicit DraftDepth(uint32_t most) : most_(most) {}
  uint32_t depth() const { return depth_; }
  void watched(bool right);                         // a guess while the depth was 0
  void verified(uint32_t guesses, uint32_t right);  // a step that verified guesses

 private:
  static constexpr uint32_t kTrust = 2;    // right guesses in a row before the device verifies any
  static constexpr uint32_t kCareful = 3;  // the depth unless all guesses of the last step were right
  uint32_t most_, depth_ = 0, right_ = 0;
};

}  // namespace greta
