# fuzz: each fuzzer of the sanitizers' build for GRETA_FUZZ_SECONDS (60), from its corpus.
# Minutes: 4 whole, 1 sampled, after the stage sanitizers; the build alone takes 5.
# Inputs: of a fuzzer its source, its corpus and the layers that it feeds.
# A job is a fuzzer; the sample is one in 4.
sample_of_fuzz=4

jobs_of_fuzz() {
  local file name text="src/text src/platform"
  local -A about=([session]="src/engine src/gguf" [chat]="src/text/chat src/text/jinja"
    [template]="src/text/jinja" [grammar]="src/text/grammar"
    [tokenizer]="src/text/tokenizer src/gguf" [gguf]="src/gguf src/text"
    [packed]="src/platform/packed*")
  for file in tests/fuzz/*.cpp; do
    name=$(basename "$file" .cpp)
    [ "$name" != replay ] || continue
    job fuzzers "$name" "$file tests/fuzz/corpus/$name ${about[$name]:-$text}" run_fuzzer "$name"
  done
}

stage_fuzz() {
  choose_jobs fuzz
  configure_sanitized
  cmake --build build/fuzz -j "$(job_count)" --target "${chosen[@]/#/fuzz_}"
  run_jobs "the fuzzers"
  echo "${#chosen[@]} fuzzers, ${GRETA_FUZZ_SECONDS:-60} s each"
}

# run_fuzzer NAME: one fuzzer from its corpus.
run_fuzzer() {
  local log="$work/fuzz-$1.log"
  mkdir -p "$work/corpus/$1"
  "build/fuzz/tests/fuzz/fuzz_$1" -max_total_time="${GRETA_FUZZ_SECONDS:-60}" -rss_limit_mb=2048 -timeout=20 \
    -print_final_stats=1 -verbosity=0 -artifact_prefix="$work/" "$work/corpus/$1" "tests/fuzz/corpus/$1" \
    >"$log" 2>&1 || { tail -n 40 "$log"; return 1; }
  echo "$1: $(sed -n 's/^stat::number_of_executed_units: *//p' "$log") runs"
}
