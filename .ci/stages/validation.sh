# validation: the newer lavapipe with newer validation layers, core and GPU-assisted: devices, ops, products
# and attention with all types of cache in one shape each (selftest --quick), and all architectures, with no
# message. Of products a whole run takes the types of weights whose names begin with q; of the other types it
# takes a sample, and some of those that changed. Faults that are planted must be reported: a launch that
# reads past a buffer, a barrier that is missing.
# Minutes: 19 whole, 5 sampled.
# Inputs: of a job its kernels (SPIR-V and rows of the kernel table); of one type of weights (by first
# letter: q), attention, ops and models also the code that launches kernels, and the oracles; of models also
# the code that plans steps.
# A job is a family of kernels and a first letter of a type of weights; the sample is one job in 8 of each
# group. The planted faults always run.
sample_of_validation=8

jobs_of_validation() {
  local models="kernel:* $launching $checking $planning tests/models tests/golden"
  local host="$launching $checking package:vulkan-validationlayers" ops family letter inputs
  ops="rope*,add*,combine*,route*,sum*,products*,gemm*,kv_write*,softcap*,norm*,gate*,convert*,embed*"
  newer_has libVkLayer_khronos_validation.so "GPU-assisted validation" || return 0
  if newer_runs "models under GPU-assisted validation"; then
    job "models" "architectures" "$models" silent "architectures: logits*"
    job "models" "no buffer holds the largest" "$models" \
      silent "architectures: the same bits where no buffer holds the largest tensors"
    job "attention" "attention" "kernel:attention* $host" silent "--op attention"
    for family in matmul_{rows,tiles_plain,plain,expert_{rows,tiles_plain,plain,summed}}; do
      for letter in $(kernels_like "${family}_*" | sed "s/^${family}_//" | cut -c 1 | sort -u); do
        inputs="kernel:${family}_$letter*"
        if [ "$letter" = q ]; then
          job "products" "${family}_$letter" "$inputs $host" silent "--op ${family}_$letter*"
        else
          optional_job "products of other types" "${family}_$letter" "$inputs" \
            silent "--op ${family}_$letter*"
        fi
      done
    done
    job "products" "matmul_tiles_cm1" "kernel:matmul_tiles_cm1_q4_k_planes $host" \
      silent "--op matmul_tiles_cm1_q4_k_planes"
  fi
  job "devices" "devices" \
    "kernel:*_test src/runtime src/platform backends/vulkan tests/runtime tests/support" \
    silent "[runtime]~[vulkan]"
  job "ops" "small ops" "kernel:[!m]* $host" silent "$ops"
  job "ops" "sample" "kernel:sample* $host" silent "--op sample"
}

stage_validation() {
  local lavapipe
  find_lavapipe
  newer_mesa
  choose_jobs validation
  beside reported synchronization "a copy does not wait for the fill before it" SYNC-HAZARD env \
    VK_DRIVER_FILES="$lavapipe" VK_LAYER_ENABLES=VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT
  gpu_assisted
  all_done "GPU-assisted validation"
}

# What is not counted: what the layers say of their own settings; what glslc does to the types of shared
# memory (10684) and to the alignment of pointers that it loads (06314: glslang, issue 4024); and races
# between lanes of a subgroup, since the layers heed barriers of a whole group alone
# (Vulkan-ValidationLayers, issue 12813). In attention_plain a subgroup's first lane writes what all its
# lanes have read before they reduced it. In tiles_cm1 lanes read what their subgroup has stored as a matrix.
gpu_assisted() {
  newer_has libVkLayer_khronos_validation.so "GPU-assisted validation" || return 0
  sed "s|\"library_path\": *\"|&$newer/|" \
    "${newer%/lib/*}"/share/vulkan/explicit_layer.d/VkLayer_khronos_validation.json >"$work/layer.json"
  local -x VK_LAYER_PATH=$work VK_LAYER_GPUAV_ENABLE=1 VK_LAYER_MESSAGE_ID_FILTER
  VK_LAYER_MESSAGE_ID_FILTER=WARNING-Setting-Limit-Adjusted,VALIDATION-SETTINGS
  VK_LAYER_MESSAGE_ID_FILTER+=,VUID-StandaloneSpirv-None-10684
  VK_LAYER_MESSAGE_ID_FILTER+=,VUID-StandaloneSpirv-PhysicalStorageBuffer64-06314
  VK_LAYER_MESSAGE_ID_FILTER+=,SharedMemoryDataRace-RaceOnStore
  beside reported gpu-assisted "a launch reads past the end of a buffer" PhysicalStorageBuffer64 on_newer
  run_jobs "GPU-assisted validation"
}

# messages NAME COMMAND...: what the layers said, in a file; fails if the command does.
messages() {
  local log="$work/validation-$1.txt"
  shift
  GRETA_TEST_DEVICE=vulkan0 VK_INSTANCE_LAYERS=VK_LAYER_KHRONOS_validation "$@" >"$log" 2>&1 ||
    { tail -n 40 "$log"; die "under validation: $*"; }
  grep -E "$of_layers" "$log" >"$log.said" || true
}

# silent TESTS: some tests, or kernels of the self-test (--op NAME), with no message.
silent() {
  local tests=$1 name="assisted-$BASHPID" log
  local -a program=(build/release/tests/greta_tests "$tests")
  log="$work/validation-$name.txt"
  [[ $tests != *"no buffer"* ]] || program+=(-c llama-experts)
  [[ $tests != "--op "* ]] || {
    local -x GALLIVM_PERF=nopt
    [[ $tests != *tiles_cm1* ]] ||
      local -x VK_LAYER_MESSAGE_ID_FILTER=$VK_LAYER_MESSAGE_ID_FILTER,SharedMemoryDataRace-RaceOnLoad
    program=(build/release/bin/greta-cli selftest --quick --device vulkan0 --op "${tests#--op }")
  }
  messages "$name" on_newer "${program[@]}"
  [ ! -s "$log.said" ] || { head -n 40 "$log"; die "the layers had something to say of $tests"; }
  echo "gpu-assisted, $tests: $(grep 'passed\|all ops right' "$log" | tail -n 1)"
}

# reported NAME TEST MESSAGE COMMAND...: a fault that is planted.
reported() {
  local name=$1 test=$2 message=$3
  shift 3
  messages "$name" "$@" build/release/tests/greta_tests "planted: $test"
  grep -q "$message" "$work/validation-$name.txt.said" || die "$name validation did not see: $test"
  echo "$name saw: $test"
}
