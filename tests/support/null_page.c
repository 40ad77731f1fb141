// To be preloaded: zeros from address 0 on. Mesa 26's lavapipe reads an address that is the same for all
// lanes also where none of them is active, so behind a test that it is not null. Needs root, or ends the
// program.
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { kBytes = 1 << 20 };

__attribute__((constructor)) static void map_null_page(void) {
  if (mmap(NULL, kBytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED) return;
  perror("nothing can be mapped at address 0");
  exit(1);
}
