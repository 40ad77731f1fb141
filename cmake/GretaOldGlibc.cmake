# greta_run_on_old_glibc(TARGET...): libraries and programs that run with glibc 2.28 and with every newer one,
# wherever they are built. Symbols of glibc have versions, and a link takes the newest one of the machine that
# links; old_glibc/functions.c asks for the older ones. It knows those of x86-64. A library of a wheel for
# manylinux_2_28 has to be so; auditwheel says whether it is.
include(CheckCSourceCompiles)
check_c_source_compiles("#include <features.h>
  #if !defined __x86_64__ || !defined __GLIBC__ || !__GLIBC_PREREQ(2, 34)
  #error
  #endif
  int main(void) { return 0; }" GRETA_GLIBC_IS_NEW)

function(greta_run_on_old_glibc)
  set(folder "${PROJECT_SOURCE_DIR}/cmake/old_glibc")
  foreach(target ${ARGN})
    target_sources(${target} PRIVATE "${folder}/functions.c")
    # The older versions are in libraries that newer ones keep empty for this. The unwinder of a new libgcc
    # needs a new glibc, so that of the system is taken.
    target_link_libraries(${target} PRIVATE -Wl,--push-state,--no-as-needed
      -l:libpthread.so.0 -l:libdl.so.2 -Wl,--pop-state)
    get_target_property(type ${target} TYPE)
    if(type STREQUAL "EXECUTABLE")
      target_sources(${target} PRIVATE "${folder}/start.c")
      target_link_options(${target} PRIVATE "LINKER:--wrap=__libc_start_main")
    endif()
  endforeach()
endfunction()
