# GRETA_SANITIZE adds its flags to everything that is compiled and linked from here on. At -O1, and with line
# numbers as the only debug information, everything compiles in half the time.
if(GRETA_SANITIZE)
  string(REPLACE ";" "," sanitizers "${GRETA_SANITIZE}")
  add_compile_options(-fsanitize=${sanitizers} -fno-sanitize-recover=all -fno-omit-frame-pointer -O1 -g1)
  add_link_options(-fsanitize=${sanitizers})
endif()

# GRETA_FUZZ instruments a target so that its branches guide the fuzzers.
function(greta_guide_fuzzers target)
  if(GRETA_FUZZ AND NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "GRETA_FUZZ needs clang, this is ${CMAKE_CXX_COMPILER_ID}")
  elseif(GRETA_FUZZ)
    target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link)
  endif()
endfunction()
