# The blocks of kernels/abi in three languages. Their fields are read out of the headers here, so a
# new block or field is covered without a word:
#   abi_fields.inc    BLOCK(B), FIELD(B, f) for each, in order: C++ takes offsets and sizes from it
#   abi_layout.inc    LAYOUT(B, f, offset, size) as C++ has them: HIP asserts the same
#   abi_probe.comp    a buffer of each block: the test reads GLSL's offsets in its SPIR-V
set(abi_headers step_state ops scaled_add)
set(fields "")
set(probe "#version 460\n#extension GL_GOOGLE_include_directive : require\n")
set(includes "")
set(buffers "")
set(binding 0)
foreach(header ${abi_headers})
  set(path "${PROJECT_SOURCE_DIR}/kernels/abi/${header}.h")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${path}")
  string(APPEND includes "#include \"kernels/abi/${header}.h\"\n")
  file(READ "${path}" text)
  string(REGEX REPLACE "//[^\n]*" "" text "${text}")
  string(REGEX REPLACE "\\[[^]]*\\]" "" text "${text}")
  string(REPLACE ";" "|" text "${text}")
  string(REGEX MATCHALL "struct [A-Za-z]+ {[^}]*}" blocks "${text}")
  foreach(block ${blocks})
    string(REGEX MATCH "struct ([A-Za-z]+) {([^}]*)}" _ "${block}")
    set(name ${CMAKE_MATCH_1})
    string(APPEND fields "BLOCK(${name})\n")
    string(APPEND buffers "layout(scalar, set = 0, binding = ${binding}) "
      "buffer Probe${binding} { ${name} value${binding}; };\n")
    math(EXPR binding "${binding} + 1")
    string(REPLACE "|" ";" declarations "${CMAKE_MATCH_2}")
    foreach(declaration ${declarations})
      string(STRIP "${declaration}" declaration)
      if(declaration)
        string(REGEX REPLACE "^[A-Za-z]+(\\([a-z]+\\))? +" "" names "${declaration}")
        string(REGEX REPLACE " *, *" ";" names "${names}")
        foreach(field ${names})
          string(APPEND fields "FIELD(${name}, ${field})\n")
        endforeach()
      endif()
    endforeach()
  endforeach()
endforeach()
file(CONFIGURE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/abi_headers.inc" CONTENT "${includes}" @ONLY)
file(CONFIGURE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/abi_fields.inc" CONTENT "${fields}" @ONLY)

if(GRETA_VULKAN AND GRETA_GLSLC)
  file(CONFIGURE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/abi_probe.comp"
    CONTENT "${probe}${includes}${buffers}layout(local_size_x = 1) in;\nvoid main() {}\n" @ONLY)
  set(spirv "${CMAKE_CURRENT_BINARY_DIR}/abi_probe.spv")
  # Unoptimised: -O drops names and what main does not use.
  add_custom_command(OUTPUT "${spirv}"
    COMMAND "${GRETA_GLSLC}" --target-env=vulkan1.3 -O0 -I "${PROJECT_SOURCE_DIR}"
      -MD -MF "${spirv}.d" -MT "${spirv}" "${CMAKE_CURRENT_BINARY_DIR}/abi_probe.comp" -o "${spirv}"
    DEPENDS "${CMAKE_CURRENT_BINARY_DIR}/abi_probe.comp" DEPFILE "${spirv}.d" VERBATIM)
  target_sources(greta_spike_tests PRIVATE "${spirv}")
  target_compile_definitions(greta_spike_tests PRIVATE ABI_PROBE_SPIRV="${spirv}")
endif()

if(hip_builds)
  add_executable(greta_abi_layout abi_layout_writer.cpp)
  target_link_libraries(greta_abi_layout PRIVATE greta_options)
  target_include_directories(greta_abi_layout PRIVATE "${CMAKE_CURRENT_BINARY_DIR}")
  set(layout "${CMAKE_CURRENT_BINARY_DIR}/abi_layout.inc")
  add_custom_command(OUTPUT "${layout}" COMMAND greta_abi_layout "${layout}"
    DEPENDS greta_abi_layout VERBATIM)
  target_sources(greta_spike_tests PRIVATE "${layout}")
  list(GET GRETA_HIP_USABLE_TARGETS 0 target)
  greta_hip_target_flags(${target} target_flags)
  add_test(NAME "spike: HIP packs the blocks as C++ does"
    COMMAND "${GRETA_HIP_CLANG}" ${GRETA_HIP_FLAGS} ${target_flags} -fsyntax-only
      -I "${CMAKE_CURRENT_BINARY_DIR}" "${CMAKE_CURRENT_SOURCE_DIR}/abi_layout.hip")
endif()
