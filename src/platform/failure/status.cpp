#include "platform/failure/status.h"

#include <cstring>

#include "platform/text/format_text.h"

namespace greta {

static thread_local char error_buffer[kErrorTextBytes];

Status fail(Code code, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  format_arguments(error_buffer, sizeof error_buffer, format, arguments);
  va_end(arguments);
  return {code};
}

Status within(Status status, const char* format, ...) {
  if (status.ok()) return status;
  char before[kErrorTextBytes];
  memcpy(before, error_buffer, sizeof before);
  va_list arguments;
  va_start(arguments, format);
  const int used = format_arguments(error_buffer, sizeof error_buffer, format, arguments);
  va_end(arguments);
  const size_t at = used < 0 ? 0 : used >= int(kErrorTextBytes) ? kErrorTextBytes - 1 : size_t(used);
  if (strncmp(before, error_buffer, at) == 0 && strncmp(before + at, ": ", 2) == 0) {  // it says so already
    memcpy(error_buffer, before, sizeof before);
    return status;
  }
  const size_t room = kErrorTextBytes - at;
  if (room > 3) {
    const size_t kept = strnlen(before, room - 3);
    memcpy(error_buffer + at, ": ", 2);
    memcpy(error_buffer + at + 2, before, kept);
    error_buffer[at + 2 + kept] = 0;
  }
  return status;
}

const char* error_text() { return error_buffer; }
void clear_error_text() { error_buffer[0] = 0; }

KeptErrorText::KeptErrorText() { memcpy(text_, error_buffer, sizeof text_); }
KeptErrorText::~KeptErrorText() { memcpy(error_buffer, text_, sizeof text_); }

}  // namespace greta
