#!/bin/sh
# Installs what is missing, builds GRETA in Release with its tests and runs them all. Debian 12 and
# Ubuntu 24.04, as root or with sudo.
set -eu
cd "$(dirname "$0")/.."
. cmake/setup.sh

tools_to_build
tools_to_test
build release -DGRETA_TESTS=ON
say "Tests"
ctest --preset release -j "$(job_count)" || die "tests failed"
say "Done: all tests passed."
