#!/bin/sh
# symbols.sh NM LIBRARY HEADER: the library is one object, and it defines for others what the header declares.
set -eu
nm=$1 library=$2 header=$3
objects=$("$nm" "$library" | grep -c ':$')
if [ "$objects" -ne 1 ]; then
  echo "$library has $objects objects, expected 1"
  exit 1
fi
defined=$("$nm" --extern-only --defined-only "$library" | awk 'NF == 3 { print $3 }' | sort)
declared=$(sed -n 's/^GRETA_API .*[ *]\(greta_[a-z0-9_]*\)(.*/\1/p' "$header" | sort)
if [ "$defined" != "$declared" ]; then
  echo "only in the header (-) or only in the library (+):"
  { echo "$declared" | sed 's/$/ -/'; echo "$defined" | sed 's/$/ +/'; } | sort | awk '
    { side[$1] = side[$1] $2 }
    END { for (name in side) if (length(side[name]) == 1) print side[name] " " name }'
  exit 1
fi
echo "$(echo "$defined" | wc -l) symbols, all declared in the header"
