# GRETA_SANITIZE and GRETA_FUZZ put their flags on everything that is compiled and linked from here on. All
# compiles in half the time at -O1, and lines are enough to find a place.
if(GRETA_SANITIZE OR GRETA_FUZZ)
  set(sanitizers ${GRETA_SANITIZE})
  if(GRETA_FUZZ)
    if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
      message(FATAL_ERROR "GRETA_FUZZ needs clang, this is ${CMAKE_CXX_COMPILER_ID}")
    endif()
    list(APPEND sanitizers fuzzer-no-link)
  endif()
  list(JOIN sanitizers "," sanitizers)
  add_compile_options(-fsanitize=${sanitizers} -fno-sanitize-recover=all -fno-omit-frame-pointer -O1 -g1)
  add_link_options(-fsanitize=${sanitizers})
endif()
