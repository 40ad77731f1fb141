#!/bin/sh
# depfile.sh DEPFILE OUTPUT LIST... writes one depfile for a compiler that was given several sources at once.
# A LIST is what the compiler wrote: a path in each line (clang), or a depfile of one line (glslc). Relative
# paths are left out: they are the sources, on which the command depends anyway, and ninja would look for them
# elsewhere.
set -eu
depfile=$1 output=$2
shift 2
{
  printf '%s: \\\n' "$output"
  cat "$@" | sed -E '/^[^ ]+: /{s///; s/ /\n/g}' | grep '^/' | sort -u | sed 's/[ #]/\\&/g; s/$/ \\/'
  printf '\n'
} >"$depfile"
rm "$@"
