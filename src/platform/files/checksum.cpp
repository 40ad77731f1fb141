// Four sums run side by side, so that none waits for another's multiplication. Every step is reversible, so
// inputs that differ in one word never give the same sum.
#include "platform/files/checksum.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace greta {

constexpr uint64_t kOdd = 0xff51afd7ed558ccd;

// The shift brings high bits down first, because a product spreads bits upwards only.
static uint64_t step(uint64_t sum, uint64_t word) {
  const uint64_t both = sum ^ word;
  return std::rotl((both ^ both >> 29) * kOdd, 31);
}

void Checksum::mix(const uint8_t* blocks, uint64_t count) {
  uint64_t a = lanes_[0], b = lanes_[1], c = lanes_[2], d = lanes_[3];  // kept in registers
  uint64_t words[kLanes];
  for (; count; --count, blocks += kBlock) {
    memcpy(words, blocks, kBlock);
    a = step(a, words[0]), b = step(b, words[1]), c = step(c, words[2]), d = step(d, words[3]);
  }
  lanes_[0] = a, lanes_[1] = b, lanes_[2] = c, lanes_[3] = d;
}

void Checksum::add(const void* data, uint64_t bytes) {
  if (bytes == 0) return;  // `data` may be null
  const auto* at = static_cast<const uint8_t*>(data);
  const uint64_t held = bytes_ % kBlock;
  bytes_ += bytes;
  if (held) {
    const uint64_t taken = std::min(bytes, kBlock - held);
    memcpy(held_ + held, at, taken);
    if (held + taken < kBlock) return;
    mix(held_, 1);
    at += taken, bytes -= taken;
  }
  mix(at, bytes / kBlock);
  if (const uint64_t rest = bytes % kBlock) memcpy(held_, at + (bytes - rest), rest);
}

uint64_t Checksum::value() const {
  Checksum last = *this;
  if (const uint64_t held = bytes_ % kBlock) {
    memset(last.held_ + held, 0, kBlock - held);
    last.mix(last.held_, 1);
  }
  uint64_t sum = bytes_;
  for (const uint64_t lane : last.lanes_) sum = step(sum, lane);
  return sum ^ sum >> 32;
}

}  // namespace greta
