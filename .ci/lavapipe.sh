# How programs of the release build run on lavapipe, Mesa's driver on the processor; for the stages lavapipe
# and validation.

# Messages of the validation layers begin with one of these words.
of_layers='^(Validation|VUID|UNASSIGNED|SYNC-)'

find_lavapipe() {
  tools_to_build
  tools_to_test
  build release -DGRETA_TESTS=ON
  lavapipe=$(find /usr/share/vulkan/icd.d -name 'lvp_icd*.json' | head -n 1)
  [ -n "$lavapipe" ] || die "Mesa's lavapipe is not installed"
  need vulkan-validationlayers
  matrix_kernels_built
}

# compiled_for BITS: the folder where Mesa keeps what it compiled for vectors of so many bits. In one folder
# for all of them it would take kernels for other lanes.
compiled_for() {
  local folder=${XDG_CACHE_HOME:-$HOME/.cache}/greta-lanes-$(($1 / 32))
  mkdir -p "$folder"
  echo "$folder"
}

# silently LOG COMMAND...: runs a command under core validation, which must have nothing to say. There is no
# layer with 4 lanes: groups have up to 64 subgroups then, and lavapipe states 32 for all widths but runs 64.
silently() {
  local log=$1 layers=VK_LAYER_KHRONOS_validation
  shift
  [ "${LP_NATIVE_VECTOR_WIDTH:-}" != 128 ] || layers=""
  VK_INSTANCE_LAYERS=$layers "$@" >"$log" 2>&1 || { tail -n 40 "$log"; return 1; }
  ! grep -E "$of_layers" "$log" || { echo "the layers had something to say"; return 1; }
}

# on_lavapipe BITS TESTS: some of the tests, with vectors of so many bits, 32 for each lane of a subgroup.
on_lavapipe() {
  local log="$work/lavapipe-$1-$BASHPID.txt"
  VK_DRIVER_FILES=$lavapipe LP_NATIVE_VECTOR_WIDTH=$1 MESA_SHADER_CACHE_DIR=$(compiled_for "$1") \
    GRETA_TEST_DEVICE=vulkan0 silently "$log" build/release/tests/greta_tests "$2" || return 1
  echo "$(($1 / 32)) lanes, $2: $(grep 'passed' "$log" | tail -n 1)"
}

# beside_cpu PART: some goldens, in part on lavapipe and in part on the CPU.
beside_cpu() {
  GRETA_GOLDENS_PART=$1 on_lavapipe 256 "architectures: the same bits on two devices*"
}

# goldens WORD...: of models whose names have one of the words.
goldens() {
  local log="$work/goldens-$BASHPID.txt"
  VK_DRIVER_FILES=$lavapipe GRETA_TEST_DEVICE=vulkan0 GRETA_GOLDEN_ONLY="$*" \
    python3 tests/golden/golden_test.py build/release/bin/greta-cli >"$log" 2>&1 || { cat "$log"; return 1; }
  echo "goldens of $*: $(tail -n 1 "$log")"
}

# kernel_right BITS KERNEL [--quick]: compares a kernel with float64 in all shapes, or in one. LLVM's
# optimisations are left out for one shape, since compiling takes longer than running.
kernel_right() {
  local log="$work/kernel-$BASHPID.txt"
  [ -z "${3:-}" ] || local -x GALLIVM_PERF=nopt
  VK_DRIVER_FILES=$lavapipe LP_NATIVE_VECTOR_WIDTH=$1 MESA_SHADER_CACHE_DIR=$(compiled_for "$1") \
    silently "$log" build/release/bin/greta-cli selftest ${3:+"$3"} --device vulkan0 --op "$2" || return 1
  echo "$(($1 / 32)) lanes, $2: $(tail -n 1 "$log")"
}

# newer_right KERNEL [--quick]: in all shapes, or in one, on the newer lavapipe, without the layer.
newer_right() {
  local log="$work/newer-$BASHPID.txt"
  on_newer build/release/bin/greta-cli selftest ${2:+"$2"} --device vulkan0 --op "$1" >"$log" 2>&1 ||
    { tail -n 20 "$log"; return 1; }
  echo "newer, $1: $(tail -n 1 "$log")"
}

newer_models() {
  local log="$work/models-newer.txt"
  GRETA_TEST_DEVICE=vulkan0 on_newer build/release/tests/greta_tests \
    "[architectures]~[devices],llama: logits*" >"$log" 2>&1 ||
    { tail -n 40 "$log"; return 1; }
  echo "models on matrix units: $(grep 'passed' "$log" | tail -n 1)"
}
