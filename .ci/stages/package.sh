# package: cpack, what the package depends on, and how large the program and the library are.
# Minutes: 1 whole, after the stage tests; alone it compiles the library.
# Inputs: what is installed and how. It is one job, so the sample is all of it.
sample_of_package=1

jobs_of_package() {
  job package "package" "CMakeLists.txt CMakePresets.json cmake tools greta.h" make_package
}

stage_package() {
  choose_jobs package
  run_jobs "the package"
}

# Runs the program of both packages as a user would: from any folder, without anything of the build. The .deb
# is unpacked into a root that has Debian's C library and nothing else.
try_packages() {
  local root=$work/clean said file
  mkdir -p "$root/tar" "$root/deb/tmp"
  tar -xzf build/release/*.tar.gz -C "$root/tar" || return 1
  said=$(cd / && env -i "$root"/tar/greta-*/bin/greta-cli chat -q -p "Tell me a story." -n 16) &&
    [ -n "$said" ] || { echo "the tarball's program does not run"; return 1; }
  for file in man/man1/greta-cli.1 bash-completion/completions/greta-cli zsh/vendor-completions/_greta-cli \
    fish/vendor_completions.d/greta-cli.fish; do
    [ -s "$root"/tar/greta-*/share/"$file" ] || { echo "the package has no $file"; return 1; }
  done
  dpkg -x build/release/*.deb "$root/deb" || return 1
  [ "$(id -u)" = 0 ] && (cd "$root" && apt-get -qq download libc6 && dpkg -x libc6_*.deb deb) ||
    { skip "the .deb in a clean root: it takes root and apt's libc6"; return 0; }
  # Without /proc the program does not know its folder, and so not the bundled model.
  said=$(chroot "$root/deb" /usr/bin/greta-cli chat -q -p "Tell me a story." -n 16 \
    -m /usr/share/greta/models/tales-llama-7m-q4_k_m.gguf) && [ -n "$said" ] ||
    { echo "the program of the .deb does not run in a clean root"; return 1; }
  echo "both packages run; in the clean root it said: $said"
}

# It is made in the release build's folder: a package has the same objects, linked in another way.
make_package() {
  local depends
  cmake --preset package -B build/release && cmake --build build/release -j "$(job_count)" || return 1
  (cd build/release && cpack -G "TGZ;DEB" >cpack.log) || { cat build/release/cpack.log; return 1; }
  depends=$(dpkg-deb -f build/release/*.deb Depends)
  echo "$(ls build/release/*.deb build/release/*.tar.gz); depends on: $depends"
  case $depends in
    *,* | "") echo "the package should depend on libc6 alone"; return 1 ;;
    libc6*) ;;
    *) echo "the package depends on $depends"; return 1 ;;
  esac
  try_packages || return 1
  local -a backends=(cpu)
  ! compgen -G 'build/release/kernels/vulkan/*.spv' >/dev/null || backends+=(vulkan)
  ! compgen -G 'build/release/kernels/hip/*.hsaco' >/dev/null || backends+=(hip)
  python3 tests/rules/size_test.py c++ build/release/libgreta.a build/release/bin/greta-cli "${backends[@]}"
}
