// products_mfma: the arithmetic of CDNA (products_matrix.h).
#include "kernels/hip/roofline/products_matrix.h"

KERNEL(GROUP) void KERNEL_NAME(ProductsBlock p) { make_products(p); }
