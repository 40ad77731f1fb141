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
  local -a backends=(cpu)
  ! compgen -G 'build/release/kernels/vulkan/*.spv' >/dev/null || backends+=(vulkan)
  ! compgen -G 'build/release/kernels/hip/*.hsaco' >/dev/null || backends+=(hip)
  python3 tests/rules/size_test.py c++ build/release/libgreta.a build/release/bin/greta-cli "${backends[@]}"
}
