# lavapipe: Vulkan kernels on the processor, compared with float64 and with the CPU's goldens: devices,
# models, plans without one of their barriers, and every kernel in all its shapes with 8 lanes. What crosses
# lanes also runs with 4 and 16 lanes. The core validation layer must have nothing to say. Tiles on
# cooperative matrices run on a newer lavapipe.
# Minutes: 17 whole, 5 sampled.
# Inputs: of a kernel's jobs its SPIR-V and its rows of the kernel table. The kernels of one type of weights
# (Q4_K), of attention and of the small ops also have the code that launches kernels and the oracles; those of
# the types in `in_all_shapes` have the oracles; models also have the code that plans steps. The system's Mesa
# is an input of all.
# A job is a kernel or some tests with a number of lanes; the sample is one job in 10 of each group.
sample_of_lavapipe=10

# Types of weights whose kernels run in all shapes in a whole run too, by the ways in which kernels unpack
# them. Kernels of other types do so where they changed, or as a sample; in one shape all of them run in the
# stage validation.
in_all_shapes=(q6_k_planes q2_k iq2_xxs_planes mxfp4_planes f16)
products=(matmul_{rows,rows_normed,plain,tiles_plain,expert_{rows,summed,plain,tiles_plain}}
  matmul_rows_float{,_normed})

jobs_of_lavapipe() {
  local mesa="package:mesa-vulkan-drivers" host="$launching $checking" small bits kernel
  small="route*,rope*,norm*,gate*,add*,softcap*,combine*,sum*,products*,gemm*,softmax*,cast*"
  lavapipe_tests
  for bits in 128 512; do
    job "small ops" "$((bits / 32)) lanes: small ops" "kernel:[!m]* $host $mesa" on_lavapipe "$bits" \
      "$small,convert*,embed*,kv_write*"
    job "small ops" "$((bits / 32)) lanes: sample" "kernel:sample* $host $mesa" \
      on_lavapipe "$bits" "sample: *"
    job "lanes" "$((bits / 32)) lanes: attention" "kernel:attention* $host $mesa" \
      kernel_right "$bits" attention --quick
  done
  for kernel in $(kernels_like "${products[@]/%/_*}" | sort -u); do products_of "$kernel"; done
  lavapipe_newer
}

# Products of one kernel, in all shapes with 8 lanes and in one shape with 4 and 16.
products_of() {
  local kernel=$1 type add inputs bits
  case $kernel in
    *_q4_k_planes | matmul_rows_float*_f16) # of all ways to launch one
      job "products" "8 lanes: $kernel" "kernel:$kernel $host $mesa" kernel_right 256 "$kernel"
      for bits in 128 512; do
        job "lanes" "$((bits / 32)) lanes: $kernel" "kernel:$kernel $host $mesa" \
          kernel_right "$bits" "$kernel" --quick
      done
      return
      ;;
  esac
  add=optional_job inputs="kernel:$kernel $mesa"
  for type in "${in_all_shapes[@]}"; do
    [[ $kernel != *[a-z]_"$type" ]] || add=job inputs="kernel:$kernel src/selftest/checks $mesa"
  done
  $add "products of other types" "8 lanes: $kernel" "$inputs" kernel_right 256 "$kernel"
}

# What takes longest comes first.
lavapipe_tests() {
  local models="kernel:* $host $planning tests/models tests/golden tests/graph $mesa" tests
  job "ops" "attention" "kernel:attention* kernel:kv_write* kernel:norm* $host $mesa" \
    on_lavapipe 256 "attention: *"
  job "models" "architectures" "$models" on_lavapipe 256 "[architectures]~[devices]"
  job "ops" "chain" "kernel:matmul_rows* $host $mesa" on_lavapipe 256 "chain: *"
  job "ops" "small ops" "kernel:[!m]* kernel:matmul_rows_*q4_k* $host $mesa" on_lavapipe 256 \
    "sample: *,convert*,kv_write*,embed*,$small,matmul: the same bits*"
  for tests in "[graph]" "llama: *" "tales: *" "state: *"; do
    job "models" "$tests" "$models" on_lavapipe 256 "$tests"
  done
  job "models" "two devices" "$models" beside_cpu 0/12
  job "devices" "devices" \
    "kernel:*_test src/runtime src/platform backends/vulkan tests/runtime tests/support $mesa" \
    on_lavapipe 256 "[runtime]~[vulkan]"
  job "models" "api" "$models src/api tests/api greta.h greta_compute.h" on_lavapipe 256 "api: *"
  job "models" "goldens of tales-llama" "$models" goldens tales-llama
  job "models" "goldens of others" "$models" goldens stories260K babyllama llama-2
}

lavapipe_newer() {
  newer_has libvulkan_lvp.so "matrix units" || return 0
  local kernel
  for kernel in matmul_tiles_cm1_{q4_k_planes,f16,q8_0_planes} matmul_expert_tiles_cm1_q4_k_planes \
    products_cm1; do
    job "matrix units" "newer: $kernel" "kernel:$kernel $host" newer_right "$kernel"
  done
  job "matrix units" "newer: gemm_cm1" "kernel:gemm_cm1 $host" newer_right gemm_cm1 --quick
  newer_runs "models on matrix units" || return 0
  job "models" "newer: models" "kernel:* $host $planning tests/models tests/golden" newer_models
}

stage_lavapipe() {
  local lavapipe
  find_lavapipe
  choose_jobs lavapipe
  run_jobs "Vulkan kernels on lavapipe"
}
