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
# The words are flags, to be split.
# shellcheck disable=SC2046
"$cc" -std=c99 -Wall -Wextra -pedantic -Werror $("$pkg_config" --cflags greta) "$here/main.c" -o "$build/consumer" \
  $("$pkg_config" --static --libs greta)
"$build/consumer" "$("$pkg_config" --variable=modelsdir greta)/$(basename "$model")"
