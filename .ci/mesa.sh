# Mesa and validation layers that are newer than the system's. Debian 12's lavapipe has no matrix units, its
# layers do not look into kernels, and its RADV knows no gfx1201. Debian sid has all of it. It is unpacked
# beside the system, once for all stages, unless GRETA_NEWER_MESA names a folder where that was done. Where
# sid's cannot be unpacked, that of the next Debian (forky) stands in for it; it has no gfx1201.

newer=""
newer_mesa() {
  local folder=${GRETA_NEWER_MESA:-$work/newer}
  [ -z "$newer" ] || return 0
  [ -n "${GRETA_NEWER_MESA:-}" ] || unpack_mesa "$folder" sid mesa-drm-shim ||
    unpack_mesa "$folder" forky || true
  newer=$folder/usr/lib/x86_64-linux-gnu
  newer_driver lvp >/dev/null # before two jobs want it
  newer_preload=$work/null_page.so
  cc -shared -fPIC -o "$newer_preload" tests/support/null_page.c &&
    LD_PRELOAD=$newer_preload env true || newer_preload=""
}

# unpack_mesa FOLDER SUITE [PACKAGE...]
unpack_mesa() {
  local folder=$1 entry
  entry=$(entry_like bookworm "$2")
  shift 2
  [ -n "$entry" ] &&
    unpack_beside "$folder" "$entry" mesa-vulkan-drivers vulkan-validationlayers "$@" >/dev/null 2>&1 &&
    return
  rm -rf "$folder"
  return 1
}

# newer_has FILE WHAT: whether the newer libraries are there, this one too; if not, it says what is left out.
# A plan takes them to be there.
newer_has() {
  [ $plan = no ] || return 0
  newer_mesa
  [ -f "$newer/$1" ] && return
  skip "$2: there is no newer Mesa with $1"
  return 1
}

# newer_runs WHAT: whether the newer lavapipe runs all kernels, which may read the page at address 0
# (null_page.c).
newer_runs() {
  newer_has libvulkan_lvp.so "$1" || return 1
  [ $plan = no ] && [ -z "$newer_preload" ] || return 0
  skip "$1: nothing can be mapped at address 0"
  return 1
}

# newer_driver NAME: the file that names the newer driver to the loader.
newer_driver() {
  [ -f "$work/$1_newer.json" ] ||
    printf '{"ICD": {"api_version": "1.4.0", "library_path": "%s"}, "file_format_version": "1.0.0"}\n' \
      "$newer/libvulkan_$1.so" >"$work/$1_newer.json"
  echo "$work/$1_newer.json"
}

# on_newer PROGRAM...: with the newer loader, C library and lavapipe.
on_newer() {
  VK_DRIVER_FILES="$(newer_driver lvp)" "$newer/ld-linux-x86-64.so.2" --library-path "$newer" \
    ${newer_preload:+--preload "$newer_preload"} "$@"
}
