// A number of bytes as text for people.
#pragma once
#include <cstdint>

namespace greta {

// "12345 bytes", "7.94 MiB", "13.20 GiB".
struct SizeText {
  explicit SizeText(uint64_t bytes);
  char text[32];
};

}  // namespace greta
