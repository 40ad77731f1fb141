// Turns what containers and callbacks throw into a status, where one failure must not end the work of others.
#pragma once
#include <new>

#include "platform/failure/callback.h"
#include "platform/failure/status.h"

namespace greta {

template <class Body>
Status guarded(Body&& body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return fail(Code::Memory, "out of host memory");
  } catch (const CallbackThrew& threw) {
    return fail(Code::Argument, "%s", threw.text);
  } catch (const std::exception& e) {
    return fail(Code::Device, "internal error: %s", e.what());
  }
}

}  // namespace greta
