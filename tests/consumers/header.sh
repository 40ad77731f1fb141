#!/bin/sh
# header.sh HEADER COMPILER...: the header is C99 and C++11, and all that came later, without a warning.
set -eu
header=$1
shift
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
printf '#include "%s"\nint main(void) { return (int)greta_version(); }\n' "$header" >"$folder/main.c"
count=0
for compiler in "$@"; do
  for standard in c99 c11 c17 c++11 c++14 c++17 c++20; do
    language=c
    case $standard in c++*) language=c++ ;; esac
    "$compiler" -x $language -std=$standard -Wall -Wextra -pedantic -Werror -fsyntax-only \
      "$folder/main.c" || {
      echo "$compiler -std=$standard refuses $header"
      exit 1
    }
    count=$((count + 1))
  done
done
[ $count -gt 0 ]
echo "$count times without a warning"
