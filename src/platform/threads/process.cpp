#include "platform/threads/process.h"

#include <unistd.h>

namespace greta {

Process::Process() : id_(getpid()) {}

bool Process::elsewhere() const { return getpid() != id_; }

Status Process::check() const {
  if (!elsewhere()) return {};
  return fail(
      Code::Device,
      "this process was forked after the runtime was opened, and has none of its threads and devices: "
      "open a runtime of its own here");
}

}  // namespace greta
