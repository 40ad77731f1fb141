#include "platform/text/format_text.h"

#include <locale.h>

#include <cstdio>
#include <cstring>

namespace greta {

static locale_t plain_locale() {
  static const locale_t plain = newlocale(LC_ALL_MASK, "C", locale_t());
  return plain;
}

int format_arguments(char* out, size_t bytes, const char* format, va_list arguments) {
  // Only this thread's locale is changed, and it is restored.
  const locale_t before = uselocale(plain_locale());
  const int length = vsnprintf(out, bytes, format, arguments);
  uselocale(before);
  return length;
}

int format_text(char* out, size_t bytes, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int length = format_arguments(out, bytes, format, arguments);
  va_end(arguments);
  return length;
}

const char* errno_text(int error) { return strerror_l(error, plain_locale()); }

}  // namespace greta
