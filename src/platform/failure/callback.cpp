#include "platform/failure/callback.h"

#include "platform/text/format_text.h"

namespace greta {

CallbackThrew::CallbackThrew(const char* callback, const char* what) {
  format_text(text, sizeof text, "the callback %s threw an exception%s%s", callback, what ? ": " : "",
              what ? what : "");
}

}  // namespace greta
