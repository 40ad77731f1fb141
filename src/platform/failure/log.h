// Messages for the person who runs the program. The library never prints. It hands each message to the
// callback that the runtime was opened with.
#pragma once
#include <cstdint>

namespace greta {

enum class LogLevel : uint32_t { Debug = 0, Info = 1, Warning = 2, Error = 3 };

struct Log {
  void (*write)(void* user, uint32_t level, const char* text) = nullptr;
  void* user = nullptr;
  void operator()(LogLevel level, const char* format, ...) const __attribute__((format(printf, 3, 4)));
};

}  // namespace greta
