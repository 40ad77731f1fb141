// Whether a GPU multiplies matrices right.
#pragma once
#include "tune/refused_kernels.h"

namespace greta {

// Kernels for one target are chosen by its name, and so are the matrix instructions that they are taken to
// have. Of a Vulkan driver it is believed that it has cooperative matrices, and some multiply wrong.
// Multiplies with one of these kernels and compares the result, which is exact. Where it is another, all
// kernels with matrix instructions are added to `refused`, and *right is false: error_text() says what was
// wrong. Devices without such kernels are right, and nothing runs on them.
Status check_matrices(Device& device, RefusedKernels* refused, bool* right);

}  // namespace greta
