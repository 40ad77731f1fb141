# The kernel decode_stages: kernels of GRETA_HIP_STAGES once more, as its bodies (docs/hip.md). It is made for
# CDNA, and for tests/ptx_hip where that is built.
include_guard(GLOBAL)

# Writes the source of a body: that of its kernel, between the lines that make it a function.
function(greta_write_hip_stage name defines weight source)
  file(CONFIGURE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/stages/${name}.hip" CONTENT
    "#define KERNEL_NAME ${name}\n#define GRETA_STAGE\n${defines}${weight}#include \"${source}.hip\"\n\
#include \"kernels/hip/persistent/stage_end.h\"\n" @ONLY)
endfunction()

# Makes the code object for a target. The bodies are not optimised by themselves, but once they are inlined.
# The constants of all bodies would be put into registers in front of the loop over launches, if the code
# generator were not told to leave them where they are.
function(greta_make_hip_stages target)
  set(folder "${CMAKE_CURRENT_BINARY_DIR}/${target}/stages")
  set(sources "")
  set(bitcode "")
  set(linked "")
  foreach(name ${GRETA_HIP_STAGES})
    file(CONFIGURE OUTPUT "${folder}/${name}.hip" CONTENT "#include \"../../stages/${name}.hip\"\n" @ONLY)
    list(APPEND sources "${folder}/${name}.hip")
    list(APPEND bitcode "${folder}/${name}.bc")
    list(APPEND linked -mlink-builtin-bitcode "${folder}/${name}.bc")
  endforeach()
  set(main "${folder}/decode_stages")
  file(CONFIGURE OUTPUT "${main}.hip" CONTENT "#include \"../../decode_stages.hip\"\n" @ONLY)
  set(object "${CMAKE_CURRENT_BINARY_DIR}/decode_stages.${target}.hsaco")
  greta_hip_compile_command(${target} compile)
  greta_depfile_target("${object}" depfile_target)
  add_custom_command(OUTPUT "${object}"
    COMMAND rm -f "${object}.headers"
    COMMAND ${compile} -disable-llvm-passes ${sources} -header-include-file "${object}.headers"
    COMMAND ${compile} ${linked} "${main}.hip" -o "${main}.bc" -header-include-file "${object}.headers"
    COMMAND sh "${PROJECT_SOURCE_DIR}/cmake/depfile.sh" "${object}.d" "${depfile_target}" "${object}.headers"
    COMMAND "${GRETA_HIP_LLD}" -shared --no-undefined -plugin-opt=mcpu=${target} --lto-O0 --lto-CGO3
      -mllvm -disable-machine-licm "${main}.bc" -o "${object}"
    DEPENDS ${sources} "${main}.hip" BYPRODUCTS ${bitcode} "${main}.bc" DEPFILE "${object}.d" VERBATIM
    COMMENT "Compiling HIP kernel decode_stages for ${target}")
  string(MAKE_C_IDENTIFIER kernel_hip_decode_stages_${target} symbol)
  greta_embed_code(${symbol} "${object}")
  set_property(GLOBAL APPEND PROPERTY GRETA_HIP_BUILDS
    "decode_stages|${target}|512|${CMAKE_CURRENT_BINARY_DIR}/decode_stages.hip|${object}")
  set_property(GLOBAL APPEND_STRING PROPERTY GRETA_HIP_STAGES_CODE
    "HIP_STAGES_CODE(\"${target}\", ${symbol})\n")
endfunction()

# Makes decode_stages of the kernels that GRETA_HIP_STAGES names, once all of them are known.
function(greta_hip_stages)
  list(FILTER GRETA_HIP_STAGES INCLUDE REGEX "${GRETA_GPU_KERNELS}")
  file(CONFIGURE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/decode_stages.hip" CONTENT
    "#define KERNEL_NAME decode_stages\n#define GROUP 512\n#define BLOCK PersistentBlock\n\
#include \"kernels/hip/persistent/decode_stages.hip\"\n" @ONLY)
  set_property(GLOBAL PROPERTY GRETA_HIP_STAGES ${GRETA_HIP_STAGES})
  set(backend hip)
  set(table KERNEL)
  foreach(target ${GRETA_HIP_USABLE_TARGETS})
    greta_hip_wants(${target} wants)
    if(wants AND (target MATCHES "^gfx9" OR (GRETA_HIP_PTX AND target MATCHES "^gfx11")))
      greta_make_hip_stages(${target})
    endif()
  endforeach()
  list(TRANSFORM GRETA_HIP_STAGES REPLACE "^.+$" "HIP_STAGE(\\0)\n" OUTPUT_VARIABLE names)
  list(JOIN names "" names)
  get_property(code GLOBAL PROPERTY GRETA_HIP_STAGES_CODE)
  foreach(layer kernels backends)
    file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/generated/${layer}/hip/stages.def"
      CONTENT "${names}#undef HIP_STAGE\n" @ONLY)
  endforeach()
  file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/generated/backends/hip/stages_code.inc"
    CONTENT "${code}#undef HIP_STAGES_CODE\n" @ONLY)
endfunction()
