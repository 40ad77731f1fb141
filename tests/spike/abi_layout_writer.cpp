// Writes the layout of the argument blocks, as this compiler packs them, for abi_layout.hip.
#include <cstddef>
#include <cstdio>

#include "abi_headers.inc"

int main(int argc, char** argv) {
  FILE* out = argc == 2 ? std::fopen(argv[1], "w") : nullptr;
  if (!out) return 1;
#define BLOCK(block) std::fprintf(out, "BLOCK(%s, %zu)\n", #block, sizeof(block));
#define FIELD(block, field) std::fprintf(out, "FIELD(%s, %s, %zu)\n", #block, #field, offsetof(block, field));
#include "abi_fields.inc"
  return std::fclose(out) ? 1 : 0;
}
