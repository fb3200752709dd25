#!/usr/bin/env bash
# The one definition rule, by the linker: with the types of all files at hand (-flto) it refuses any
# type or function of one name that two files define differently (-Wodr). Without optimisation, in a
# build directory of its own. tests/architecture_test.sh looks for the same in seconds, by name.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
directory=${1:-build-odr}
[ -d "$directory" ] || meson setup "$directory" --buildtype=plain -Db_lto=true -Dcuda=disabled \
  -Dcpp_args='-O0 -Wodr' -Dcpp_link_args='-O0 -Wodr'
ninja -C "$directory" experiments/concertina
