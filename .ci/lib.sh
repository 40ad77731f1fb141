# What all stages share: jobs, what is skipped, and builds. To be sourced by .ci/run, in the folder of the
# clone.

skip() { echo "skipped: $1" | tee -a "$work/skipped.txt"; }

minutes() { awk -v seconds="$1" 'BEGIN { printf "%.1f", seconds / 60 }'; }

# job GROUP NAME "INPUTS" COMMAND...: declares a job of the stage. Of each group a sample runs. INPUTS are
# files, folders or globs of the repository, kernel:PATTERN for Vulkan kernels and their table rows,
# hip:PATTERN for those of HIP, lines:FILE:NAME for the lines of a file of the release build that begin with
# NAME, or package:NAME for the version of a package (.ci/plan.py).
declare -A job_command=()
job() {
  local group=$1 name=$2 inputs=$3
  shift 3
  printf '%s\t%s\t%s\n' "$group" "$name" "$inputs" >>"$work/jobs.tsv"
  job_command[$name]=$(printf '%q ' "$@")
}

# optional_job ...: the same, but a whole run takes only a sample of the group too. The job runs where its
# inputs changed.
optional_job() { job "$1?" "${@:2}"; }

# choose_jobs STAGE: fills `chosen` with the names of the jobs that have to run, of those that jobs_of_STAGE
# declares. The stage states as sample_of_STAGE=N that one job in N of each group is a sample.
chosen=()
choose_jobs() {
  local stage=$1 share=sample_of_$1
  local -a options=(--build build/release --commit "$commit" --share "${!share}")
  : >"$work/jobs.tsv"
  job_command=()
  "jobs_of_$stage"
  [ $whole = no ] || options+=(--whole)
  [ $plan = no ] || options+=(--verbose)
  python3 -B .ci/plan.py "$stage" "$work/jobs.tsv" "$work/chosen.txt" "$work/$stage.whole" "${options[@]}" ||
    die "the plan of $stage"
  mapfile -t chosen <"$work/chosen.txt"
}

# run_jobs STAGE: runs those that were chosen, as many at once as there are cores, until time is up.
run_jobs() {
  local name
  for name in "${chosen[@]}"; do beside run_job "$name"; done
  all_done "$1"
}
run_job() {
  local start=$SECONDS
  [ $start -lt $last_begin ] || { echo "$1" >>"$work/left.txt"; return 0; }
  eval "${job_command[$1]}" || { echo "FAILED: the job '$1'"; return 1; }
  echo "  $1: $((SECONDS - start)) s"
}

# record_whole_run STAGE SECONDS: what a whole run had for inputs, into the checkout, for a commit.
record_whole_run() {
  [ $whole = yes ] && [ -f "$work/$1.whole" ] || return 0
  mkdir -p "$top/.ci/whole"
  { printf 'commit %s\nminutes %s\n' "$commit" "$(minutes "$2")"; cat "$work/$1.whole"; } >"$top/.ci/whole/$1"
  echo "recorded in .ci/whole/$1; please commit it"
}

# beside COMMAND...: starts it beside others, as many as there are cores. all_done WHAT: waits for them, and
# dies if one of them failed.
running=()
beside() {
  [ "$(jobs -rp | wc -l)" -lt "$(job_count)" ] || wait -n || true
  "$@" &
  running+=($!)
}
all_done() {
  local job
  for job in "${running[@]}"; do wait "$job" || die "$1"; done
  running=()
}

# Some kernels are left out of the release build where glslc is old.
matrix_kernels_built() {
  compgen -G 'build/release/kernels/vulkan/matmul_tiles_cm1_*.spv' >/dev/null ||
    skip "kernels of matrix units: glslc is too old for them"
}

# kernels_like PATTERN...: the names of the Vulkan kernels that the release build has and that match a glob.
kernels_like() {
  local pattern file
  for pattern in "$@"; do
    for file in build/release/kernels/vulkan/$pattern.spv; do
      [ ! -f "$file" ] || basename "$file" .spv
    done
  done
}

# Inputs that several stages name. Code of the host that chooses kernels, fills their arguments and launches
# them:
launching="src/compute src/runtime src/platform backends/vulkan kernels/abi"
# Code that orders launches, and models that run with it:
planning="src/graph src/tune src/engine/executor src/engine/model models"
# Oracles and the fixtures of tests:
checking="src/selftest tests/ops tests/support"

# One build for two stages: tests run in it, and fuzzers are guided by what the library alone does. Code of
# GPUs is not sanitized, so it is that of the release build; where there is none, one target for each size of
# wave is enough.
# configure_sanitized [CMAKE OPTION...]
configure_sanitized() {
  tools_to_build
  tools_to_test
  need clang-19 libclang-rt-19-dev
  local code=-DGRETA_GPU_CODE=$PWD/build/release
  [ -f build/release/generated/hip_kernels.tsv ] || code="-DGRETA_HIP_TARGETS=gfx942;gfx1100"
  cmake --preset fuzz -DCMAKE_COMPILE_WARNING_AS_ERROR=ON "$code" "$@" || die "cmake --preset fuzz"
}
