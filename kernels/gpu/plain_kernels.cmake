# The kernels that Vulkan and HIP have by the same lines, each with sources of its own.
# kernels/<backend>/CMakeLists.txt includes this before its own lines.

# Weights, in GGUF order and in planes: every op reads every type, and these are the definition of right.
foreach(layout gguf planes)
  set(weights QUANTS all LAYOUT ${layout})
  greta_kernel(embed plain ${weights} GROUP 64 COVERS embed_rounding)
  greta_kernel(matmul plain ${weights} TILE 4 GROUP 64)
  greta_kernel(matmul_expert plain ${weights} TILE 16 GROUP 64)
endforeach()
greta_kernel(convert planes QUANTS all LAYOUT planes GROUP 64)

# Ops without a quantised weight. TILE is the values, pairs or blocks that a group's threads take: one each,
# of gate and cast four. Launches of a few tokens take part in Vulkan's chain (docs/vulkan.md).
greta_kernel(convert f16 FORM f16 GROUP 256)
greta_kernel(convert q8x16 FORM q8x16 GROUP 64 TILE 1024 CHAIN behind)
greta_kernel(norm plain GROUP 256 CHAIN behind COVERS norm_adding)
greta_kernel(layer_norm plain GROUP 256 CHAIN behind)
greta_kernel(rope plain GROUP 256 TILE 256 CHAIN behind)
greta_kernel(rope heads GROUP 128 TILE 4 RANK 1 BLOCK RopeHeadsBlock CHAIN behind CONSTANTS head_width
  COVERS heads)
greta_kernel(kv_write plain GROUP 256 TILE 256 CHAIN behind)
greta_kernel(attention plain GROUP 256)
greta_kernel(gate plain GROUP 256 TILE 1024 CHAIN behind COVERS gate_rounding)
greta_kernel(add plain GROUP 256 TILE 256 CHAIN behind)
greta_kernel(multiply plain GROUP 256 TILE 256 CHAIN behind)
greta_kernel(route plain GROUP 256 CHAIN behind)
greta_kernel(combine plain GROUP 256 TILE 256 CHAIN behind)
greta_kernel(softcap plain GROUP 256 TILE 256 CHAIN behind)
greta_kernel(cast plain GROUP 256 TILE 1024)
greta_kernel(softmax plain GROUP 256)
greta_kernel(scale plain GROUP 256 TILE 256 CHAIN behind)
greta_kernel(conv1d plain GROUP 64 TILE 64 CHAIN behind)
greta_kernel(scan plain GROUP 64 TILE 64)
greta_kernel(sample plain GROUP 256 TILE 4096)
greta_kernel(sum plain GROUP 256)
greta_kernel(products plain GROUP 256 TILE 8x4)
greta_kernel(gemm plain GROUP 256 TILE 16x16)

# The test kernel that goes through every backend by the same line, and one of the tests of devices.
greta_kernel(scaled_add spike TEST GROUP 64 CONSTANTS page_values)
greta_kernel(index test TEST GROUP 64)
