#!/bin/sh
# Installs what is missing, builds GRETA in Release and writes a story with the bundled model. Debian 12 and
# Ubuntu 24.04, as root or with sudo.
set -eu
cd "$(dirname "$0")/.."
. cmake/setup.sh

tools_to_build
if [ -f build/release/CMakeCache.txt ]; then build release; else build release -DGRETA_TESTS=OFF; fi
say "A story"
build/release/bin/greta-cli chat -p "Tell me a story about a beaver." || die "greta-cli chat"
say "Done. The program is build/release/bin/greta-cli; it says what it can do with -h."
