/* A libhsa-runtime64 that reports a page fault when the fake HIP runtime beside it asks for one. As ROCr
 * does, it ends the process if nobody takes care of it. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

struct event { /* hsa_amd_event_t, for a memory fault */
  uint32_t type;
  uint64_t agent, address;
  uint32_t reasons;
};
static int (*taken_care_of)(const struct event*, void*);
static void* data;

int hsa_amd_register_system_event_handler(int (*handler)(const struct event*, void*), void* of_handler) {
  taken_care_of = handler, data = of_handler;
  return 0;
}

void fake_page_fault(void) {
  const struct event event = {.type = 0, .agent = 1, .address = 0xdead000, .reasons = 1};
  if (taken_care_of && taken_care_of(&event, data) == 0) return;
  fputs("Memory access fault by GPU node-1\n", stderr);
  abort();
}
