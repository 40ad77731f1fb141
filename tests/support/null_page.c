// A library to be preloaded, which maps zeros at address 0. Mesa 26's lavapipe reads an address that is the
// same for all lanes even if no lane is active, for instance behind a test that the address is not null.
// Mapping needs root; without it the program ends.
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { kBytes = 1 << 20 };

__attribute__((constructor)) static void map_null_page(void) {
  if (mmap(NULL, kBytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED) return;
  perror("nothing can be mapped at address 0");
  exit(1);
}
