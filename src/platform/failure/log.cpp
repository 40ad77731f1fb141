#include "platform/failure/log.h"

#include "platform/failure/callback.h"
#include "platform/text/format_text.h"

namespace greta {

void Log::operator()(LogLevel level, const char* format, ...) const {
  if (!write) return;
  char text[1024];
  va_list arguments;
  va_start(arguments, format);
  format_arguments(text, sizeof text, format, arguments);
  va_end(arguments);
  call_back("log", [&] { write(user, uint32_t(level), text); });
}

}  // namespace greta
