# tests: README's test command with the test data and with warnings as errors (GCC 12 on Debian 12), then
# README's first command, which has to write a story. The stage hip has the tests of that label.
# Minutes: 12 whole; it always runs whole.
# Inputs: everything.

# What the tests print is read from $work/tests.xml, since another ctest in the same folder overwrites
# LastTest.log.
stage_tests() {
  grep -qx 'sh cmake/test.sh' README.md || die "README.md does not give sh cmake/test.sh as its command"
  tools_to_build
  local warnings=""
  [ "$(c++ -dumpversion 2>/dev/null)" != 12 ] || warnings=-Werror
  GRETA_CTEST="-LE ^hip\$ --output-junit $work/tests.xml" CXXFLAGS=$warnings CFLAGS=$warnings \
    sh cmake/test.sh 2>&1 | tee "$work/tests.log"
  terminals_were_there
  record_sizes
  sh cmake/story.sh >"$work/story.txt" || die "story.sh"
  [ "$(wc -w <"$work/story.txt")" -gt 50 ] || die "story.sh wrote no story"
}

# How large the program and the library are, as the rule of sizes has measured them: for the end of the run,
# and after a whole run for a commit.
record_sizes() {
  grep -o '[^>]*kernels of .* MB, at most [0-9]*' "$work/tests.xml" | sort -u >"$work/sizes.txt" ||
    die "the rule of sizes has printed none"
  [ $whole = no ] || { mkdir -p "$top/.ci/whole" && cp "$work/sizes.txt" "$top/.ci/whole/sizes"; }
}

# Tests of greta-cli on a terminal skip themselves where the system has no pseudo-terminals.
terminals_were_there() {
  local reason
  reason=$(grep -o -m 1 'the system has no pseudo-terminal[^<]*' "$work/tests.xml") || return 0
  skip "tests of greta-cli on a terminal: $reason"
}
