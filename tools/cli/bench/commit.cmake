# cmake -DSOURCE=DIR -DTO=FILE -DCOMPILER=TEXT -P commit.cmake
# Writes the commit of the sources and the compiler into FILE, unless FILE has them already. The commit is ""
# without git, and ends with "-dirty" where files differ from it.
set(commit "")
find_program(git git)
if(git AND EXISTS "${SOURCE}/.git")
  execute_process(COMMAND "${CMAKE_COMMAND}" -E env GIT_OPTIONAL_LOCKS=0
      "${git}" -C "${SOURCE}" describe --always --dirty --abbrev=10 --exclude=*
    OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
file(CONFIGURE OUTPUT "${TO}" CONTENT [[// Written by tools/cli/bench/commit.cmake.
#include "bench/build_commit.h"
const char greta::cli::kBuildCommit[] = "@commit@";
const char greta::cli::kBuildCompiler[] = "@COMPILER@";
]] @ONLY)
