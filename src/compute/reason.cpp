#include "compute/reason.h"

#include "platform/platform.h"

namespace greta {

bool Reason::no(const char* format, ...) {
  if (!asked_) return false;
  va_list arguments;
  va_start(arguments, format);
  format_arguments(text_, sizeof text_, format, arguments);
  va_end(arguments);
  return false;
}

}  // namespace greta
