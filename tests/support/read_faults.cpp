#include "support/read_faults.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

greta::test::ReadFaults greta::test::read_faults;

// Takes the place of the C library's pread.
extern "C" ssize_t pread(int file, void* to, size_t bytes, off_t offset) {
  greta::test::ReadFaults& faults = greta::test::read_faults;
  uint32_t left = faults.interrupts;
  while (left && !faults.interrupts.compare_exchange_weak(left, left - 1)) {
  }
  if (left) return errno = EINTR, -1;
  bytes = std::min<uint64_t>(bytes, faults.most);
  const uint64_t at = faults.error_at, first = uint64_t(offset);
  if (faults.error && first <= at && at < first + bytes) return errno = faults.error, -1;
  return syscall(SYS_pread64, file, to, bytes, offset);
}
