// greta_pack IN OUT: packs a file, and unpacks the result to see that it is the same.
#include <cstdio>
#include <fstream>
#include <iterator>

#include "pack.h"

int main(int count, char** words) {
  using greta::packed::Bytes;
  if (count != 3) return fprintf(stderr, "usage: greta_pack IN OUT\n"), 2;
  std::ifstream in(words[1], std::ios::binary);
  const Bytes code{std::istreambuf_iterator<char>(in), {}};
  if (code.empty() || code.size() > greta::packed::kMaxBytes)
    return fprintf(stderr, "greta_pack: %s has %zu bytes\n", words[1], code.size()), 1;
  const Bytes block = greta::packed::pack(code);
  Bytes again;
  if (!greta::unpack(block, &again).ok() || again != code)
    return fprintf(stderr, "greta_pack: %s is another after unpacking\n", words[1]), 1;
  std::ofstream out(words[2], std::ios::binary);
  out.write(reinterpret_cast<const char*>(block.data()), std::streamsize(block.size()));
  if (!out.flush()) return fprintf(stderr, "greta_pack: cannot write %s\n", words[2]), 1;
}
