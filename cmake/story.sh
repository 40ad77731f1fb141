#!/bin/sh
# Installs what is missing, builds GRETA in Release and writes a story with the bundled model. Debian 12 and
# Ubuntu 24.04, as root or with sudo.
set -eu
cd "$(dirname "$0")/.."
. cmake/setup.sh

build_program() {
  if [ -f build/release/CMakeCache.txt ]; then build release; else build release -DGRETA_TESTS=OFF; fi
}
begin_stages story
stage "Packages to build with" "1 to 5 minutes" tools_to_build
stage "The program" "$(build_time 17)" build_program
printf '\nA story:\n\n'
build/release/bin/greta-cli chat -q -p "Tell me a story about a beaver." || die "greta-cli chat"
cat <<'END'

What to type next:
  build/release/bin/greta-cli chat             talk with the bundled model, which tells stories
  build/release/bin/greta-cli -m FILE.gguf     run a model of your own
  build/release/bin/greta-cli doctor           see whether a GPU is found, and why not
  build/release/bin/greta-cli -h               all commands
END
