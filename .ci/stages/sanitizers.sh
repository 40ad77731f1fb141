# sanitizers: the tests under the address, leak and undefined behaviour sanitizers, compiled by clang 19 with
# warnings as errors. Left out are tests that compare numbers or refuse memory over minutes in code that
# others run too, an op's repeats, and what reads the machine code of GPUs.
# Minutes: 26 whole; 20 sampled, estimated (most of them compile the library and the HIP kernels).
# Inputs: of the tests of a folder, that folder and the sources that its tests are about.
# A job is a folder of tests; only the tests of chosen folders are compiled. The sample is one job in 4 of
# each group.
sample_of_sanitizers=4
latest_minute_of_sanitizers=38

jobs_of_sanitizers() {
  local text="src/text src/gguf src/platform src/compute/quant_type*"
  local engine="src/engine src/graph src/tune models"
  local device="src/compute src/runtime src/platform src/selftest backends kernels/cpu kernels/abi"
  device+=" tests/support"
  job text "text" "tests/text $text tests/support" true
  job text "gguf" "tests/gguf $text tests/support" true
  job text "platform" "tests/platform src/platform" true
  job text "fuzz" "tests/fuzz $text src/engine" true
  job device "runtime" "tests/runtime tests/mock_vulkan $device" true
  job device "ops" "tests/ops tests/compute tests/quant $device" true
  job device "spike" "tests/spike tests/mock_hip $device" true
  job device "hip" "tests/hip tests/mock_hip $device" true
  job models "graph" "tests/graph src/graph src/tune $device" true
  job models "engine" "tests/engine $engine $text $device" true
  job models "models" "tests/models tests/golden $engine $device" true
  job api "api" "tests/api src/api greta.h greta_compute.h $engine $text $device" true
  job api "cli" "tests/cli tools src/api greta.h greta_compute.h" true
  job api "radv" "tests/radv" true
  job api "python" "tests/python bindings/python src/api greta.h greta_compute.h src/engine $text" true
}

stage_sanitizers() {
  choose_jobs sanitizers
  local name folders="" shared=OFF slow='^(golden|cli_(results|sampling|divergence))$|million draws'
  slow+='|memory: each host allocation of (a call|opening)|memory: some allocations of a whole program'
  slow+='|memory: (some )?host allocations may fail (where pages|while a service)'
  slow+='|^hip\.|^hip: .* on gfx'
  local without=$slow
  for name in "${chosen[@]}"; do folders+=";$name"; done
  [[ $folders != *";ops"* ]] || folders+=";compute;quant"
  [[ $folders = *";cli"* ]] || without+='|^cli_'
  [[ $folders = *";fuzz"* ]] || without+='|^fuzz\.'
  [[ $folders = *";spike"* ]] || without+='|^spike'
  # The package of Python runs over a sanitized libgreta.so (tests/python/sanitized.cmake).
  [[ $folders = *";python"* ]] && shared=ON || without+='|^python'
  configure_sanitized "-DGRETA_TEST_FOLDERS=${folders#;}" -DGRETA_SHARED=$shared
  cmake --build build/fuzz -j "$(job_count)"
  echo "tests in the folders ${folders#;}"
  ctest --preset fuzz -j "$(job_count)" -E "$without"
  [[ $folders != *";hip"* ]] || sanitized_hip_kernels
}

# Every HIP kernel from its own source, sanitized, in one shape.
sanitized_hip_kernels() {
  local arch
  [ -e build/fuzz/tests/mock_hip ] || { skip "HIP: there is no clang that compiles its kernels"; return 0; }
  for arch in gfx942 gfx1100; do
    LD_LIBRARY_PATH=build/fuzz/tests/mock_hip/lib MOCK_HIP_ARCH=$arch build/fuzz/bin/greta-cli selftest \
      --device hip0 --quick || die "a HIP kernel under the sanitizers on $arch"
  done
}
