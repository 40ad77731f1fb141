# greta_backend(NAME [ALONE] [INCLUDES FOLDER...]), called from backends/<name>/CMakeLists.txt, adds the
# sources of that folder to the library, and defines GRETA_BACKEND_<NAME> for the row of
# src/runtime/backends.def. INCLUDES are folders of headers that only this backend sees; ALONE keeps its files
# out of a unity build. A backend that cannot be built does not call it.
include_guard(GLOBAL)

function(greta_backend name)
  cmake_parse_arguments(PARSE_ARGV 1 BACKEND "ALONE" "" "INCLUDES")
  file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.cpp")
  target_sources(greta_objects PRIVATE ${sources})
  set_property(SOURCE ${sources} TARGET_DIRECTORY greta_objects
    PROPERTY SKIP_UNITY_BUILD_INCLUSION ${BACKEND_ALONE})
  if(BACKEND_INCLUDES)
    set_property(SOURCE ${sources} TARGET_DIRECTORY greta_objects
      APPEND PROPERTY INCLUDE_DIRECTORIES ${BACKEND_INCLUDES})
  endif()
  string(TOUPPER ${name} upper)
  set_property(SOURCE "${PROJECT_SOURCE_DIR}/src/runtime/backends.cpp" TARGET_DIRECTORY greta_objects
    APPEND PROPERTY COMPILE_DEFINITIONS GRETA_BACKEND_${upper})
endfunction()
