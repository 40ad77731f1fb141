# A sanitized libgreta.so under Python, which is not sanitized itself. `cmake --preset fuzz
# -DGRETA_SHARED=ON`, a build, and `ctest --preset fuzz -R '^python'` run the tests of the package so.

# Sets `out` to the environment of the tests. The runtime of the sanitizers is loaded before Python.
# greta-cli, which has one of its own, is left out, and Python asks malloc for each object.
function(greta_sanitized_python out)
  set(name libasan.so)
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    set(name libclang_rt.asan-${CMAKE_SYSTEM_PROCESSOR}.so)
  endif()
  execute_process(COMMAND "${CMAKE_CXX_COMPILER}" -print-file-name=${name} OUTPUT_VARIABLE runtime
    OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT GRETA_SHARED OR NOT GRETA_SANITIZE MATCHES "address" OR NOT EXISTS "${runtime}")
    set(${out} "GRETA_LIBRARY=" PARENT_SCOPE)  # the tests are skipped
    return()
  endif()
  # Stacks of allocations are so short that those in the library do not reach Python, whose own leaks are
  # suppressed. What was freed is kept for a while, but not so long that memory grows in a test.
  set(options detect_leaks=1 malloc_context_size=2 allocator_may_return_null=1 quarantine_size_mb=16)
  list(JOIN options ":" options)
  set(${out} "LD_PRELOAD=${runtime};PYTHONMALLOC=malloc;ASAN_OPTIONS=${options}"
    "LSAN_OPTIONS=suppressions=${CMAKE_CURRENT_FUNCTION_LIST_DIR}/leaks.txt:print_suppressions=0"
    PARENT_SCOPE)
endfunction()
