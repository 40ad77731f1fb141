#include "platform/callback.h"

#include <cstdio>

namespace greta {

CallbackThrew::CallbackThrew(const char* callback, const char* what) {
  snprintf(text, sizeof text, "the callback %s threw an exception%s%s", callback, what ? ": " : "", what ? what : "");
}

}  // namespace greta
