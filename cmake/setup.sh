# Shared by story.sh and test.sh: installs packages that are missing and builds. POSIX sh, Debian 12 and
# Ubuntu 24.04. To be sourced with the repository as working directory.

say() { printf '\n== %s\n' "$*"; }
note() { printf '   %s\n' "$*"; }
die() {
  printf '\nFAILED: %s\n' "$*" >&2
  exit 1
}

# stage "WHAT" "HOW LONG" COMMAND...: runs it with all that it prints in the file $setup_log, and prints one
# line for it. On a terminal the line shows how far a build has come.
stage() {
  what=$1 long=$2
  shift 2
  printf '%s (%s) ... ' "$what" "$long"
  printf '\n######## %s\n' "$what" >>"$setup_log"
  began=$(date +%s)
  ("$@") >>"$setup_log" 2>&1 </dev/null &
  running=$!
  trap 'kill "$running" 2>/dev/null; printf "stopped\n"; exit 130' INT TERM HUP
  while [ -t 1 ] && kill -0 "$running" 2>/dev/null; do
    sleep 1
    done_of=$(tail -c 400 "$setup_log" | grep -o '^\[[0-9]*/[0-9]*\]' | tail -n 1) || true
    [ -z "$done_of" ] || printf '\r\033[K%s (%s) ... %s ' "$what" "$long" "$done_of"
  done
  code=0
  wait "$running" || code=$?
  trap - INT TERM HUP
  seconds=$(($(date +%s) - began))
  if [ "$code" -ne 0 ]; then
    printf 'failed after %d s\n\nThe end of %s:\n\n' "$seconds" "$setup_log"
    tail -n 20 "$setup_log"
    exit 1
  fi
  printf 'done in %d s\n' "$seconds"
}

# begin_stages NAME: begins the log of a script.
begin_stages() {
  mkdir -p build
  setup_log=$PWD/build/$1.log
  : >"$setup_log"
  printf 'Details are in %s.\n' "$setup_log"
}

# About how long a build of `$1` minutes on one processor takes here.
build_time() {
  count=$(job_count)
  echo "about $((($1 + count - 1) / count)) minutes with $count at once, less where it was built before"
}

as_root() {
  if [ "$(id -u)" -eq 0 ]; then
    "$@"
  elif command -v sudo >/dev/null 2>&1; then
    sudo "$@"
  else
    die "needs root: run this as root, or install sudo"
  fi
}

apt_get() { as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300 "$@"; }

# Succeeds if a package is installed in a version that is new enough.
installed() {
  version=$(dpkg-query -W -f '${db:Status-Status} ${Version}' "$1" 2>/dev/null) || return 1
  case "$1 $version" in
    catch2\ installed\ [012].*) return 1 ;;
    *\ installed\ *) return 0 ;;
  esac
  return 1
}

# The version that apt would install, empty if it knows none.
candidate() { LC_ALL=C apt-cache policy "$1" | sed -n 's/^  Candidate: //p' | grep -v '^(none)$' || true; }

lists_are_fresh=no
update_lists() {
  if [ "$lists_are_fresh" = no ]; then
    note "apt-get update"
    apt_get update || die "apt-get update"
    lists_are_fresh=yes
  fi
}

# need PACKAGE[/SUITE]... installs the packages that are missing.
need() {
  missing=""
  for package in "$@"; do
    installed "${package%/*}" || missing="$missing $package"
  done
  if [ -z "$missing" ]; then
    note "already there: $*"
    return 0
  fi
  command -v apt-get >/dev/null 2>&1 || die "this script installs with apt only; install by hand:$missing"
  update_lists
  for package in $missing; do
    [ -n "$(candidate "${package%/*}")" ] ||
      die "apt knows no package $package (Ubuntu: is universe enabled?)"
  done
  note "installing:$missing"
  # shellcheck disable=SC2086
  apt_get install -y --no-install-recommends $missing || die "apt-get install$missing"
}

# want REASON PACKAGE... does the same for packages of an optional part, which is left out if apt lacks one.
want() {
  reason=$1
  shift
  all="yes"
  for package in "$@"; do
    installed "${package%/*}" && continue
    update_lists
    [ -n "$(candidate "${package%/*}")" ] && continue
    note "apt has no $package here: left out is $reason"
    all="no"
  done
  [ "$all" = no ] || need "$@"
}

# Prints apt's first source of a suite as a one-line entry for another suite, with its options and mirror.
entry_like() {
  suite=$1 new_suite=$2
  {
    cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list 2>/dev/null |
      awk -v suite="$suite" -v new="$new_suite" '
        $1 == "deb" { i = 2; options = ""
          if ($2 ~ /^\[/) { do { options = options $i " " } while ($(i++) !~ /\]$/) }
          if ($(i + 1) == suite) { print "deb " options $i " " new " main"; exit } }'
    for file in /etc/apt/sources.list.d/*.sources; do
      [ -f "$file" ] || continue
      awk -v suite="$suite" -v new="$new_suite" '
        function entry(  n, names, k) {
          n = split(suites, names, " ")
          for (k = 1; k <= n; ++k)
            if (names[k] == suite && types ~ /(^| )deb( |$)/ && enabled != "no" && !found) {
              sub(/ .*/, "", uris)
              print "deb " (key ~ /^\// ? "[signed-by=" key "] " : "") uris " " new " main"
              found = 1
            }
          types = suites = uris = key = enabled = "" }
        { line = $0; sub(/\r$/, "", line)
          value = line; sub(/^[^:]*:[ \t]*/, "", value)
          name = tolower(line); sub(/:.*/, "", name) }
        line ~ /^#/ { next }
        line ~ /^[ \t]*$/ { entry(); next }
        name == "types" { types = value } name == "suites" { suites = value } name == "uris" { uris = value }
        name == "signed-by" { key = value } name == "enabled" { enabled = tolower(value) }
        END { entry() }' "$file"
    done
  } | head -n 1
}

# add_backports PACKAGE... takes packages from Debian 12's backports, since it has Catch2 2 and an old Mesa.
add_backports() {
  suite=bookworm
  backports="$suite-backports"
  if LC_ALL=C apt-cache policy | grep -q "n=$backports"; then
    note "apt already has $backports"
    return 0
  fi
  entry=$(entry_like "$suite" "$backports")
  [ -n "$entry" ] || die "found no entry for $suite in /etc/apt to make one for $backports from"
  note "adding $backports, from the mirror that this machine uses:"
  note "  /etc/apt/sources.list.d/greta-backports.list: $entry"
  note "  /etc/apt/preferences.d/greta-backports: only $*"
  note "  (to undo, remove these two files)"
  echo "$entry" | as_root tee /etc/apt/sources.list.d/greta-backports.list >/dev/null
  as_root tee /etc/apt/preferences.d/greta-backports >/dev/null <<PIN
Package: *
Pin: release n=$backports
Pin-Priority: -1

Package: $*
Pin: release n=$backports
Pin-Priority: 500
PIN
  lists_are_fresh=no
}

knows_matrices() {
  printf '#version 460\n#extension GL_KHR_cooperative_matrix : require\n%s\nvoid main() {}\n' \
    '#extension GL_EXT_integer_dot_product : require' |
    "$1" --target-env=vulkan1.3 -fshader-stage=comp -o /dev/null - 2>/dev/null
}

# unpack_beside FOLDER "APT'S LINE" PACKAGE... unpacks packages of another Debian suite, with all that they
# need, in a folder. Nothing is installed.
unpack_beside() {
  state="$1/apt"
  mkdir -p "$state/lists/partial" "$state/cache/archives/partial" "$state/none" || return 1
  echo "$2" >"$state/sources.list"
  : >"$state/status"
  unpack_into=$1
  shift 2
  unpack_packages=$*
  set -- -qq -y -o Dir::Etc::SourceList="$state/sources.list" -o Dir::Etc::SourceParts="$state/none" \
    -o Dir::Etc::PreferencesParts="$state/none" -o Dir::State::Lists="$state/lists" \
    -o Dir::Cache="$state/cache" \
    -o Dir::State::status="$state/status" -o APT::Install-Recommends=false -o APT::Sandbox::User=root \
    -o Debug::NoLocking=1
  apt-get "$@" update || return 1
  # shellcheck disable=SC2086
  apt-get "$@" --download-only install $unpack_packages >/dev/null || return 1
  for package in "$state"/cache/archives/*.deb; do
    dpkg -x "$package" "$unpack_into" || return 1
  done
  rm -rf "$state"
}

# Debian 12's glslc knows neither packed products of integers nor cooperative matrices, which the fast kernels
# need. So Debian 13's is unpacked in build/tools, where CMake looks first. It runs with its own C library.
newer_glslc() {
  tools="$PWD/build/tools"
  command -v glslc >/dev/null 2>&1 && ! knows_matrices glslc || return 0
  ! knows_matrices "$tools/glslc" || return 0
  entry=$(entry_like bookworm trixie)
  [ -n "$entry" ] || return 0
  note "glslc is too old for the fast Vulkan kernels; Debian 13's goes into build/tools"
  rm -rf "$tools/trixie"
  if unpack_beside "$tools/trixie" "$entry" glslc; then
    loader=$(find "$tools/trixie/usr/lib" -name 'ld-linux-*.so.*' | head -n 1)
    printf '#!/bin/sh\nexec "%s" --library-path "%s" "%s" "$@"\n' "$loader" "${loader%/*}" \
      "$tools/trixie/usr/bin/glslc" >"$tools/glslc.new"
    chmod +x "$tools/glslc.new"
    knows_matrices "$tools/glslc.new" && mv "$tools/glslc.new" "$tools/glslc" && return 0
  fi
  rm -rf "$tools"
  note "that failed: left out are the kernels that need it"
}

# newest_clang TEST LEAST: sets `clang` to the number of the newest clang, from LEAST on, that passes TEST
# with its linker and tools.
newest_clang() {
  for clang in 30 29 28 27 26 25 24 23 22 21 20 19; do
    [ "$clang" -ge "$2" ] && "$1" "clang-$clang" && "$1" "lld-$clang" && "$1" "llvm-$clang" &&
      return 0
  done
  return 1
}
has_candidate() { [ -n "$(candidate "$1")" ]; }

# Plain clang compiles the kernels of the HIP backend; ROCm is not needed. From 20 on it knows the families of
# AMD's GPUs: Debian 12 has such a one among its security updates.
clang_for_hip() {
  newest_clang installed 20 || {
    update_lists
    newest_clang has_candidate 19 || {
      note "apt has no clang from 19 on: left out is the HIP backend"
      return 0
    }
  }
  need "clang-$clang" "lld-$clang" "llvm-$clang"
}

tools_to_build() {
  say "Packages to build GRETA"
  need g++ cmake ninja-build libcli11-dev nlohmann-json3-dev
  want "line editing in greta-cli chat" libedit-dev
  want "the server, greta-cli serve" libboost-dev
  want "TLS in the server" libssl-dev
  want "the Vulkan backend" glslc libvulkan-dev
  clang_for_hip
  if grep -q '^VERSION_CODENAME=bookworm' /etc/os-release; then newer_glslc; fi
}

tools_to_test() {
  say "Packages to test GRETA"
  from=""
  if grep -q '^VERSION_CODENAME=bookworm' /etc/os-release &&
    ! { installed catch2 && installed mesa-vulkan-drivers; }; then
    add_backports catch2 libcatch2-dev mesa-vulkan-drivers libdrm2 libdrm-common libdrm-amdgpu1
    from=/bookworm-backports
  fi
  need "catch2$from" pkg-config python3
  want "what runs Vulkan kernels" "mesa-vulkan-drivers$from"
}

# How many compilers run at once: one for each processor, but no more than one for each 1.5 GB of memory.
job_count() {
  processors=$(nproc)
  by_memory=$(awk '/^MemAvailable:/ { print int($2 / 1500000) }' /proc/meminfo 2>/dev/null || echo 1)
  [ "${by_memory:-0}" -ge 1 ] || by_memory=1
  if [ "$by_memory" -lt "$processors" ]; then echo "$by_memory"; else echo "$processors"; fi
}

# build PRESET [CMAKE OPTION...]
build() {
  preset=$1
  shift
  say "Building in build/$preset, $(job_count) at once"
  cmake --preset "$preset" "$@" || die "cmake --preset $preset"
  cmake --build "build/$preset" -j "$(job_count)" || die "cmake --build build/$preset"
}
