# The types of weights, and which of them the headers of a backend decode.
include_guard(GLOBAL)

# Sets GRETA_TYPES, the types of the table in its order, and for each GRETA_BLOCK_<type> and
# GRETA_BYTES_<type>.
set(type_table "${PROJECT_SOURCE_DIR}/src/compute/quant_types.def")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${type_table}")
file(STRINGS "${type_table}" type_rows REGEX "^QUANT_TYPE\\(")
set(GRETA_TYPES "")
foreach(row ${type_rows})
  string(REGEX MATCH "\\(([a-z0-9_]+), [0-9]+, ([0-9]+), ([0-9]+)\\)" _ "${row}")
  list(APPEND GRETA_TYPES ${CMAKE_MATCH_1})
  set(GRETA_BLOCK_${CMAKE_MATCH_1} ${CMAKE_MATCH_2})
  set(GRETA_BYTES_${CMAKE_MATCH_1} ${CMAKE_MATCH_3})
endforeach()

# Gives the folder, from the project's, with this backend's decode headers: quant/ and what WITH names. The
# languages of the GPUs share theirs.
function(greta_weight_folder out)
  get_filename_component(folder ${CMAKE_CURRENT_SOURCE_DIR} NAME)
  if(NOT folder STREQUAL "cpu")
    set(folder gpu)
  endif()
  set(${out} kernels/${folder} PARENT_SCOPE)
endfunction()

# Gives the name of the header in this backend's quant/ folder that decodes a type in a layout, or "". It is
# <type>_<layout>.h, or <type>.h. The latter knows a layout other than GGUF's if it has a line
# "#define QUANT_<LAYOUT> ..".
function(greta_decode_header type layout out)
  greta_weight_folder(folder)
  set(folder "${PROJECT_SOURCE_DIR}/${folder}/quant")
  set(header "")
  if(layout STREQUAL "gguf" AND EXISTS "${folder}/${type}.h")
    set(header ${type})
  elseif(EXISTS "${folder}/${type}_${layout}.h")
    set(header ${type}_${layout})
  elseif(EXISTS "${folder}/${type}.h")
    string(TOUPPER ${layout} define)
    file(STRINGS "${folder}/${type}.h" knows REGEX "^#define QUANT_${define} ")
    if(knows)
      set(header ${type})
    endif()
  endif()
  set(${out} "${header}" PARENT_SCOPE)
endfunction()

# Gives the name of the header of this type and layout, without .h, in the folder that BY_TYPE names.
function(greta_type_header out)
  greta_weight_folder(folder)
  set(header any)
  foreach(own ${quant} ${quant}_${K_LAYOUT})
    if(EXISTS "${PROJECT_SOURCE_DIR}/${folder}/${K_BY_TYPE}/${own}.h")
      set(header ${own})
    endif()
  endforeach()
  file(GLOB _ CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${folder}/${K_BY_TYPE}/*.h")
  set(${out} ${header} PARENT_SCOPE)
endfunction()

# greta_quants(OUT [LAYOUT layout] [BLOCK least most] [WITH folder ..]) gives the types that have a decode
# header for the layout, `least` to `most` weights in a block, and a header <type>.h in one of the folders.
function(greta_quants out)
  cmake_parse_arguments(Q "" "LAYOUT" "BLOCK;WITH" ${ARGN})
  if(NOT Q_LAYOUT)
    set(Q_LAYOUT gguf)
  endif()
  if(NOT Q_BLOCK)
    set(Q_BLOCK 1 65536)
  endif()
  list(GET Q_BLOCK 0 least)
  list(GET Q_BLOCK 1 most)
  set(names "")
  set(headers "")
  greta_weight_folder(weight_folder)
  foreach(folder quant ${Q_WITH})  # CMake runs again when a header is added or removed
    file(GLOB there CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${weight_folder}/${folder}/*.h")
    if(NOT folder STREQUAL "quant")
      list(APPEND headers ${there})
    endif()
  endforeach()
  list(TRANSFORM headers REPLACE "^.*/" "")
  foreach(type ${GRETA_TYPES})
    greta_decode_header(${type} ${Q_LAYOUT} header)
    if(header AND GRETA_BLOCK_${type} GREATER_EQUAL least AND GRETA_BLOCK_${type} LESS_EQUAL most
       AND (NOT Q_WITH OR "${type}.h" IN_LIST headers))
      list(APPEND names ${type})
    endif()
  endforeach()
  set(${out} ${names} PARENT_SCOPE)
endfunction()

# Gives the numbers in the line "#define QUANT_PLANES {offset, bytes}, .." of a decode header as a list, or ""
# if the header has no such line.
function(greta_planes_of header out)
  set(path "${PROJECT_SOURCE_DIR}/kernels/gpu/quant/${header}.h")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${path}")
  file(STRINGS "${path}" line REGEX "^#define QUANT_PLANES ")
  string(REGEX REPLACE "//.*" "" line "${line}")
  string(REGEX MATCHALL "[0-9]+" numbers "${line}")
  set(${out} "${numbers}" PARENT_SCOPE)
endfunction()

# Writes kernels/abi/quant_planes.inc, which GPU kernels and the host read: a line
# QUANT_PLANES_OF(type, offset, bytes of plane 0, .. of plane 4) for each type that has the layout of planes.
function(greta_write_planes)
  set(table "")
  greta_quants(types LAYOUT planes)
  foreach(type ${types})
    greta_decode_header(${type} planes header)
    greta_planes_of(${header} numbers)
    list(APPEND numbers 0 0 0 0 0 0 0 0)
    list(SUBLIST numbers 0 10 numbers)
    list(JOIN numbers ", " numbers)
    string(APPEND table "QUANT_PLANES_OF(${type}, ${numbers})\n")
  endforeach()
  set(file "${PROJECT_BINARY_DIR}/generated/kernels/abi/quant_planes.inc")
  file(CONFIGURE OUTPUT "${file}" CONTENT "${table}" @ONLY)
endfunction()
