// A failure is a code and a sentence.
//
// A Status is one word, so returning it costs nothing. The sentence lies in a fixed buffer of the thread that
// failed, so a failure allocates nothing, and stays there until the thread's next failure.
#pragma once
#include <cstdint>

namespace greta {

enum class Code : uint32_t {
  Ok = 0,
  Argument = 1,     // the caller broke a rule
  File = 2,         // missing, truncated or malformed file
  Unsupported = 3,  // valid, but this build or device cannot do it
  Memory = 4,       // host or device memory ran out; nothing was changed
  Device = 5,       // the driver failed; the device must be reopened
  Full = 6,         // the context window or the page pool has no room left
  Cancelled = 7,    // a callback or another thread asked to stop
};

struct [[nodiscard]] Status {
  Code code = Code::Ok;
  bool ok() const { return code == Code::Ok; }
};

constexpr uint32_t kErrorTextBytes = 1024;

// Makes a failure with its sentence, which says what is wrong, where, and what was expected, with the
// numbers. Text that does not fit is cut.
Status fail(Code code, const char* format, ...) __attribute__((format(printf, 2, 3)));

// Puts "WHERE: " in front of the sentence of a failure. An Ok status passes unchanged.
Status within(Status status, const char* format, ...) __attribute__((format(printf, 2, 3)));

const char* error_text();  // the sentence of this thread's last failure, "" if there was none
void clear_error_text();

// While one lives, what is done to clean up behind a failure may fail too: the thread's sentence comes back.
class KeptErrorText {
 public:
  KeptErrorText();
  ~KeptErrorText();

 private:
  char text_[kErrorTextBytes];
};

// The only control-flow macro: returns from the caller on a failure.
#define GRETA_TRY(expression)                           \
  do {                                                  \
    const ::greta::Status greta_status_ = (expression); \
    if (!greta_status_.ok()) return greta_status_;      \
  } while (0)

}  // namespace greta
