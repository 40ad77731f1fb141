// What every Vulkan kernel starts from. The build puts #version, GROUP, KERNEL_NAME and the decode
// header of the weight's type in front of the kernel's file.
//   constant 0      threads of a group: GROUP, or what the launch asks for
//   constant 1      lanes of a subgroup, 4 to 64: the backend sets it and pins the pipeline to it
//   constants 2..   block fields that are fixed for a model, in the order of CONSTANTS in greta_kernel
//   constants 100, 101, 102   M, N, K of the device's f16 x f16 -> f32 cooperative matrix, 0 without
//   constant 103    1 where launches may wait for each other (kernels/abi/chain.h), else 0
#ifndef GRETA_VULKAN_DEVICE_H
#define GRETA_VULKAN_DEVICE_H
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint kLanes = 32;
#endif
