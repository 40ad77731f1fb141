#include "platform/machine/system_text.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace greta {

bool SystemText::read(const char* path) {
  data[0] = 0;
  const int descriptor = ::open(path, O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return false;
  size_t used = 0;
  while (used < sizeof data - 1) {
    const ssize_t got = ::read(descriptor, data + used, sizeof data - 1 - used);
    if (got <= 0) break;
    used += size_t(got);
  }
  ::close(descriptor);
  data[used] = 0;
  return used > 0;
}

const char* SystemText::after(const char* key) const {
  const size_t length = strlen(key);
  for (const char* line = data; line; line = strchr(line, '\n')) {
    if (*line == '\n') ++line;
    if (!strncmp(line, key, length)) return line + length;
  }
  return nullptr;
}

uint64_t SystemText::number_after(const char* key) const {
  const char* digits = after(key);
  if (digits) digits += strspn(digits, " \t");
  return digits && *digits >= '0' && *digits <= '9' ? strtoull(digits, nullptr, 10) : kNone;
}

std::string SystemText::line_after(const char* key) const {
  const char* text = after(key);
  return text ? std::string(text, strcspn(text, "\n")) : "";
}

}  // namespace greta
