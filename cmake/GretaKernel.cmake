# greta_kernel(OP VARIANT ...) compiles one kernel source for a backend, once for each type, and
# writes its rows of the kernel table. The backend is the folder that calls it (kernels/<backend>):
#   cpu     one row; the code is a function of <source>.cpp
#   vulkan  one row; SPIR-V of <source>.comp, embedded           (GretaVulkanKernel.cmake)
#   hip     one row for each gfx target; an entry point in the code object of <source>.hip, which is embedded
#           (GretaHipKernel.cmake)
# The same line serves all three: greta_kernel(norm row GROUP 256 CONSTANTS width heads).
#
#   OP        the op that gives the source its name, and is the only one that it covers unless COVERS is given
#   VARIANT   the source is <OP>_<VARIANT>, in any folder of the backend: `matmul plain` is
#             matmul/matmul_plain.cpp
#   COVERS    sequences that the code covers, by their names in kernels/sequences.cmake (default: OP alone)
#   QUANTS    weight types: `all` that have a decode header for the layout, or those that greta_quants has
#             chosen. A line with QUANTS and no type has no rows. Absent for ops without weights
#   LAYOUT    layout of the weights: gguf (default), packed or planes
#   FORM      activation format of a matmul's x, or of a convert's y: f32 (default), q8, q8x16 or f16
#   BLOCK     argument block that has the fields of CONSTANTS (default <Op>Block)
#   ISA       cpu: avx2, avx512vnni or amx (default: the baseline of the architecture)
#   TOKENS    smallest and largest bucket (default 1 512)
#   N, DEPTH  the weight's rows and columns must be multiples of these (default 1 1)
#   TILE      output rows of a group (default 1), or ROWSxTOKENS; several tiles give a table row each
#   SPLITS    split-K: the most groups that may share a tile; attention with LONE: the groups that share its
#             rows (default 1)
#   LONE      attention of rows, each of which is the only one of its sequence
#   NUMBERED  matmul: the tiles have numbers, so that they can be dealt out over the dies of a GPU
#   ARITHMETIC  how it multiplies: lanes (default), matrices (matrix instructions on float16) or brain (those
#             on bfloat16)
#   SLOTS     matmul_expert: the most slots that an expert has on average in a step of the bucket (default:
#             any number)
#   PREFIX    attention of rows that share the first pages of their sequences: Sums makes the partial results
#             of these pages, Behind adds them to those of the positions behind (default: the row knows of
#             none)
#   SHARED    bytes of shared memory for each row and token of the tile (default 0)
#   RANK      a higher one is preferred (default 0, the plain kernel)
#   GROUP     threads of a group; the source sees it as GROUP, Vulkan also as constant 0 (default 1)
#   THREADS   field of the block with the threads of a group (default: none, GROUP says it)
#   SUBGROUPS Vulkan: a group is this many subgroups if they have at least half of GROUP's threads, else
#             it has all threads (default 0: always all)
#   CONSTANTS fields of the block that are fixed for a model. In Vulkan they are the specialization
#             constants 2, 3, ..; CPU and HIP read them from the block. Those behind its first 128 bytes come
#             last and in order: HIP appends them to the block (KernelCode::appended)
#   NEEDS     features that a GPU must have, joined by |: kVulkanCoopMatrix|kVulkanCoopMatrixHalf. They are
#             enumerators of a header in backends/<backend>. The table row has their bits as a number, and an
#             unknown name is an error (default: none)
#   LACKS     features that it must not have, since other kernels are faster there (default: none)
#   WITH      a folder beside the decode headers' whose <type>.h is included in front of the source
#   BY_TYPE   a folder beside the decode headers' with headers for types: <type>_<layout>.h, else <type>.h,
#             else any.h. Vulkan: the source includes that of its type as kernels/weight/<BY_TYPE>.h. HIP: it
#             includes BY_TYPE
#   TARGETS   hip: only these gfx targets, and the exact ones of these families (default: all of
#             GRETA_HIP_TARGETS)
#   UNIT      hip: the kernel is in the code object of this name, <op>_<variant>, whose code is much like its
#             own and packs well beside it (default: in that of its own)
#   TEST      a kernel of the tests: its row covers no op and goes to test_kernel_rows.inc
#
# A generated source defines KERNEL_NAME and GROUP and includes the kernel's source. For a type it also
# defines WEIGHT and the weights and bytes of a block (QUANT_BLOCK, QUANT_BYTES, from quant_types.def), on
# GPUs the layout of planes (PLANES, QUANT_PARTS), and includes the decode header first. No CMake file
# lists types: a type has a kernel if it has the files. All kernels of a backend are one object library,
# which the global properties GRETA_KERNEL_LIBRARIES and GRETA_TEST_KERNEL_LIBRARIES name.
include_guard(GLOBAL)

# Compilers write depfiles as Ninja reads them. CMake would start itself behind each to change its paths,
# which is a tenth of the time of a small kernel.
cmake_policy(SET CMP0116 OLD)

# Sets `out` to the name by which a depfile calls an output.
function(greta_depfile_target output out)
  if(CMAKE_GENERATOR MATCHES "Ninja")
    file(RELATIVE_PATH output "${CMAKE_BINARY_DIR}" "${output}")
  endif()
  set(${out} "${output}" PARENT_SCOPE)
endfunction()

set(GRETA_GPU_KERNELS "" CACHE STRING
  "Regular expression: only GPU kernels of such names are compiled, for work on backends; all if empty")

include(GretaWeights)
include(GretaKernelTable)
include(GretaVulkanKernel)
include(GretaHipKernel)

set(GRETA_ISA_FLAGS_avx2 -mavx2 -mfma -mf16c)
set(GRETA_ISA_NEEDS_avx2 kCpuAvx2)
set(GRETA_ISA_FLAGS_avx512vnni -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512vnni -mavx2 -mfma -mf16c)
set(GRETA_ISA_NEEDS_avx512vnni kCpuAvx512Vnni)
# Tiles for products, and AVX-512 for all else.
set(GRETA_ISA_FLAGS_amx ${GRETA_ISA_FLAGS_avx512vnni} -mavx512bf16 -mamx-tile -mamx-bf16)
set(GRETA_ISA_NEEDS_amx kCpuAmx)
# GCC spreads the choices of exp_f32 (kernels/cpu/math.h) over lanes only if a comparison may not trap.
foreach(isa avx2 avx512vnni amx)
  list(APPEND GRETA_ISA_FLAGS_${isa} -fno-trapping-math)
endforeach()
# Sources write fma where it is wanted, so that dequantisation and the order of rounding are the same
# everywhere. Sanitized kernels are not timed, so -O1 does: GCC takes 24 s for a large one at -O3, and 3 s
# at -O1.
if(NOT DEFINED GRETA_KERNEL_OPTIMISATION)
  if(GRETA_SANITIZE)
    set(GRETA_KERNEL_OPTIMISATION -O1)
  else()
    set(GRETA_KERNEL_OPTIMISATION -O3)
  endif()
endif()
set(GRETA_KERNEL_FLAGS ${GRETA_KERNEL_OPTIMISATION} -ffp-contract=off -fno-exceptions -fno-rtti)

# "kv_write" -> "KvWrite"
function(greta_op_enum op out)
  get_property(name GLOBAL PROPERTY GRETA_OP_ENUM_${op})
  if(name)
    set(${out} ${name} PARENT_SCOPE)
    return()
  endif()
  string(REPLACE "_" ";" words ${op})
  foreach(word ${words})
    string(SUBSTRING ${word} 0 1 first)
    string(SUBSTRING ${word} 1 -1 rest)
    string(TOUPPER ${first} first)
    string(APPEND name ${first}${rest})
  endforeach()
  set_property(GLOBAL PROPERTY GRETA_OP_ENUM_${op} ${name})
  set(${out} ${name} PARENT_SCOPE)
endfunction()

# Sets `out` to the bits of features that are named like "kVulkanIntDot|kVulkanChain", as a number. The names
# are the enumerators `k<Backend><Feature> = <bit>,` in the headers of backends/<backend>.
function(greta_feature_bits names out)
  get_property(known GLOBAL PROPERTY GRETA_FEATURES_${backend})
  if(NOT known)
    greta_op_enum(${backend} prefix)
    file(GLOB headers CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/backends/${backend}/*.h")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${headers})
    foreach(header ${headers})
      file(STRINGS "${header}" lines REGEX "^ *k${prefix}[A-Za-z0-9]+ = [0-9]+,")
      foreach(line ${lines})
        string(REGEX MATCH "k[A-Za-z0-9]+ = [0-9]+" feature "${line}")
        string(REPLACE " = " "=" feature "${feature}")
        list(APPEND known ${feature})
      endforeach()
    endforeach()
    set_property(GLOBAL PROPERTY GRETA_FEATURES_${backend} ${known})
  endif()
  set(bits 0)
  string(REPLACE "|" ";" names "${names}")
  foreach(name ${names})
    set(found ${known})
    list(FILTER found INCLUDE REGEX "^${name}=[0-9]+$")
    if(NOT found)
      message(FATAL_ERROR "greta_kernel(${op} ${variant}): backends/${backend} has no feature \"${name}\"")
    endif()
    string(REGEX REPLACE "^.*=" "" bit "${found}")
    math(EXPR bits "${bits} | ${bit}")
  endforeach()
  set(${out} ${bits} PARENT_SCOPE)
endfunction()

# Gives a name to patterns of sequences of ops. Ops in brackets are optional.
function(greta_sequences name)
  set(sequences "")
  string(REPLACE "[" "(" patterns "${ARGN}")  # brackets keep the elements of a CMake list together
  string(REPLACE "]" ")" patterns "${patterns}")
  while(patterns)
    list(POP_FRONT patterns pattern)
    if(pattern MATCHES "^(.*)\\(([^()]*)\\)(.*)$")
      list(PREPEND patterns "${CMAKE_MATCH_1}${CMAKE_MATCH_3}"
        "${CMAKE_MATCH_1}${CMAKE_MATCH_2}${CMAKE_MATCH_3}")
    else()
      string(REGEX MATCHALL "[a-z0-9_]+" ops "${pattern}")
      list(JOIN ops "+" sequence)
      list(APPEND sequences ${sequence})
    endif()
  endwhile()
  list(REMOVE_DUPLICATES sequences)
  set_property(GLOBAL PROPERTY GRETA_SEQUENCES_${name} ${sequences})
endfunction()
include("${PROJECT_SOURCE_DIR}/kernels/sequences.cmake")

# Gives the sequences that greta_kernel's line covers, such as "norm+matmul".
function(greta_covered_sequences out)
  set(sequences ${op})
  if(K_COVERS)
    set(sequences "")
  endif()
  foreach(name ${K_COVERS})
    get_property(named GLOBAL PROPERTY GRETA_SEQUENCES_${name})
    if(NOT named)
      message(FATAL_ERROR "greta_kernel(${op} ${variant}): kernels/sequences.cmake has no sequences ${name}")
    endif()
    list(APPEND sequences ${named})
  endforeach()
  list(REMOVE_DUPLICATES sequences)
  set(${out} ${sequences} PARENT_SCOPE)
endfunction()

# Gives the path, from the project's folder and without extension, of this backend's only source NAME.*, in
# any of its folders.
function(greta_kernel_source name out)
  file(GLOB_RECURSE found RELATIVE "${PROJECT_SOURCE_DIR}" "${CMAKE_CURRENT_SOURCE_DIR}/${name}.cpp"
    "${CMAKE_CURRENT_SOURCE_DIR}/${name}.comp" "${CMAKE_CURRENT_SOURCE_DIR}/${name}.hip")
  list(LENGTH found count)
  if(NOT count EQUAL 1)
    message(FATAL_ERROR
      "kernel ${name}: one source is expected in ${CMAKE_CURRENT_SOURCE_DIR}, there are: ${found}")
  endif()
  string(REGEX REPLACE "\\.[^./]*$" "" source "${found}")
  set(${out} "${source}" PARENT_SCOPE)
endfunction()

# Sets `out` to the object library of this backend's kernels, or of those for an instruction set, which is
# made for its first kernel. Further arguments are flags of the compiler.
function(greta_kernel_library out)
  if(K_TEST)
    set(library greta_test_kernels_${backend})
  else()
    set(library greta_kernels_${backend})
    if(K_ISA)
      string(APPEND library _${K_ISA})
    endif()
  endif()
  if(NOT TARGET ${library})
    add_library(${library} OBJECT)
    set_target_properties(${library} PROPERTIES UNITY_BUILD OFF)  # kernels name what they need alike
    target_include_directories(${library} PRIVATE "${PROJECT_SOURCE_DIR}")
    target_compile_options(${library} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra>" ${ARGN})
    if(K_ISA)
      # The intrinsics take longer than some kernels. GCC 12 warns of operands that they leave undefined on
      # purpose (GCC bug 105593).
      target_precompile_headers(${library} PRIVATE <immintrin.h>)
      target_compile_options(${library} PRIVATE
        "$<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized;-Wno-uninitialized>")
    endif()
  endif()
  get_property(listed GLOBAL PROPERTY GRETA_${table}_LIBRARIES)
  if(NOT library IN_LIST listed)
    set_property(GLOBAL APPEND PROPERTY GRETA_${table}_LIBRARIES ${library})
  endif()
  set(${out} ${library} PARENT_SCOPE)
endfunction()

function(greta_kernel op variant)
  set(single LAYOUT FORM ISA NEEDS LACKS SPLITS SLOTS SHARED WITH BY_TYPE BLOCK RANK N DEPTH GROUP SUBGROUPS
    THREADS CHAIN PREFIX UNIT ARITHMETIC)
  set(several TILE QUANTS TOKENS COVERS CONSTANTS TARGETS)
  cmake_parse_arguments(K "TEST;LONE;NUMBERED" "${single}" "${several}" ${ARGN})
  if(K_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "greta_kernel(${op} ${variant}): unknown ${K_UNPARSED_ARGUMENTS}")
  endif()
  foreach(pair LAYOUT=gguf FORM=f32 TILE=1 SPLITS=1 SHARED=0 RANK=0 N=1 DEPTH=1 GROUP=1
      SUBGROUPS=0 SLOTS=0 PREFIX=None ARITHMETIC=lanes)
    string(REGEX MATCH "^([A-Z_]+)=(.*)$" _ ${pair})
    if(NOT DEFINED K_${CMAKE_MATCH_1})
      set(K_${CMAKE_MATCH_1} ${CMAKE_MATCH_2})
    endif()
  endforeach()
  if(NOT K_TOKENS)
    set(K_TOKENS 1 512)
  endif()
  if(NOT K_BLOCK)
    greta_op_enum(${op} op_enum)
    set(K_BLOCK ${op_enum}Block)
  endif()
  if("QUANTS" IN_LIST K_KEYWORDS_MISSING_VALUES)
    return()
  elseif(K_QUANTS STREQUAL "all")
    greta_quants(K_QUANTS LAYOUT ${K_LAYOUT})
  elseif(NOT K_QUANTS)
    set(K_QUANTS none)
  endif()
  set(table KERNEL)
  if(K_TEST)
    if(NOT GRETA_TESTS)
      return()
    endif()
    set(table TEST_KERNEL)
  endif()
  get_filename_component(backend ${CMAKE_CURRENT_SOURCE_DIR} NAME)
  greta_kernel_source(${op}_${variant} source)
  greta_feature_bits("${K_NEEDS}" K_NEEDS)
  greta_feature_bits("${K_LACKS}" K_LACKS)
  foreach(quant ${K_QUANTS})
    set(row_name "${op}_${variant}")
    set(defines "#define GROUP ${K_GROUP}\n")
    set(weight "")
    set(type f32)
    if(NOT quant STREQUAL "none")
      set(type ${quant})
      set(header ${quant})
      if(NOT K_LAYOUT STREQUAL "gguf")
        set(header ${quant}_${K_LAYOUT})
      endif()
      string(APPEND row_name "_${header}")
      string(APPEND defines "#define WEIGHT ${header}\n#define QUANT_BLOCK ${GRETA_BLOCK_${quant}}\n"
        "#define QUANT_BYTES ${GRETA_BYTES_${quant}}\n")
      greta_decode_header(${quant} ${K_LAYOUT} decode_header)
      greta_weight_folder(weight_folder)
      set(weight "#include \"${weight_folder}/quant/${decode_header}.h\"\n")
      if(K_WITH)
        string(APPEND weight "#include \"${weight_folder}/${K_WITH}/${quant}.h\"\n")
      endif()
      if(NOT backend STREQUAL "cpu")
        greta_planes_of(${decode_header} planes)
        if(planes)
          string(APPEND defines "#define QUANT_PARTS kParts_${quant}\n")
        endif()
        if(K_LAYOUT STREQUAL "planes")
          string(APPEND defines "#define PLANES\n")
        endif()
      endif()
    endif()
    if(backend STREQUAL "cpu" OR row_name MATCHES "${GRETA_GPU_KERNELS}")
      cmake_language(CALL greta_${backend}_kernel)
    endif()
  endforeach()
endfunction()

# CPU: a small generated source names the type and its kernels, then includes their files. The vector kernels
# of a type share one generated source, since most of the compiler's work for them is the same.
macro(greta_cpu_kernel)
  set(needs 0)
  set(flags ${GRETA_KERNEL_FLAGS})
  set(unit ${row_name})
  if(K_ISA)
    set(needs ${GRETA_ISA_NEEDS_${K_ISA}})
    list(APPEND flags ${GRETA_ISA_FLAGS_${K_ISA}})
    # The sanitizer would take half of the compiler's time to check vector arithmetic, which is not C++'s.
    if(GRETA_SANITIZE)
      list(APPEND flags -fno-sanitize=undefined)
    endif()
    if(weight)
      set(unit ${K_ISA}_${header})
    endif()
  endif()
  if(NOT K_ISA OR CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    greta_kernel_library(library ${flags})
    set(unit_source "${CMAKE_CURRENT_BINARY_DIR}/${unit}.cpp")
    target_sources(${library} PRIVATE "${unit_source}")
    set(kernel "#define KERNEL_NAME kernel_cpu_${row_name}\n#include \"${source}.cpp\"\n#undef KERNEL_NAME\n")
    get_property(unit_text DIRECTORY PROPERTY GRETA_UNIT_${unit})
    if(NOT unit_text)
      set(unit_text "${defines}${weight}")
      if(weight AND K_LAYOUT STREQUAL "gguf")  # the header and the table's row say the same
        string(APPEND unit_text "static_assert(${quant}::kBlock == QUANT_BLOCK);\n"
          "static_assert(${quant}::kBlockBytes == QUANT_BYTES);\n")
      endif()
      cmake_language(EVAL CODE "cmake_language(DEFER CALL greta_write_unit [[${unit}]])")
    endif()
    string(FIND "${unit_text}" "${kernel}" at)
    if(at EQUAL -1)
      set_property(DIRECTORY PROPERTY GRETA_UNIT_${unit} "${unit_text}${kernel}")
    endif()
    set_property(GLOBAL APPEND_STRING PROPERTY GRETA_${table}_CODE "HOST_KERNEL(kernel_cpu_${row_name})\n")
    greta_add_rows("" ${needs}
      "{.name = \"${row_name}\", .function = kernel_cpu_${row_name}, .group_size = {${K_GROUP}, 1, 1}}")
  endif()
endmacro()

# Writes the source of a folder's unit, once all its kernels are known.
function(greta_write_unit unit)
  get_property(text DIRECTORY PROPERTY GRETA_UNIT_${unit})
  file(CONFIGURE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/${unit}.cpp" CONTENT "${text}" @ONLY)
endfunction()

# GPU: adds `file`, which a custom command of this folder makes, to the object library as packed bytes
# between the symbols NAME and NAME_end. A backend unpacks them when it loads a kernel
# (platform/files/packed.h). What GRETA_GPU_CODE has of it is copied, and nothing is compiled for it.
set(GRETA_GPU_CODE "" CACHE PATH "A build folder of the same sources whose GPU code is used here too")
function(greta_embed_code name file)
  greta_kernel_library(library)
  get_property(there DIRECTORY PROPERTY GRETA_EMBEDDED_${library})
  if(NOT there)
    cmake_language(EVAL CODE "cmake_language(DEFER CALL greta_write_embedded [[${library}]])")
  endif()
  if(NOT name IN_LIST there)
    set_property(DIRECTORY APPEND PROPERTY GRETA_EMBEDDED_${library} ${name})
    set(packed "${CMAKE_CURRENT_BINARY_DIR}/${name}.packed")
    cmake_path(RELATIVE_PATH packed BASE_DIRECTORY "${PROJECT_BINARY_DIR}" OUTPUT_VARIABLE made)
    set(made "${GRETA_GPU_CODE}/${made}")
    if(GRETA_GPU_CODE AND EXISTS "${made}")
      add_custom_command(OUTPUT "${packed}" COMMAND "${CMAKE_COMMAND}" -E copy "${made}" "${packed}"
        DEPENDS "${made}" VERBATIM)
    else()
      add_custom_command(OUTPUT "${packed}" COMMAND greta_pack "${file}" "${packed}"
        DEPENDS greta_pack "${file}" VERBATIM)
    endif()
  endif()
endfunction()

# Writes the source of an object library's packed bytes, once all are known.
function(greta_write_embedded library)
  get_property(names DIRECTORY PROPERTY GRETA_EMBEDDED_${library})
  set(text "        .section .rodata\n")
  set(packed "")
  foreach(name ${names})
    set(file "${CMAKE_CURRENT_BINARY_DIR}/${name}.packed")
    list(APPEND packed "${file}")
    string(APPEND text "        .global ${name}, ${name}_end
        .hidden ${name}, ${name}_end
        .balign 64
${name}:
        .incbin \"${file}\"
${name}_end:
        .byte 0
")
  endforeach()
  string(APPEND text "        .section .note.GNU-stack,\"\",%progbits\n")
  set(assembly "${CMAKE_CURRENT_BINARY_DIR}/${library}.S")
  file(CONFIGURE OUTPUT "${assembly}" CONTENT "${text}" @ONLY)
  target_sources(${library} PRIVATE "${assembly}")
  set_source_files_properties("${assembly}" PROPERTIES OBJECT_DEPENDS "${packed}")
endfunction()

# GPU: the same, and adds a table row with these bytes.
function(greta_embed_kernel name file target)
  greta_embed_code(${name} "${file}")
  set_property(GLOBAL APPEND_STRING PROPERTY GRETA_${table}_CODE "EMBEDDED_KERNEL(${name})\n")
  set(group ".group_size = {${K_GROUP}, 1, 1}, .subgroups = ${K_SUBGROUPS}")
  if(backend STREQUAL "vulkan" AND K_CHAIN STREQUAL "behind")
    string(APPEND group ", .chain_field = chain_behind<${K_BLOCK}>()")
  elseif(backend STREQUAL "vulkan" AND K_CHAIN)
    string(APPEND group ", .chain_field = offsetof(${K_BLOCK}, ${K_CHAIN})")
  endif()
  if(K_CONSTANTS AND NOT backend STREQUAL "vulkan")  # Vulkan has specialization constants
    list(TRANSFORM K_CONSTANTS REPLACE "^.+$" "(offsetof(${K_BLOCK}, \\0) >= kMaxBlockBytes)"
      OUTPUT_VARIABLE behind)
    list(JOIN behind " + " behind)
    string(APPEND group ", .appended = ${behind}")
  endif()
  greta_add_rows("${target}" ${K_NEEDS} "{.name = \"${row_name}\", .code = {${name}, ${name}_end}, ${group}}")
endfunction()
