# greta_single_object_library(NAME OBJECT_LIBRARY...) makes lib<NAME>.a out of one relocatable object in
# which every symbol but greta_* is local. Inline functions and templates, which compilers put into groups
# that the final link shares by name, become ordinary local code too: otherwise another library's copy of
# std::vector<float>::push_back could be taken in place of ours, or ours dropped for one built with
# different flags.
#
# <NAME>::embedded is the same library for those who link it into a shared library of their own, which then
# does not show its functions. <NAME>::shared is lib<NAME>.so, made of the same object.
#
# With sanitizers or the fuzzer the objects are archived and linked as they are: their tables do not survive
# the joining. Symbols of the sanitizers stay open in lib<NAME>.so: who opens it has loaded their runtime.
include_guard(GLOBAL)

find_program(GRETA_LD NAMES ld.bfd ld REQUIRED)

# Sets `out` to the objects of a library. CMake counts a precompiled header among them.
function(greta_objects_of library out)
  set(${out} "$<FILTER:$<TARGET_OBJECTS:${library}>,EXCLUDE,[.][gp]ch$>" PARENT_SCOPE)
endfunction()

# Joins the objects of libraries, and sets `out` to the path of the joined object.
function(greta_join_objects name out)
  set(objects "")
  foreach(library ${ARGN})
    greta_objects_of(${library} some)
    list(APPEND objects "${some}")
  endforeach()
  set(list_file "${CMAKE_CURRENT_BINARY_DIR}/${name}_objects.txt")
  file(GENERATE OUTPUT "${list_file}" CONTENT "\"$<JOIN:${objects},\"\n\">\"\n")
  set(joined "${CMAKE_CURRENT_BINARY_DIR}/${name}_joined.o")
  set(object "${CMAKE_CURRENT_BINARY_DIR}/${name}.o")
  # .llvm_addrsig (clang) lists symbols by an index that joining invalidates.
  add_custom_command(OUTPUT "${object}"
    COMMAND ${GRETA_LD} -r --force-group-allocation -o "${joined}" "@${list_file}"
    COMMAND ${CMAKE_OBJCOPY} --wildcard "--keep-global-symbol=${name}_*" --remove-section=.llvm_addrsig
      "${joined}" "${object}"
    COMMAND ${CMAKE_COMMAND} -E rm "${joined}"
    DEPENDS ${objects} "${list_file}"
    COMMENT "Joining the objects of lib${name}.a" VERBATIM COMMAND_EXPAND_LISTS)
  set(${out} "${object}" PARENT_SCOPE)
endfunction()

function(greta_single_object_library name)
  add_library(${name} STATIC)
  add_library(${name}::${name} ALIAS ${name})
  if(GRETA_SANITIZE OR GRETA_FUZZ)
    set(all "")
    foreach(library ${ARGN})
      greta_objects_of(${library} objects)
      list(APPEND all "${objects}")
    endforeach()
    target_sources(${name} PRIVATE ${all})
    greta_shared_library(${name} ${all})
    set_target_properties(${name} PROPERTIES LINKER_LANGUAGE CXX)
  else()
    greta_join_objects(${name} object ${ARGN})
    target_sources(${name} PRIVATE "${object}")
    greta_shared_library(${name} "${object}")
    target_link_options(${name}_shared PRIVATE "LINKER:--no-undefined")
    # A C program is linked by its C compiler, so the C++ runtime is named for it.
    set_target_properties(${name} PROPERTIES LINKER_LANGUAGE C)
    target_link_libraries(${name} INTERFACE
      $<$<NOT:$<LINK_LANGUAGE:CXX>>:stdc++> $<$<NOT:$<LINK_LANGUAGE:CXX>>:m>)
  endif()
  target_link_libraries(${name} INTERFACE Threads::Threads ${CMAKE_DL_LIBS})
  # Only the headers, not the folder that they lie in.
  foreach(header ${name}.h ${name}_compute.h)
    configure_file("${CMAKE_CURRENT_SOURCE_DIR}/${header}" "${CMAKE_CURRENT_BINARY_DIR}/include/${header}"
      COPYONLY)
  endforeach()
  greta_show_header(${name})

  add_library(${name}_embedded INTERFACE)
  add_library(${name}::embedded ALIAS ${name}_embedded)
  set_target_properties(${name}_embedded PROPERTIES EXPORT_NAME embedded)
  target_link_libraries(${name}_embedded INTERFACE ${name})
  target_link_options(${name}_embedded INTERFACE "LINKER:--exclude-libs,lib${name}.a")
endfunction()

function(greta_show_header name)
  target_include_directories(${name} INTERFACE
    "$<BUILD_INTERFACE:${CMAKE_CURRENT_BINARY_DIR}/include>"
    "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")
endfunction()

# While the major number is 0, a minor one may break the interface, so both are in the name.
function(greta_shared_library name)
  set(version "${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}")
  file(CONFIGURE OUTPUT ${name}.map CONTENT "GRETA_@version@ { global: @name@_*; local: *; };\n" @ONLY)
  add_library(${name}_shared SHARED ${ARGN})
  add_library(${name}::shared ALIAS ${name}_shared)
  set_target_properties(${name}_shared PROPERTIES EXPORT_NAME shared OUTPUT_NAME ${name} LINKER_LANGUAGE CXX
    VERSION ${PROJECT_VERSION} SOVERSION ${version} LINK_DEPENDS "${CMAKE_CURRENT_BINARY_DIR}/${name}.map"
    EXCLUDE_FROM_ALL $<NOT:$<BOOL:${GRETA_SHARED}>>)
  # Its own calls stay in it, whatever other libgreta.so the process has loaded.
  target_link_options(${name}_shared PRIVATE "LINKER:-Bsymbolic"
    "LINKER:--version-script=${CMAKE_CURRENT_BINARY_DIR}/${name}.map")
  target_link_libraries(${name}_shared PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
  greta_show_header(${name}_shared)
endfunction()
