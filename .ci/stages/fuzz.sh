# fuzz: each fuzzer of the sanitizers' build, as often as tests/fuzz/runs.tsv says (GRETA_FUZZ_TIMES times as
# often), from its seeds and with new random numbers.
# Minutes: 7 whole, after the stage sanitizers, 5 of which build; 1 sampled, estimated.
# Inputs: of a fuzzer its source, its corpus and the layers that it feeds.
# A job is a fuzzer; the sample is one in 4.
sample_of_fuzz=4

jobs_of_fuzz() {
  local file name text="src/text src/platform"
  local -A about=([session]="src/engine src/gguf" [chat]="src/text/chat src/text/jinja"
    [template]="src/text/jinja" [grammar]="src/text/grammar"
    [tokenizer]="src/text/tokenizer src/gguf" [gguf]="src/gguf src/text"
    [model]="src/gguf src/engine src/graph src/compute models" [sampler]="src/engine/sampling"
    [packed]="src/platform/files/packed*"
    [pages]="src/engine/serve src/engine/executor src/platform/files/folder*"
    [requests]="tools/serve src/api src/engine/serve greta.h greta_compute.h"
    [compute]="src/api/compute greta_compute.h src/graph src/runtime src/compute"
    [api]="src/api greta.h greta_compute.h src/engine src/text src/gguf src/platform")
  for file in tests/fuzz/*.cpp; do
    name=$(basename "$file" .cpp)
    [ "$name" != replay ] || continue
    job fuzzers "$name" "$file $(seeds_of "$name") ${about[$name]:-$text}" run_fuzzer "$name"
  done
}

stage_fuzz() {
  choose_jobs fuzz
  configure_sanitized
  cmake --build build/fuzz -j "$(job_count)" --target "${chosen[@]/#/fuzz_}"
  run_jobs "the fuzzers"
}

# seeds_of NAME: the folder of inputs that a fuzzer starts from.
seeds_of() {
  if [ "$1" = model ]; then echo tests/golden/architectures; else echo "tests/fuzz/corpus/$1"; fi
}

# run_fuzzer NAME: one fuzzer from its seeds. A single allocation of half a GiB is a failure, too.
run_fuzzer() {
  local log="$work/fuzz-$1.log" runs
  runs=$(awk -v name="$1" '$1 == name { print $2 }' tests/fuzz/runs.tsv)
  [ -n "$runs" ] || { echo "tests/fuzz/runs.tsv has no row for $1"; return 1; }
  mkdir -p "$work/corpus/$1"
  "build/fuzz/tests/fuzz/fuzz_$1" -runs=$((runs * ${GRETA_FUZZ_TIMES:-1})) -rss_limit_mb=2048 \
    -malloc_limit_mb=512 -timeout=20 -print_final_stats=1 -verbosity=0 -artifact_prefix="$work/" \
    "$work/corpus/$1" "$(seeds_of "$1")" >"$log" 2>&1 || { tail -n 40 "$log"; return 1; }
  echo "$1: $(sed -n 's/^stat::number_of_executed_units: *//p' "$log") runs"
}
