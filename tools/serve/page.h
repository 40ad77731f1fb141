// The files of the page at "/", which are in the program.
#pragma once
#include <cstddef>

namespace greta::serve {

struct PageFile {
  const char* name;
  const unsigned char* bytes;
  size_t size;
};
extern const PageFile kPageFiles[];  // The last has no name.

}  // namespace greta::serve
