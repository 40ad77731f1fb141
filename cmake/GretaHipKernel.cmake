# HIP kernels for greta_kernel: <source>.hip to code objects by plain clang and lld, without ROCm.
#
#   greta_kernel(norm row GROUP 256 CONSTANTS width)
# compiles norm_row.hip and writes for each target a row like
#   {"norm_row", "hip", "gfx11-generic", .., {offsetof(NormBlock, width)}, 1,
#    {.name = "norm_row", .code = {begin, end}, .group_size = {256, 1, 1}}}
# The entry point has the row's name and takes the block by value. CONSTANTS are read from the block; those
# that lie behind its first 128 bytes are passed behind it.
#
# All kernels of one source for one target, of all types and lines, are one code object, a *unit*, and so are
# those of sources that share a UNIT. Each kernel is compiled to bitcode by itself, all in one process, and
# lld makes the unit of them.
#
# A target is a family (gfx11-generic: code object 6, for HIP 6.4 and newer) or exact (gfx1100: code object
# 5, for any HIP 6). For a family that the clang does not know, its exact targets are built. Without a clang
# for amdgcn there are no HIP rows.
include_guard(GLOBAL)
include(GretaHipStages)

set(GRETA_HIP_TARGETS gfx90a gfx950 gfx1250 gfx9-4-generic gfx10-3-generic gfx11-generic gfx12-generic
  CACHE STRING "gfx targets of the HIP kernels: families, or exact ones for HIP 6.0 to 6.3")
# These flags leave out HIP headers and the device library, fused multiply-adds that the source does not
# write, and a hash of the build path in the object (-fuse-cuid). Pairs of values in one instruction cost more
# moves than they save (-fno-slp-vectorize). The scan limit keeps fields of the argument block in registers in
# long loops.
set(GRETA_HIP_FLAGS -x hip --offload-device-only --no-gpu-bundle-output -nogpuinc -nogpulib -O3 -std=c++20
  -ffp-contract=off -fno-slp-vectorize -mllvm -memdep-block-scan-limit=2000 -fuse-cuid=none -Wall -Wextra
  -I "${PROJECT_SOURCE_DIR}" -I "${PROJECT_BINARY_DIR}/generated")

# Sets GRETA_HIP_FAMILY_<family> to the exact targets of each family, and GRETA_HIP_FAMILY_OF_<target> to the
# family of each of these.
set(family_table "${PROJECT_SOURCE_DIR}/src/runtime/gfx_families.def")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${family_table}")
file(STRINGS "${family_table}" families REGEX "^GFX_FAMILY\\(")
foreach(family ${families})
  string(REGEX MATCH "\\(([a-z0-9-]+), ([a-z0-9 ]+)\\)" _ "${family}")
  string(REPLACE " " ";" GRETA_HIP_FAMILY_${CMAKE_MATCH_1} "${CMAKE_MATCH_2}")
  foreach(target ${GRETA_HIP_FAMILY_${CMAKE_MATCH_1}})
    set(GRETA_HIP_FAMILY_OF_${target} ${CMAKE_MATCH_1})
  endforeach()
endforeach()

# Gives the flags for a target. clang 19 warns of code object 6 if its driver is asked for it.
function(greta_hip_target_flags target out)
  set(version 5)
  if(target MATCHES "-generic$")
    set(version 6)
  endif()
  set(${out} --offload-arch=${target} -Xclang -mcode-object-version=${version} PARENT_SCOPE)
endfunction()

# Sets `out` to whether `clang` makes code objects for a target. That also needs lld beside it.
function(greta_clang_makes clang target out)
  string(MAKE_C_IDENTIFIER "GRETA_HIP_MAKES_${clang}_${target}" answer)
  if(NOT DEFINED ${answer})
    set(probe "${PROJECT_BINARY_DIR}/CMakeFiles/greta_target.hip")
    file(WRITE "${probe}" "extern \"C\" __attribute__((global)) void nothing() {}\n")
    greta_hip_target_flags(${target} flags)
    execute_process(
      COMMAND "${clang}" ${GRETA_HIP_FLAGS} ${flags} "${probe}" -o "${probe}.hsaco"
      RESULT_VARIABLE result OUTPUT_QUIET ERROR_QUIET)
    string(COMPARE EQUAL "${result}" 0 makes)
    set(${answer} ${makes} CACHE INTERNAL "")
  endif()
  set(${out} ${${answer}} PARENT_SCOPE)
endfunction()

# Sets `out` to those of `targets` that `clang` makes, with the exact targets of a family in place of one
# that it does not make. `left_out` says which these are.
function(greta_hip_usable clang targets out left_out)
  set(usable "")
  set(missing "")
  foreach(target ${targets})
    greta_clang_makes("${clang}" ${target} makes)
    set(instead "")
    if(makes)
      list(APPEND usable ${target})
    else()
      greta_hip_usable("${clang}" "${GRETA_HIP_FAMILY_${target}}" instead _)
      list(APPEND usable ${instead})
      list(JOIN instead " " instead)
      if(instead)
        list(APPEND missing "${target} (built instead: ${instead})")
      else()
        list(APPEND missing "${target} (left out)")
      endif()
    endif()
  endforeach()
  list(REMOVE_DUPLICATES usable)
  list(JOIN missing ", " missing)
  set(${out} ${usable} PARENT_SCOPE)
  set(${left_out} "${missing}" PARENT_SCOPE)
endfunction()

# Sets GRETA_HIP_CLANG to the newest clang that makes any of the targets, GRETA_HIP_LLD to its lld, and
# GRETA_HIP_USABLE_TARGETS to the targets that are built. The exact ones come first: of equal rows of the
# table the first is chosen.
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
      greta_hip_usable("${GRETA_HIP_CANDIDATE}" "${GRETA_HIP_TARGETS}" usable left_out)
      if(usable OR GRETA_HIP_CLANG)
        set(GRETA_HIP_CLANG "${GRETA_HIP_CANDIDATE}" CACHE FILEPATH "Compiler of the HIP kernels")
        break()
      endif()
      unset(GRETA_HIP_CANDIDATE)
    endif()
  endforeach()
  if(NOT usable)
    list(JOIN GRETA_HIP_TARGETS " " wanted)
    message(STATUS "HIP kernels: left out, there is no clang (19 or newer, with lld) for ${wanted}")
    return()
  elseif(left_out)
    message(STATUS "HIP kernels: ${GRETA_HIP_CLANG} does not know ${left_out}")
  endif()
  set(families ${usable})
  list(FILTER families INCLUDE REGEX "-generic$")
  list(FILTER usable EXCLUDE REGEX "-generic$")
  set(GRETA_HIP_USABLE_TARGETS ${usable} ${families} PARENT_SCOPE)
  execute_process(COMMAND "${GRETA_HIP_CLANG}" -print-prog-name=ld.lld OUTPUT_VARIABLE lld
    OUTPUT_STRIP_TRAILING_WHITESPACE)
  set(GRETA_HIP_LLD "${lld}" PARENT_SCOPE)
endfunction()

if(GRETA_HIP)
  greta_find_hip_clang()
else()
  message(STATUS "HIP kernels: left out, GRETA_HIP is OFF")
endif()

# Targets that have an instruction which their family lacks. Where the family is built too, only kernels whose
# lines name such a target are built for it, and its devices take all others from the family.
set(GRETA_HIP_BESIDE_FAMILY gfx950)

# Clocks of a product of 16 x 16 x 16 by the target's matrix instructions, where they are not 16. LLVM's
# models have 8 passes of 4 clocks on an MI200 and 4 on an MI300; on an MI350 an instruction of 4 passes has
# two products. The peaks of float16 that AMD states say the same.
set(GRETA_PRODUCT_CLOCKS_gfx90a 32)
set(GRETA_PRODUCT_CLOCKS_gfx950 8)

# Sets `out` to whether greta_kernel's line is for a target: TARGETS names it, its family, or nothing.
function(greta_hip_wants target out)
  set(wants TRUE)
  set(family "${GRETA_HIP_FAMILY_OF_${target}}")
  if(NOT target IN_LIST K_TARGETS)
    if(K_TARGETS AND NOT family IN_LIST K_TARGETS)
      set(wants FALSE)
    elseif(target IN_LIST GRETA_HIP_BESIDE_FAMILY AND family IN_LIST GRETA_HIP_USABLE_TARGETS)
      set(wants FALSE)
    endif()
  endif()
  set(${out} ${wants} PARENT_SCOPE)
endfunction()

# Sets `out` to the command that compiles for a target, without its inputs. It is what clang's driver would
# call: that takes one input, and to begin takes as long as a small kernel does.
function(greta_hip_compile_command target out)
  get_property(command GLOBAL PROPERTY GRETA_HIP_COMPILE_${target})
  if(NOT command)
    greta_hip_target_flags(${target} flags)
    execute_process(
      COMMAND "${GRETA_HIP_CLANG}" ${GRETA_HIP_FLAGS} ${flags} -emit-llvm -c - -o any.bc -\#\#\#
      WORKING_DIRECTORY "${PROJECT_BINARY_DIR}"  # it is in the command, whoever runs CMake
      ERROR_VARIABLE printed OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
    string(REGEX MATCH "[^\n]*\"-cc1\"[^\n]*" command "${printed}")
    if(NOT command)
      message(FATAL_ERROR "${GRETA_HIP_CLANG} -### does not print how it compiles for ${target}:\n${printed}")
    endif()
    string(REGEX REPLACE "\"(-main-file-name|-o)\" \"[^\"]*\"|\"-\"" "" command "${command}")
    separate_arguments(command UNIX_COMMAND "${command}")
    set_property(GLOBAL PROPERTY GRETA_HIP_COMPILE_${target} "${command}")
  endif()
  set(${out} "${command}" PARENT_SCOPE)
endfunction()

# Adds a kernel to its unit, once for all lines with this source and type. Bitcode is written beside its
# source, so each target has a folder of sources.
function(greta_add_to_hip_unit wrapper unit target)
  set(part "${CMAKE_CURRENT_BINARY_DIR}/${target}/${row_name}")
  get_property(parts DIRECTORY PROPERTY GRETA_HIP_UNIT_${unit}_${target})
  if(part IN_LIST parts)
    return()
  elseif(NOT parts)
    cmake_language(EVAL CODE "cmake_language(DEFER CALL greta_make_hip_unit [[${unit}]] [[${target}]])")
  endif()
  set_property(DIRECTORY APPEND PROPERTY GRETA_HIP_UNIT_${unit}_${target} "${part}")
  file(CONFIGURE OUTPUT "${part}.hip" CONTENT "#include \"../${row_name}.hip\"\n" @ONLY)
  set_property(GLOBAL APPEND PROPERTY GRETA_HIP_BUILDS
    "${row_name}|${target}|${K_GROUP}|${wrapper}|${CMAKE_CURRENT_BINARY_DIR}/${unit}.${target}.hsaco")
endfunction()

# Makes a unit's code object, once all its kernels are known. Each part is optimised already, and all define
# the same symbol __hip_cuid_.
function(greta_make_hip_unit unit target)
  get_property(parts DIRECTORY PROPERTY GRETA_HIP_UNIT_${unit}_${target})
  list(TRANSFORM parts APPEND ".hip" OUTPUT_VARIABLE sources)
  list(TRANSFORM parts APPEND ".bc" OUTPUT_VARIABLE bitcode)
  set(object "${CMAKE_CURRENT_BINARY_DIR}/${unit}.${target}.hsaco")
  greta_hip_compile_command(${target} compile)
  greta_depfile_target("${object}" depfile_target)
  add_custom_command(OUTPUT "${object}"
    COMMAND rm -f "${object}.headers"
    COMMAND ${compile} ${sources} -header-include-file "${object}.headers"
    COMMAND sh "${PROJECT_SOURCE_DIR}/cmake/depfile.sh" "${object}.d" "${depfile_target}" "${object}.headers"
    COMMAND "${GRETA_HIP_LLD}" -shared --no-undefined --allow-multiple-definition -plugin-opt=mcpu=${target}
      --lto-O0 --lto-CGO3 ${bitcode} -o "${object}"
    DEPENDS ${sources} BYPRODUCTS ${bitcode} DEPFILE "${object}.d" VERBATIM
    COMMENT "Compiling HIP kernels ${unit} for ${target}")
endfunction()

# Writes generated/hip_kernels.tsv for the gates of machine code, from the property that tests/mock_hip
# reads. A line is kernel, target, threads of a group, the generated source and the unit's code object.
function(greta_write_hip_builds)
  get_property(builds GLOBAL PROPERTY GRETA_HIP_BUILDS)
  list(TRANSFORM builds REPLACE "\\|" "\t")
  list(TRANSFORM builds APPEND "\n")
  list(JOIN builds "" lines)
  file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/generated/hip_kernels.tsv" CONTENT "${lines}" @ONLY)
endfunction()

macro(greta_hip_kernel)
  string(APPEND defines "#define BLOCK ${K_BLOCK}\n")
  if(K_THREADS)
    string(APPEND defines "#define THREADS ${K_THREADS}\n")
  endif()
  if(K_WITH)
    string(APPEND defines "#define WEIGHTS_STREAM\n")
  endif()
  if(K_BY_TYPE)
    greta_type_header(type_header)
    string(APPEND defines "#define BY_TYPE \"${weight_folder}/${K_BY_TYPE}/${type_header}.h\"\n")
  endif()
  set(hip_weight "")
  if(weight)
    set(hip_weight "#include \"kernels/hip/glsl.h\"\nGLSL_BEGIN\n${weight}GLSL_END\n")
  endif()
  set(wrapper "${CMAKE_CURRENT_BINARY_DIR}/${row_name}.hip")
  file(CONFIGURE OUTPUT "${wrapper}" CONTENT
    "#define KERNEL_NAME ${row_name}\n${defines}${hip_weight}#include \"${source}.hip\"\n" @ONLY)
  if(row_name IN_LIST GRETA_HIP_STAGES)
    greta_write_hip_stage(${row_name} "${defines}" "${hip_weight}" "${source}")
  endif()
  set(unit ${op}_${variant})
  if(K_UNIT)
    set(unit ${K_UNIT})
  endif()
  foreach(target ${GRETA_HIP_USABLE_TARGETS})
    greta_hip_wants(${target} wants)
    if(wants)
      greta_add_to_hip_unit("${wrapper}" ${unit} ${target})
      string(MAKE_C_IDENTIFIER kernel_hip_${unit}_${target} symbol)
      greta_embed_kernel(${symbol} "${CMAKE_CURRENT_BINARY_DIR}/${unit}.${target}.hsaco" ${target})
    endif()
  endforeach()
endmacro()
