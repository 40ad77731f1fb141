// products_wmma: the arithmetic of RDNA3 and RDNA4 (products_matrix.h).
#include "kernels/hip/roofline/products_matrix.h"

KERNEL(GROUP) void KERNEL_NAME(ProductsBlock p) { make_products(p); }
