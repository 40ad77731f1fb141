// What every Vulkan kernel starts from. The build puts #version, GROUP, KERNEL_NAME and, where there is a
// weight, the decode header of its type in front of the kernel's file. It sets the specialization constants:
//   0              threads of a group: GROUP, or what the launch asks for
//   1              lanes of a subgroup, 4 to 64; the backend pins the pipeline to that size
//   2 ..           fields of the argument block that are fixed for a model, in the order of CONSTANTS in
//                  greta_kernel
//   100, 101, 102  M, N and K of the device's cooperative matrix f16 x f16 -> f32; 0 where there is none
//   103            1 where launches may wait for each other (kernels/abi/chain.h), else 0
#ifndef GRETA_VULKAN_DEVICE_H
#define GRETA_VULKAN_DEVICE_H
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint kLanes = 32;
#define length_of(array) array.length()
#endif
