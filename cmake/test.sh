#!/bin/sh
# Installs what is missing, builds GRETA in Release with its tests and runs them all. Debian 12 and
# Ubuntu 24.04, as root or with sudo. GRETA_CTEST has more options for ctest.
set -eu
cd "$(dirname "$0")/.."
. cmake/setup.sh

build_tests() { build release -DGRETA_TESTS=ON; }
begin_stages test
stage "Packages to build with" "1 to 5 minutes" tools_to_build
stage "Packages to test with" "1 to 5 minutes" tools_to_test
stage "The program and its tests" "$(build_time 60)" build_tests
# The tests show their own progress: a line each.
# shellcheck disable=SC2086
ctest --preset release -j "$(job_count)" ${GRETA_CTEST:-} || die "tests failed"
printf '\nAll tests passed. What to type next: build/release/bin/greta-cli chat\n'
