// Packs code as src/platform/files/packed.h says. It runs while the project is built.
#pragma once
#include "platform/files/packed.h"

namespace greta::packed {

using Bytes = std::vector<uint8_t>;

Bytes pack(const Bytes& code);  // 1 to kMaxBytes bytes

}  // namespace greta::packed
