/* What glibc 2.28 lacks of that which code compiled with a newer one's headers calls. Linked into the library
 * and the program of a wheel, and seen by them alone; it works with every newer glibc, too
 * (GretaOldGlibc.cmake). */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>

extern int __xstat(int version, const char* path, struct stat* found);
extern int __lxstat(int version, const char* path, struct stat* found);
extern int __fxstat(int version, int file, struct stat* found);

#pragma GCC visibility push(hidden)

/* libstdc++ leaves atomic instructions out where this is true. */
char __libc_single_threaded = 0;

/* Until 2.33 these were functions of a static part of libc. */
enum { kStatVersion = 1 }; /* of x86-64 */
int stat(const char* path, struct stat* found) { return __xstat(kStatVersion, path, found); }
int lstat(const char* path, struct stat* found) { return __lxstat(kStatVersion, path, found); }
int fstat(int file, struct stat* found) { return __fxstat(kStatVersion, file, found); }

/* From 2.36 on. libstdc++ takes random numbers from here; the kernel gives so few of them at once. */
uint32_t arc4random(void) {
  uint32_t number = 0;
  while (getrandom(&number, sizeof number, 0) != sizeof number) continue;
  return number;
}

/* From 2.30 on. The end of the wait is moved to the clock of a condition variable; who waits looks at the
 * clock again. */
int pthread_cond_clockwait(pthread_cond_t* changed, pthread_mutex_t* mutex, clockid_t clock,
                           const struct timespec* end) {
  enum { kSecond = 1000000000 };
  struct timespec now, real;
  if (clock_gettime(clock, &now) != 0 || clock_gettime(CLOCK_REALTIME, &real) != 0) return EINVAL;
  int64_t ns = (int64_t)real.tv_nsec + end->tv_nsec - now.tv_nsec;
  real.tv_sec += end->tv_sec - now.tv_sec;
  for (; ns < 0; ns += kSecond) --real.tv_sec;
  for (; ns >= kSecond; ns -= kSecond) ++real.tv_sec;
  real.tv_nsec = ns;
  return pthread_cond_timedwait(changed, mutex, &real);
}

#pragma GCC visibility pop
