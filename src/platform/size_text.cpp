#include "platform/size_text.h"

#include <cstdio>

namespace greta {

SizeText::SizeText(uint64_t bytes) {
  constexpr uint64_t kMiB = 1 << 20, kGiB = 1 << 30;
  if (bytes < kMiB) {
    snprintf(text, sizeof text, "%llu bytes", (unsigned long long)bytes);
    return;
  }
  const bool many = bytes >= kGiB;
  snprintf(text, sizeof text, "%.2f %s", double(bytes) / double(many ? kGiB : kMiB), many ? "GiB" : "MiB");
}

}  // namespace greta
