#include "platform/text/size_text.h"

#include "platform/text/format_text.h"

namespace greta {

SizeText::SizeText(uint64_t bytes) {
  constexpr uint64_t kMiB = 1 << 20, kGiB = 1 << 30;
  if (bytes < kMiB) {
    format_text(text, sizeof text, "%llu bytes", (unsigned long long)bytes);
    return;
  }
  const bool many = bytes >= kGiB;
  format_text(text, sizeof text, "%.2f %s", double(bytes) / double(many ? kGiB : kMiB), many ? "GiB" : "MiB");
}

}  // namespace greta
