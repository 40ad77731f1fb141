#include "platform/format_text.h"

#include <locale.h>

#include <cstdio>

namespace greta {

int format_arguments(char* out, size_t bytes, const char* format, va_list arguments) {
  // The locale of this thread alone is changed, and put back.
  static const locale_t plain = newlocale(LC_ALL_MASK, "C", locale_t());
  const locale_t before = uselocale(plain);
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

}  // namespace greta
