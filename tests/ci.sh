#!/usr/bin/env bash
# Runs one job of .github/workflows in any checkout.
usage='usage: tests/ci.sh JOB
  quick       packages, build, quick tests (tests/run.sh)
  all         the same with every test
  sanitizers  unit tests with address and undefined behavior sanitizers, in build-asan
  clang       build and unit tests with clang, in build-clang
  no-cuda     build and unit tests without CUDA, each file compiled alone, in build-no-cuda
  tidy        clang-tidy with .clang-tidy over the sources of the program, in build-tidy
Packages are installed with apt if they are missing. Clang is version 19:
14 cannot compile parts of C++20 that the program uses. The exit code is 0 if nothing failed, and 2 for an unknown job.'
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. experiments/install/setup.sh

# packages [LIST...]: installs the packages for the build, for the tests, and from these lists.
packages() { install_packages packages.txt packages-python.txt "$@"; }

# setup FOLDER [OPTION...]: configures a build folder with these Meson options, unless it exists.
setup() { [ -f "$1/build.ninja" ] || meson setup "$@"; }

# unit_tests FOLDER [TIMES]: builds the folder and runs its fast unit tests with TIMES (default: 5) their time limits. A compiler job
# needs up to 3 GB here.
unit_tests() {
  local jobs
  jobs=$(awk -v cores="$(nproc)" '/^MemAvailable:/ { n = int($2 / 3000000); print (n > cores ? cores : n < 1 ? 1 : n) }' /proc/meminfo)
  ninja -C "$1" -j "$jobs"
  mpi_environment
  meson test -C "$1" --no-rebuild --print-errorlogs --suite unit --no-suite slow --timeout-multiplier "${2:-5}"
}

case ${1-} in
  quick) exec bash tests/run.sh ;;
  all) exec bash tests/run.sh --all ;;
  sanitizers)
    packages
    setup build-asan -Db_sanitize=address,undefined -Db_lundef=false -Dbuildtype=debugoptimized -Dwerror=false -Dcuda=disabled
    # Open MPI frees less than it allocates, so leaks are not reported. Two tests replace operator new and delete, but the sanitizer's
    # nothrow form does not call theirs.
    export ASAN_OPTIONS=detect_leaks=0:alloc_dealloc_mismatch=0 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
    unit_tests build-asan 15 ;;
  clang)
    packages packages-clang.txt
    # Clang warns of other things than GCC, such as loops it does not vectorize, so these are not errors.
    CC=clang-19 CXX=clang++-19 setup build-clang -Dcuda=disabled -Dwerror=false
    unit_tests build-clang ;;
  no-cuda)
    packages
    setup build-no-cuda -Dcuda=disabled -Dunity=off
    unit_tests build-no-cuda ;;
  tidy)
    packages packages-clang.txt
    # clang-tidy does not know GCC's precompiled headers and warnings.
    setup build-tidy -Dcuda=disabled -Dunity=off -Db_pch=false -Dtests=false
    # Checks each source once, without core/cpu (.clang-tidy explains why).
    python3 -c '
import json, os, re
files = {os.path.normpath(os.path.join(entry["directory"], entry["file"]))
         for entry in json.load(open("build-tidy/compile_commands.json"))}
print(*sorted(file for file in map(os.path.relpath, files)
              if re.match(r"(core(?!/cpu)|models|parallel|io|experiments)/.*[.]cc$", file)), sep="\n")' |
      xargs -P "$(nproc)" -n 4 clang-tidy-19 -p build-tidy --quiet --extra-arg=-Wno-everything ;;
  -h | --help) echo "$usage" ;;
  *) echo "$usage" >&2 && exit 2 ;;
esac
