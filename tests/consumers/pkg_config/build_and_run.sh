#!/bin/sh
# build_and_run.sh PKG_CONFIG CC PKG_CONFIG_PATH BUILD_FOLDER MODEL
set -eu
pkg_config=$1 cc=$2 path=$3 build=$4 model=$5
here=$(dirname "$0")
if [ ! -x "$pkg_config" ]; then
  echo "skipped: pkg-config is not installed"
  exit 77
fi
mkdir -p "$build"
export PKG_CONFIG_PATH="$path"
# build SOURCE PROGRAM; the words of pkg-config are flags, to be split.
# shellcheck disable=SC2046
build() {
  "$cc" -std=c99 -Wall -Wextra -pedantic -Werror $("$pkg_config" --cflags greta) "$1" -o "$2" \
    $("$pkg_config" --static --libs greta)
}
model="$("$pkg_config" --variable=modelsdir greta)/$(basename "$model")"

build "$here/main.c" "$build/consumer"
"$build/consumer" "$model"

# The example in README.md.
sed -n '/^```c$/,/^```$/p' "$here/../../../README.md" | sed '1d;$d' >"$build/example.c"
build "$build/example.c" "$build/example"
words=$("$build/example" "$model" | wc -w)
echo "the example wrote $words words"
[ "$words" -gt 20 ]
