# Vulkan kernels for greta_kernel: <source>.comp to SPIR-V by glslc, embedded as one row.
#
#   greta_kernel(norm row GROUP 256 CONSTANTS width)
# compiles norm_row.comp and writes the row
#   {"norm_row", "vulkan", "", .., {offsetof(NormBlock, width)}, 1,
#    {.name = "norm_row", .code = {begin, end}, .group_size = {256, 1, 1}}}
# The backend passes the threads of a group as constant 0, the lanes of a subgroup as constant 1 and the
# listed fields as constants 2, 3, ..
#
# Without glslc there are no Vulkan rows. A shader whose `#extension NAME : require` lines name an
# extension that this glslc does not know is left out; any other mistake in a shader fails the build.
include_guard(GLOBAL)

set(GRETA_GLSLC_FLAGS --target-env=vulkan1.3 -O)

if(GRETA_VULKAN)
  find_program(GRETA_GLSLC glslc HINTS "${PROJECT_SOURCE_DIR}/build/tools" ENV VULKAN_SDK
    PATH_SUFFIXES bin DOC "Compiler of the Vulkan kernels")
  if(NOT GRETA_GLSLC)
    message(STATUS "Vulkan kernels: left out, there is no glslc")
  endif()
else()
  message(STATUS "Vulkan kernels: left out, GRETA_VULKAN is OFF")
endif()

# Makes a folder with kernels/weight/<BY_TYPE>.h, and appends it to `include_folders`. Sets `type_header`.
function(greta_type_includes)
  greta_weight_folder(weight_folder)
  greta_type_header(type_header)
  set(folder "${CMAKE_CURRENT_BINARY_DIR}/${K_BY_TYPE}/${type_header}")
  file(CONFIGURE OUTPUT "${folder}/kernels/weight/${K_BY_TYPE}.h"
    CONTENT "#include \"${weight_folder}/${K_BY_TYPE}/${type_header}.h\"\n" @ONLY)
  set(include_folders ${include_folders} "${folder}" PARENT_SCOPE)
  set(type_header "${type_header}" PARENT_SCOPE)
endfunction()

# Appends to `out` the extensions that are required by a shader and by the kernels/ headers that it includes
# from `include_folders`. A file is read once for the same folders.
function(greta_shader_extensions path out)
  string(MD5 key "${path};${include_folders}")
  get_property(known GLOBAL PROPERTY GRETA_EXTENSIONS_${key} SET)
  if(NOT known)
    greta_read_extensions("${path}" found)
    set_property(GLOBAL PROPERTY GRETA_EXTENSIONS_${key} "${found}")
  endif()
  get_property(found GLOBAL PROPERTY GRETA_EXTENSIONS_${key})
  list(APPEND ${out} ${found})
  list(REMOVE_DUPLICATES ${out})
  set(${out} ${${out}} PARENT_SCOPE)
endfunction()

# Sets `out` to the extensions of a file that was not read yet.
function(greta_read_extensions path out)
  file(STRINGS "${path}" lines REGEX "^#(extension|include)")
  set(found "")
  foreach(line ${lines})
    if(line MATCHES "^#extension +([A-Za-z0-9_]+) *: *require")
      list(APPEND found ${CMAKE_MATCH_1})
    elseif(line MATCHES "^#include \"(kernels/.*)\"")
      set(include "${CMAKE_MATCH_1}")
      foreach(folder ${include_folders})
        if(EXISTS "${folder}/${include}")
          greta_shader_extensions("${folder}/${include}" found)
          break()
        endif()
      endforeach()
    endif()
  endforeach()
  set(${out} ${found} PARENT_SCOPE)
endfunction()

# Tells whether glslc knows an extension. Each is tried once, and the answer is kept in the cache.
function(greta_glslc_knows extension out)
  string(MAKE_C_IDENTIFIER "GRETA_GLSLC_KNOWS_${GRETA_GLSLC}_${extension}" answer)
  if(NOT DEFINED ${answer})
    set(probe "${PROJECT_BINARY_DIR}/CMakeFiles/greta_extension.comp")
    file(WRITE "${probe}" "#version 460\n#extension ${extension} : require\nvoid main() {}\n")
    execute_process(COMMAND "${GRETA_GLSLC}" --target-env=vulkan1.3 "${probe}" -o "${probe}.spv"
      RESULT_VARIABLE result OUTPUT_QUIET ERROR_QUIET)
    string(COMPARE EQUAL "${result}" 0 known)
    set(${answer} ${known} CACHE INTERNAL "")
  endif()
  set(${out} ${${answer}} PARENT_SCOPE)
endfunction()

# Compiles all shaders of one source and the same folders in one process, once they are known: glslc takes
# longer to begin than for most shaders.
function(greta_compile_shaders unit include_folders)
  get_property(rows DIRECTORY PROPERTY GRETA_SHADERS_${unit})
  list(TRANSFORM rows APPEND ".glsl" OUTPUT_VARIABLE sources)
  list(TRANSFORM rows APPEND ".spv" OUTPUT_VARIABLE spirv)
  list(TRANSFORM rows APPEND ".spv.d" OUTPUT_VARIABLE depfiles)
  list(TRANSFORM include_folders PREPEND -I)
  list(GET spirv 0 first)
  greta_depfile_target("${CMAKE_CURRENT_BINARY_DIR}/${first}" depfile_target)
  add_custom_command(OUTPUT ${spirv}
    COMMAND "${GRETA_GLSLC}" ${GRETA_GLSLC_FLAGS} -fshader-stage=compute ${include_folders} -MD -c ${sources}
    COMMAND sh "${PROJECT_SOURCE_DIR}/cmake/depfile.sh" ${unit}.d "${depfile_target}" ${depfiles}
    DEPENDS ${sources} DEPFILE "${CMAKE_CURRENT_BINARY_DIR}/${unit}.d" VERBATIM
    WORKING_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}" COMMENT "Compiling Vulkan kernels ${unit}")
endfunction()

# Writes a wrapper from greta_kernel's `defines`, `weight` and `source`, which is compiled to `spirv`. That
# is "" if this glslc cannot.
macro(greta_vulkan_shader)
  set(spirv "")
  if(GRETA_VULKAN AND GRETA_GLSLC)
    set(include_folders "${PROJECT_SOURCE_DIR}" "${PROJECT_BINARY_DIR}/generated")
    get_filename_component(unit "${source}" NAME)
    if(K_BY_TYPE)
      greta_type_includes()
      string(APPEND unit "_${type_header}")
    endif()
    set(vulkan_weight "")
    if(weight)
      set(vulkan_weight "#include \"kernels/vulkan/device.h\"\n${weight}")
    endif()
    set(wrapper "${CMAKE_CURRENT_BINARY_DIR}/${row_name}.glsl")
    file(CONFIGURE OUTPUT "${wrapper}" CONTENT "#version 460
#extension GL_GOOGLE_include_directive : require
${defines}${vulkan_weight}#include \"${source}.comp\"
" @ONLY)
    set(extensions "")
    greta_shader_extensions("${wrapper}" extensions)
    set(missing "")
    foreach(extension ${extensions})
      greta_glslc_knows(${extension} known)
      if(NOT known)
        list(APPEND missing ${extension})
      endif()
    endforeach()
    if(missing)
      message(STATUS "Vulkan kernels: ${row_name} left out, ${GRETA_GLSLC} does not know ${missing}")
    else()
      set(spirv "${CMAKE_CURRENT_BINARY_DIR}/${row_name}.spv")
      get_property(rows DIRECTORY PROPERTY GRETA_SHADERS_${unit})
      if(NOT rows)
        cmake_language(EVAL CODE
          "cmake_language(DEFER CALL greta_compile_shaders [[${unit}]] [[${include_folders}]])")
      endif()
      if(NOT row_name IN_LIST rows)  # by another line, whose rows are for other tokens
        set_property(DIRECTORY APPEND PROPERTY GRETA_SHADERS_${unit} ${row_name})
      endif()
    endif()
  endif()
endmacro()

macro(greta_vulkan_kernel)
  greta_vulkan_shader()
  if(spirv)
    greta_embed_kernel(kernel_vulkan_${row_name} "${spirv}" "")
  endif()
endmacro()

# Embeds code that the backend itself needs, between the symbols kernel_vulkan_NAME and
# kernel_vulkan_NAME_end. GRETA_VULKAN_CODE lists the code that was built.
function(greta_vulkan_code name)
  set(backend vulkan)
  set(row_name ${name})
  set(defines "")
  set(weight "")
  set(source "kernels/vulkan/${name}")
  greta_vulkan_shader()
  if(spirv)
    greta_embed_code(kernel_vulkan_${name} "${spirv}")
    set_property(GLOBAL APPEND PROPERTY GRETA_VULKAN_CODE ${name})
  endif()
endfunction()
