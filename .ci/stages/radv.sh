# radv: RADV, Mesa's driver for AMD, compiles Vulkan kernels for GPUs that are not there. The gate holds them
# against ceilings and a baseline (docs/vulkan.md), and has to fail on a baseline that was spoiled. gfx1201
# needs Debian sid's Mesa.
# Minutes: 13 whole, 2 sampled.
# Inputs: of each kernel its SPIR-V, its rows of the kernel table and the constants of its pipelines; the
# gate and its baselines; the version of Mesa.
# A job is a kernel, for all families; the sample is one kernel in 10.
sample_of_radv=10

jobs_of_radv() {
  local name list=build/release/radv_pipelines.txt gate="tests/radv package:mesa-vulkan-drivers"
  [ ! -x build/release/tests/radv/greta_radv_gate ] ||
    build/release/tests/radv/greta_radv_gate --list >"$list"
  for name in $(kernels_like '*'); do
    case $name in *_test | *_spike | chain_check) continue ;; esac  # the gate reads the kernel table alone
    job kernels "$name" "kernel:$name lines:radv_pipelines.txt:$name $gate"
  done
}

stage_radv() {
  tools_to_build
  tools_to_test
  cmake --preset release -DGRETA_TESTS=ON >"$work/radv-cmake.txt" ||
    { cat "$work/radv-cmake.txt"; die "cmake"; }
  cmake --build build/release --target greta_radv_gate -j "$(job_count)"
  matrix_kernels_built
  choose_jobs radv
  local family drivers
  drivers=$(find /usr/share/vulkan/icd.d -name 'radeon_icd*.json' | head -n 1)
  [ -n "$drivers" ] || die "Mesa's RADV is not installed"
  for family in navi21 navi31 gfx1151; do
    radv_gate "$family" env MESA_SHADER_CACHE_DISABLE=true VK_DRIVER_FILES="$drivers" \
      RADV_FORCE_FAMILY="$family"
  done
  radv_sees_growth "$drivers"
  radv_of_sid
}

# radv_gate FAMILY [COMMAND...]: the chosen kernels for one family; the command starts the gate in another
# Mesa. All kernels are chosen by naming none: only then the gate misses what the baseline has and the build
# has not.
radv_gate() {
  local family=$1 log="$work/radv-$1"
  local -a only=("${chosen[@]}")
  shift
  [ "${#chosen[@]}" -lt "${#job_command[@]}" ] || only=()
  "$@" build/release/tests/radv/greta_radv_gate "${only[@]}" >"$log.txt" 2>"$log.err" || {
    tail -n 1 "$log.txt"
    grep FAILED "$log.err" || tail -n 5 "$log.err"
    die "RADV's $family"
  }
  tail -n 1 "$log.txt"
}

# radv_sees_growth DRIVERS: the gate has to fail on a baseline whose kernels had 13 VGPRs less.
radv_sees_growth() {
  local before log="$work/radv-growth.txt"
  for before in tests/radv/baseline/*/navi31.tsv; do
    mkdir -p "$work/spoiled/$(basename "${before%/*}")"
    awk -F'\t' -v OFS='\t' '!/^#/ { $4 -= 13 } 1' "$before" >"$work/spoiled/${before#tests/radv/baseline/}"
  done
  if VK_DRIVER_FILES=$1 RADV_FORCE_FAMILY=navi31 build/release/tests/radv/greta_radv_gate \
    --baselines "$work/spoiled" matmul_rows_q4_k >"$log" 2>&1; then
    ! grep -q '^no baseline' "$log" ||
      { skip "what has grown in RADV's kernels: $(grep '^no baseline' "$log")"; return 0; }
    die "the gate does not see what has grown"
  fi
  grep -q 'VGPRs, the baseline has' "$log" || { tail -n 5 "$log"; die "the gate on a spoiled baseline"; }
  echo "a spoiled baseline: seen"
}

# RDNA 4 is beyond Debian 12's Mesa. Sid's brings a loader and a C library of its own, and its null device is
# a kernel driver that is preloaded.
radv_of_sid() {
  newer_has libamdgpu_noop_drm_shim.so gfx1201 || return 0
  radv_gate gfx1201 env MESA_SHADER_CACHE_DISABLE=true VK_DRIVER_FILES="$(newer_driver radeon)" \
    AMDGPU_GPU_ID=gfx1201 "$newer/ld-linux-x86-64.so.2" --library-path "$newer" \
    --preload "$newer/libamdgpu_noop_drm_shim.so"
}
