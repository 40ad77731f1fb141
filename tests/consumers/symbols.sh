#!/bin/sh
# symbols.sh NM READELF LIBRARY SHARED_LIBRARY SONAME LIST HEADER...: the library is one object; it, the
# shared library and the headers together have the functions of the list and no others; the shared library has
# this name.
set -eu
nm=$1 readelf=$2 library=$3 shared=$4 soname=$5 list=$6
shift 6
objects=$("$nm" "$library" | grep -c ':$')
if [ "$objects" -ne 1 ]; then
  echo "$library has $objects objects, expected 1"
  exit 1
fi

# compare WHAT NAMES: with the list.
compare() {
  [ "$2" != "$(cat "$list")" ] || return 0
  echo "only in $list (-) or only in $1 (+):"
  { sed 's/$/ -/' "$list"; echo "$2" | sed 's/$/ +/'; } | sort | awk '
    { side[$1] = side[$1] $2 }
    END { for (name in side) if (length(side[name]) == 1) print side[name] " " name }'
  echo "A function that goes breaks programs. One that comes is a line of the list."
  exit 1
}
compare "$*" "$(sed -n 's/^GRETA_API .*[ *]\(greta_[a-z0-9_]*\)(.*/\1/p' "$@" | LC_ALL=C sort)"
shown=$("$nm" --extern-only --defined-only "$library" | awk 'NF == 3 { print $3 }' | LC_ALL=C sort)
compare "$library" "$shown"
exported=$("$nm" --dynamic --defined-only "$shared" | awk '$2 == "T" { print $3 }' | LC_ALL=C sort)
compare "$shared" "$(echo "$exported" | sed 's/@@.*//')"
others=$("$nm" --dynamic --defined-only "$shared" | awk '$2 != "T" && $2 != "A" { print $3 }')
if [ -n "$others" ]; then
  echo "$shared shows more than functions: $others"
  exit 1
fi
"$readelf" --dynamic "$shared" | grep -q "SONAME.*\[$soname\]" || {
  echo "$shared is not named $soname"
  exit 1
}
echo "$(wc -l <"$list") functions in the headers, the library and $soname"
