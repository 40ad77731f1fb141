// Unpacks any bytes as packed machine code.
#include "platform/files/packed.h"

using namespace greta;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<uint8_t> code;
  if (unpack({data, size}, &code).ok() && (code.empty() || code.size() > packed::kMaxBytes)) __builtin_trap();
  return 0;
}
