// Compiled for a GPU: every field of every argument block lies where C++ has it.
#include "abi_headers.inc"

#define BLOCK(block, bytes) static_assert(sizeof(block) == bytes, #block);
#define FIELD(block, field, offset) \
  static_assert(__builtin_offsetof(block, field) == offset, #block "." #field);
#include "abi_layout.inc"
