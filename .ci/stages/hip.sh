# hip: the HIP kernels and their backend, without an AMD GPU. All tests with the label hip: machine code is
# held to rules and a baseline, the backend and the whole program run on the mock runtime. Each kernel runs
# there too, from its own source, with the waves of MI300 and of Radeon, against float64: all of them in one
# shape, those of Q4_K and those without weights in all shapes. What is declared of HIP is compared with the
# headers of HIP 6 and 7, and these runtimes have to answer that there is no GPU.
# Minutes: 45 whole, after the stage tests; 4 sampled, estimated.
# Inputs: of a kernel its code objects and its rows of the kernel table; of one type of products also the code
# of the host and the oracles; of tests also their sources.
# A job is a kernel on a GPU, or a test; the sample is one job in 10 of each group.
sample_of_hip=10

jobs_of_hip() {
  local name arch archs beside="" host="$launching backends/hip tests/mock_hip"
  grep -q $'\tgfx950\t' build/release/generated/hip_kernels.tsv && beside=gfx950  # clang 19 does not know it
  while read -r name; do
    case $name in
      "") ;;
      hip.*) job "machine code" "$name" "hip:* tests/hip" labelled "$name" ;;
      hip_runtimes) job "runtimes" "$name" "backends/hip tests/hip" labelled "$name" ;;
      *) job "tests" "$name" "hip:* $host $planning tests/hip tests/runtime" labelled "$name" ;;
    esac
  done <<<"$(ctest --test-dir build/release -N -L hip 2>/dev/null | sed -n 's/^ *Test *#[0-9]*: //p')"
  for arch in gfx942 gfx1100 gfx1200; do
    job "kernels of all types" "$arch: all kernels in one shape" "hip:* $host $checking" \
      emulated "$arch" --quick
  done
  for name in $(hip_kernels); do
    case $name in
      *_q4_k | *_q4_k_planes | *_plain | *_q8x16 | rope_* | attention_*) ;;
      *) continue ;;
    esac
    case $name in  # layouts of matrices differ from RDNA3 to RDNA4, and MI350 has an instruction of its own
      *_mfma | *_mfma_*) archs="gfx942${beside:+ $beside}" ;;
      *_wmma | *_wmma_*) archs="gfx1100 gfx1200" ;;
      *) archs="gfx942 gfx1100" ;;
    esac
    for arch in $archs; do
      job "kernels" "$arch: $name" "hip:$name $host $checking" emulated "$arch" --op "$name"
    done
  done
}

stage_hip() {
  tools_to_build
  tools_to_test
  local version headers=""
  for version in 6 7; do
    unpack_hip "$version" || { skip "HIP $version: its packages cannot be unpacked"; continue; }
    HIP_RUNTIMES+=${HIP_RUNTIMES:+:}$work/hip$version
    headers+="${headers:+;}$work/hip$version/usr/include"
  done
  export HIP_RUNTIMES
  build release -DGRETA_TESTS=ON -DGRETA_HIP_HEADERS="$headers"
  [ -n "$(hip_kernels)" ] || { skip "HIP: there is no clang that compiles its kernels"; return 0; }
  choose_jobs hip
  run_jobs "HIP kernels on the mock runtime"
}

# The names of the library's HIP kernels.
hip_kernels() {
  [ -f build/release/generated/hip_kernels.tsv ] || return 0
  cut -f 1 build/release/generated/hip_kernels.tsv | sort -u |
    grep -v -e '_test$' -e '_spike$' -e '_mirrored$' || true
}

# labelled NAME: one test of CTest.
labelled() {
  local log="$work/hip-$BASHPID.txt" pattern
  pattern="^$(sed 's/[][().*+?^$|\\]/\\&/g' <<<"$1")\$"
  ctest --test-dir build/release --no-tests=error -R "$pattern" >"$log" 2>&1 ||
    { tail -n 40 "$log"; return 1; }
  ! grep -q 'Skipped' "$log" || skip "the test $1"
}

# emulated GPU OPTION...: compares kernels with float64, as the options of the self-test say.
emulated() {
  local log="$work/emulated-$BASHPID.txt" arch=$1
  shift
  LD_LIBRARY_PATH=build/release/tests/mock_hip/lib MOCK_HIP_ARCH=$arch build/release/bin/greta-cli selftest \
    --device hip0 "$@" >"$log" 2>&1 || { tail -n 40 "$log"; return 1; }
  ! grep -q ' 0 kernels' "$log" || { grep ' 0 kernels' "$log"; echo "did not run on $arch"; return 1; }
}

# unpack_hip VERSION: the runtime and headers of Debian sid, or of experimental, into $work/hipVERSION.
unpack_hip() {
  local entries from=""
  entries=$(entry_like bookworm sid)
  [ -n "$entries" ] || return 1
  if [ "$1" = 7 ]; then
    entries+=$'\n'$(entry_like bookworm experimental)
    from="-t experimental"
  fi
  # shellcheck disable=SC2086
  unpack_beside "$work/hip$1" "$entries" $from "libamdhip64-$1" libamdhip64-dev >/dev/null 2>&1
}
