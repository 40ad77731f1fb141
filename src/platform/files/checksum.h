// A checksum over bytes that come in pieces. It finds damaged and mixed-up data, but does not protect against
// an attacker. A change within eight bytes always changes it.
#pragma once
#include <cstdint>

namespace greta {

class Checksum {
 public:
  void add(const void* data, uint64_t bytes);
  uint64_t value() const;  // of all bytes so far; it does not depend on how they were cut into pieces

 private:
  static constexpr uint32_t kLanes = 4, kBlock = kLanes * sizeof(uint64_t);
  void mix(const uint8_t* blocks, uint64_t count);

  uint64_t lanes_[kLanes] = {0x9e3779b97f4a7c15, 0xbf58476d1ce4e5b9, 0x94d049bb133111eb, 0xd6e8feb86659fd93};
  uint64_t bytes_ = 0;
  uint8_t held_[kBlock] = {};  // the bytes of a block that is not complete yet
};

inline uint64_t checksum(const void* data, uint64_t bytes) {
  Checksum sum;
  sum.add(data, bytes);
  return sum.value();
}

}  // namespace greta
