#!/bin/sh
# Installs what is missing, builds GRETA in Release with its tests and runs them all. Debian 12 and
# Ubuntu 24.04, as root or with sudo. GRETA_CTEST has more options for ctest.
set -eu
cd "$(dirname "$0")/.."
. cmake/setup.sh

tools_to_build
tools_to_test
build release -DGRETA_TESTS=ON
say "Tests"
# shellcheck disable=SC2086
ctest --preset release -j "$(job_count)" ${GRETA_CTEST:-} || die "tests failed"
say "Done: all tests passed."
