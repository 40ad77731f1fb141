// A CPU worker's private memory, the counterpart of a workgroup's LDS. Its size is the device's
// shared_bytes; a kernel's check refuses shapes that would need more.
#pragma once
#include <stdint.h>

struct Scratch {
  uint8_t* data;  // 64-byte aligned
  uint64_t bytes;
};
