// SHA-256 (FIPS 180-4), by which hubs name the files that they offer.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace greta::cli {

class Sha256 {
 public:
  void add(const void* data, size_t bytes);
  std::string finish();  // 64 hexadecimal digits; nothing may be added afterwards

 private:
  void take_block(const uint8_t* block);

  std::array<uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  uint8_t pending_[64];  // the beginning of a block
  uint64_t bytes_ = 0;   // added so far; the last bytes_ % 64 of them are pending
};

}  // namespace greta::cli
