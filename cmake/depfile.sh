#!/bin/sh
# depfile.sh DEPFILE OUTPUT LIST... writes one depfile for a compiler that was given several sources at once.
# A LIST is what the compiler wrote: a path in each line (clang), or a depfile of one line (glslc).
set -eu
depfile=$1 output=$2
shift 2
{
  printf '%s: \\\n' "$output"
  cat "$@" | sed -E '/^[^ ]+: /{s///; s/ /\n/g}' | sort -u | sed 's/[ #]/\\&/g; s/$/ \\/'
  printf '\n'
} >"$depfile"
rm "$@"
