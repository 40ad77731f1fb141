# HIP kernels for greta_kernel: <source>.hip to one code object for each gfx target, by plain clang,
# without ROCm. Each is a row of its own, chosen by the device's exact gcnArchName.
#
#   greta_kernel(norm row GROUP 256 CONSTANTS width)
# compiles norm_row.hip and writes for gfx942 (and likewise for the others)
#   {"norm_row", "hip", "gfx942", .., {offsetof(NormBlock, width)}, 1,
#    {.name = "norm_row", .code = {begin, end}, .group_size = {256, 1, 1}}}
# The entry point has the row's name and takes the block by value; CONSTANTS are read from the block.
#
# Without a clang for amdgcn there are no HIP rows. Targets that the clang does not know are left out.
include_guard(GLOBAL)

set(GRETA_HIP_TARGETS gfx90a gfx942 gfx1030 gfx1100 gfx1151 gfx1201
  CACHE STRING "gfx targets of the HIP kernels")
# These flags leave out HIP headers and the device library, fused multiply-adds that the source does not
# write, and a hash of the build path in the object (-fuse-cuid).
set(GRETA_HIP_FLAGS -x hip --offload-device-only --no-gpu-bundle-output -nogpuinc -nogpulib -O3 -std=c++20
  -ffp-contract=off -mcode-object-version=5 -fuse-cuid=none -Wall -Wextra
  -I "${PROJECT_SOURCE_DIR}" -I "${PROJECT_BINARY_DIR}/generated")

# Sets `out` to whether `clang` makes code objects for a target. That also needs lld beside it.
function(greta_clang_makes clang target out)
  string(MAKE_C_IDENTIFIER "GRETA_HIP_MAKES_${clang}_${target}" answer)
  if(NOT DEFINED ${answer})
    set(probe "${PROJECT_BINARY_DIR}/CMakeFiles/greta_target.hip")
    file(WRITE "${probe}" "extern \"C\" __attribute__((global)) void nothing() {}\n")
    execute_process(
      COMMAND "${clang}" ${GRETA_HIP_FLAGS} --offload-arch=${target} "${probe}" -o "${probe}.hsaco"
      RESULT_VARIABLE result OUTPUT_QUIET ERROR_QUIET)
    string(COMPARE EQUAL "${result}" 0 makes)
    set(${answer} ${makes} CACHE INTERNAL "")
  endif()
  set(${out} ${${answer}} PARENT_SCOPE)
endfunction()

# Sets GRETA_HIP_CLANG to the newest clang that makes any of the targets, and lists the targets that it makes.
function(greta_find_hip_clang)
  set(usable "")
  set(names "")
  foreach(version RANGE 30 19 -1)
    list(APPEND names clang-${version})
  endforeach()
  foreach(name ${names} amdclang clang)
    find_program(GRETA_HIP_CANDIDATE ${name} HINTS "$ENV{ROCM_PATH}/llvm/bin" /opt/rocm/llvm/bin NO_CACHE)
    if(GRETA_HIP_CLANG)
      set(GRETA_HIP_CANDIDATE "${GRETA_HIP_CLANG}")
    endif()
    if(GRETA_HIP_CANDIDATE)
      foreach(target ${GRETA_HIP_TARGETS})
        greta_clang_makes("${GRETA_HIP_CANDIDATE}" ${target} makes)
        if(makes)
          list(APPEND usable ${target})
        endif()
      endforeach()
      if(usable OR GRETA_HIP_CLANG)
        set(GRETA_HIP_CLANG "${GRETA_HIP_CANDIDATE}" CACHE FILEPATH "Compiler of the HIP kernels")
        break()
      endif()
      unset(GRETA_HIP_CANDIDATE)
    endif()
  endforeach()
  set(GRETA_HIP_USABLE_TARGETS ${usable} PARENT_SCOPE)
  set(unknown ${GRETA_HIP_TARGETS})
  list(REMOVE_ITEM unknown "" ${usable})
  if(NOT usable)
    message(STATUS
      "HIP kernels: left out, there is no clang (19 or newer, with lld) for ${GRETA_HIP_TARGETS}")
  elseif(unknown)
    message(STATUS "HIP kernels: ${GRETA_HIP_CLANG} does not know ${unknown}; these targets are left out")
  endif()
endfunction()

if(GRETA_HIP)
  greta_find_hip_clang()
endif()

macro(greta_hip_kernel)
  string(APPEND defines "#define BLOCK ${K_BLOCK}\n")
  if(K_THREADS)
    string(APPEND defines "#define THREADS ${K_THREADS}\n")
  endif()
  set(hip_weight "")
  if(weight)
    set(hip_weight "#include \"kernels/hip/glsl.h\"\nGLSL_BEGIN\n${weight}GLSL_END\n")
  endif()
  set(wrapper "${CMAKE_CURRENT_BINARY_DIR}/${row_name}.hip")
  file(CONFIGURE OUTPUT "${wrapper}" CONTENT
    "#define KERNEL_NAME ${row_name}\n${defines}${hip_weight}#include \"${source}.hip\"\n" @ONLY)
  foreach(target ${GRETA_HIP_USABLE_TARGETS})
    if(NOT K_TARGETS OR target IN_LIST K_TARGETS)
      set(object "${CMAKE_CURRENT_BINARY_DIR}/${row_name}.${target}.hsaco")
      add_custom_command(OUTPUT "${object}"
        COMMAND "${GRETA_HIP_CLANG}" ${GRETA_HIP_FLAGS} --offload-arch=${target}
          -MD -MF "${object}.d" -MT "${object}" "${wrapper}" -o "${object}"
        DEPENDS "${wrapper}" DEPFILE "${object}.d" VERBATIM
        COMMENT "Compiling HIP kernel ${row_name} for ${target}")
      greta_embed_kernel(kernel_hip_${row_name}_${target} "${object}" ${target})
      # Data about each code object for tests/mock_hip and the instruction gate.
      set_property(GLOBAL APPEND PROPERTY GRETA_HIP_BUILDS
        "${row_name}|${target}|${K_GROUP}|${wrapper}|${object}")
    endif()
  endforeach()
endmacro()
