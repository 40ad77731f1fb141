# tsan: what threads share, under the thread sanitizer: pools, sessions of one model on eight threads,
# runtimes side by side, requests to stop, services that eight threads add to and cancel at random, and whole
# programs.
# Minutes: 4 whole, estimated from the processor time of a build and a run; most of them compile the library.
# Inputs: the library for the CPU, and the tests of threads.
# A job is a kind of test. One build serves all, so the sample is one of them.
sample_of_tsan=3

jobs_of_tsan() {
  local library="src backends/cpu kernels/cpu kernels/abi models greta.h"
  job threads "threads:" "tests/api/threads_test.cpp $library" sanitized_threads '^threads: '
  job threads "pools" "tests/platform/thread_pool_test.cpp tests/platform/crew_test.cpp src/platform" \
    sanitized_threads '^(every worker|workers see|a pool|callers on several threads)'
  job threads "services" "tests/api/service_test.cpp $library" sanitized_threads '^service: '
  job threads "programs" "examples tests/api/example_test.py $library" sanitized_threads \
    '^example_(story|batch|serve)$'
}

stage_tsan() {
  choose_jobs tsan
  tools_to_build
  tools_to_test
  cmake --preset tsan -DGRETA_VULKAN=OFF -DGRETA_HIP=OFF -DGRETA_CLI=OFF \
    "-DGRETA_TEST_FOLDERS=api/threads;api/service;platform/thread_pool;platform/crew" ||
    die "cmake --preset tsan"
  cmake --build build/tsan -j "$(job_count)" --target greta_tests greta_example_{story,batch,serve}
  local name
  for name in "${chosen[@]}"; do run_job "$name" || die "threads"; done
}

# sanitized_threads PATTERN: the tests of these names, of which there are some.
sanitized_threads() {
  ctest --preset tsan -R "$1" --no-tests=error
}
