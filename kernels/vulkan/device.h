// What every Vulkan kernel starts from. The build puts #version, GROUP, KERNEL_NAME and the decode
// header of the weight's type in front of the kernel's file.
//   constant 0      threads of a group: GROUP, or what the launch asks for
//   constants 1..   block fields that are fixed for a model, in the order of CONSTANTS in greta_kernel
#ifndef GRETA_VULKAN_DEVICE_H
#define GRETA_VULKAN_DEVICE_H
layout(local_size_x_id = 0) in;
#endif
