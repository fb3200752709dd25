#!/usr/bin/env bash
# From an empty Debian with Python to generated text and a served page, in three commands, with times and sizes.
# usage: fresh_debian.sh WHEEL [SUITE...]     (default: bookworm and trixie)
# Needs root and debootstrap, and a mirror of Debian and of PyPI; exits with 77 if one is missing. FRESH_DEBIAN: a folder
# to keep the systems for later runs, with at most 300 MB each.
set -euo pipefail
[ $# -gt 0 ] || { sed -n '2,6s/^# //p' "$0" >&2; exit 2; }
wheel=$(realpath -- "$1") && shift
[ $# -gt 0 ] || set -- bookworm trixie
skip() { echo "SKIP: $*"; exit 77; }
[ "$(id -u)" = 0 ] || skip "not root"
command -v debootstrap > /dev/null || skip "no debootstrap"
most_seconds=60 most_mb=40
systems=${FRESH_DEBIAN:-$(mktemp -d)}
[ -n "${FRESH_DEBIAN:-}" ] || trap 'rm -rf "$systems"' EXIT

# in_system ROOT SCRIPT: runs with separate /proc, /sys and shared memory, none of our variables, and the network.
in_system() {
  env -i PATH=/usr/sbin:/usr/bin HOME=/root PIP_CACHE_DIR=/nowhere ${PIP_CERT:+PIP_CERT=$PIP_CERT} \
    unshare --mount --pid --fork bash -c 'mount -t proc proc "$1/proc"; mount --rbind /sys "$1/sys"; mount --rbind /dev "$1/dev"
      mount -t tmpfs none "$1/tmp"; exec chroot "$1" bash -euc "$2"' in_system "$@"
}

for suite in "$@"; do
  root=$systems/$suite
  [ -e "$root/bin/python3" ] || debootstrap --variant=minbase --include=python3-venv,ca-certificates "$suite" "$root" \
    > "$systems/$suite.log" 2>&1 || skip "debootstrap gets no $suite: $(tail -1 "$systems/$suite.log")"
  cp /etc/resolv.conf "$root/etc/"
  cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
  rm -rf "$root/root"/* && cp "$wheel" "$root/root/"
  in_system "$root" '
    cd && python3 -m venv here && . here/bin/activate
    TIMEFORMAT="%R s" SECONDS=0
    echo "pip install" && time pip -q install ./*.whl
    echo "concertina quickstart" && time concertina quickstart > quickstart.log 2>&1 || { cat quickstart.log; exit 1; }
    echo "$SECONDS s from the first command to generated text" | tee seconds
    sed -n "/^held-out/p;/^And the LORD/p" quickstart.log
    concertina report --serve > address 2> serve.log & server=$!
    for try in $(seq 50); do [ -s address ] && break; sleep 0.1; done
    python3 -c "import urllib.request; print(len(urllib.request.urlopen(open(\"address\").read().strip()).read()), \"bytes served\")"
    kill $server && wait $server
    concertina doctor | grep "^mpi  *1 rank"
    pip -q download -d wheels ./*.whl && du -cm --apparent-size wheels/* | tee sizes
    grep -E "held-out loss [0-9.]+ nats" quickstart.log > /dev/null'
  seconds=$(sed 's/ .*//' "$root/root/seconds") mb=$(sed -n 's/[^0-9]*total$//p' "$root/root/sizes")
  echo "$suite: $seconds s (at most $most_seconds), $mb MB (at most $most_mb)"
  [ "$mb" -le "$most_mb" ] || { echo "FAILED: $mb MB to load"; exit 1; }
  [ "$seconds" -le "$most_seconds" ] || slow="$suite"
done
[ -z "${slow:-}" ] || { echo "FAILED: slower than $most_seconds s on $slow"; exit 1; }
