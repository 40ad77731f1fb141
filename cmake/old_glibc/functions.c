/* Functions of glibc as version 2.28 has them, for a library or a program that is built on a newer system and
 * has to run on an older one (GretaOldGlibc.cmake). They are hidden, so that nobody else sees them.
 *
 * A newer glibc gives some functions a newer version, which older ones lack. Each of the first ones goes to
 * the older version, which every glibc has. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>

#define OLDER(name, version)                                                                  \
  __asm__(".symver older_" #name ", " #name "@" #version "\n.globl " #name "\n.hidden " #name \
          "\n.type " #name ", @function\n" #name ": jmp *older_" #name "@GOTPCREL(%rip)\n")

OLDER(__pthread_key_create, GLIBC_2.2.5);
OLDER(dladdr, GLIBC_2.2.5);
OLDER(dlclose, GLIBC_2.2.5);
OLDER(dlerror, GLIBC_2.2.5);
OLDER(dlopen, GLIBC_2.2.5);
OLDER(dlsym, GLIBC_2.2.5);
OLDER(exp, GLIBC_2.2.5);
OLDER(exp2, GLIBC_2.2.5);
OLDER(log, GLIBC_2.2.5);
OLDER(log2, GLIBC_2.2.5);
OLDER(pow, GLIBC_2.2.5);
OLDER(pthread_condattr_setclock, GLIBC_2.3.3);
OLDER(pthread_create, GLIBC_2.2.5);
OLDER(pthread_detach, GLIBC_2.2.5);
OLDER(pthread_getspecific, GLIBC_2.2.5);
OLDER(pthread_join, GLIBC_2.2.5);
OLDER(pthread_key_create, GLIBC_2.2.5);
OLDER(pthread_key_delete, GLIBC_2.2.5);
OLDER(pthread_once, GLIBC_2.2.5);
OLDER(pthread_rwlock_rdlock, GLIBC_2.2.5);
OLDER(pthread_rwlock_unlock, GLIBC_2.2.5);
OLDER(pthread_rwlock_wrlock, GLIBC_2.2.5);
OLDER(pthread_setname_np, GLIBC_2.12);
OLDER(pthread_setspecific, GLIBC_2.2.5);
OLDER(pthread_sigmask, GLIBC_2.2.5);

/* Until 2.33 these were in a static part of libc. */
enum { kStatVersion = 1 }; /* of x86-64 */
extern int __xstat(int version, const char* path, struct stat* found);
extern int __lxstat(int version, const char* path, struct stat* found);
extern int __fxstat(int version, int file, struct stat* found);
extern int __fxstat64(int version, int file, struct stat64* found);
extern int __fxstatat(int version, int folder, const char* path, struct stat* found, int flags);

#pragma GCC visibility push(hidden)

int stat(const char* path, struct stat* found) { return __xstat(kStatVersion, path, found); }
int lstat(const char* path, struct stat* found) { return __lxstat(kStatVersion, path, found); }
int fstat(int file, struct stat* found) { return __fxstat(kStatVersion, file, found); }
int fstat64(int file, struct stat64* found) { return __fxstat64(kStatVersion, file, found); }
int fstatat(int folder, const char* restrict path, struct stat* restrict found, int flags) {
  return __fxstatat(kStatVersion, folder, path, found, flags);
}

/* From 2.32 on. libstdc++ leaves atomic instructions out where it is true. */
char __libc_single_threaded = 0;

/* From 2.36 on, for std::random_device. */
uint32_t arc4random(void) {
  uint32_t number = 0;
  while (getrandom(&number, sizeof number, 0) != sizeof number) continue;
  return number;
}

/* From 2.30 on. The end of the wait is moved to the clock of a condition variable; who waits looks at its own
 * clock after that. */
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
