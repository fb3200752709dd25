#!/usr/bin/env bash
# Checks the one definition rule with the linker: with all types available (-flto), it rejects types
# and functions of the same name that two files define differently (-Wodr). Uses its own build
# directory, without optimization. tests/architecture_test.sh finds the same by name, in seconds.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
directory=${1:-build-odr}
[ -d "$directory" ] || meson setup "$directory" --buildtype=plain -Db_lto=true -Dcuda=disabled \
  -Dcpp_args='-O0 -Wodr' -Dcpp_link_args='-O0 -Wodr'
ninja -C "$directory" experiments/concertina
