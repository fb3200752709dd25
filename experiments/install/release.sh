#!/usr/bin/env bash
# Builds the files of a release in build/release: sources, wheel, Debian package, guide as a website, checksums.
# usage: bash experiments/install/release.sh     (on a clean commit; takes half an hour on two cores)
# Run the tests first: bash tests/run.sh --all.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
[ -z "$(git status --porcelain)" ] || { echo "release.sh: there are uncommitted changes: see git status" >&2; exit 2; }
python3 tests/release_test.py .
out=build/release
rm -rf "$out" && mkdir -p "$out"
bash experiments/install/deb.sh "$out"
version=$(sed -n "s/^  version: '\(.*\)',/\1/p" meson.build)
mv "$out/concertina_$version.orig.tar.xz" "$out/concertina-$version.tar.xz"
rm -f "$out"/*.{dsc,changes,buildinfo,debian.tar.xz} "$out"/*-dbgsym_*
python3 experiments/install/wheel.py "$out"
cp build/package/tree/share/doc/concertina/sbom.cdx.json "$out/concertina-$version.sbom.cdx.json"
bash experiments/guide/site.sh --out build/site
tar -C build --transform "s|^site|concertina-$version-site|" -cJf "$out/concertina-$version-site.tar.xz" site
(cd "$out" && sha256sum -- * > SHA256SUMS && ls -l)
