#!/usr/bin/env bash
# Builds Debian source and binary packages of the checked-out commit and checks them with lintian.
# usage: bash experiments/install/deb.sh [OUT]     (folder for the packages; default: build/deb)
# Requires debhelper, help2man, lintian and the packages listed in experiments/install/packages.txt.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
out=$(realpath -m "${1:-build/deb}")
for tool in dpkg-buildpackage dh lintian help2man; do
  command -v $tool > /dev/null || { echo "deb.sh: $tool is missing: apt-get install debhelper help2man lintian" >&2; exit 2; }
done
. experiments/install/setup.sh
configure > /dev/null
meson dist -C build --no-tests --formats xztar > /dev/null
version=$(meson introspect build --projectinfo | python3 -c 'import json, sys; print(json.load(sys.stdin)["version"])')
mkdir -p "$out" && rm -rf "$out/concertina-$version"
cp "build/meson-dist/concertina-$version.tar.xz" "$out/concertina_$version.orig.tar.xz"
tar -C "$out" -xf "$out/concertina_$version.orig.tar.xz"
cp -r experiments/install/debian "$out/concertina-$version/"
cd "$out/concertina-$version"
dpkg-buildpackage --no-sign
cd .. && rm -rf "concertina-$version"
lintian --fail-on error,warning "concertina_$version"-*_amd64.changes
ls -l "$out"/*.deb
