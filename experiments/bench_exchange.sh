#!/usr/bin/env bash
# Exchange of gradients between replicas against the bound of a ring, on any launcher:
#   bench_exchange.sh [--binary FILE] [--launch "mpirun -n 4 ..."] [OPTION...]
# OPTIONs go to `concertina bench exchange`: --bytes 16e6, --buckets 12, --rounds 5, --json ...
# Ends with 1 if it takes more than 1.5 times the bound or the prediction is off by more than 15%;
# both are meant for one rank on each host: --launch "mpirun -n 4 -H h1,h2,h3,h4 ...".
set -euo pipefail

binary=$(dirname "$0")/../build/experiments/concertina
launch="mpirun -n 2 --oversubscribe --bind-to none --mca mpi_yield_when_idle 1"
rest=()
while (($#)); do
  case $1 in
    --binary) binary=${2:?--binary FILE}; shift 2 ;;
    --launch) launch=${2:?--launch COMMAND}; shift 2 ;;
    *) rest+=("$1"); shift ;;
  esac
done
[[ -x $binary ]] || { echo "bench_exchange.sh: no binary at $binary: ninja -C build" >&2; exit 2; }
# shellcheck disable=SC2086  # a command and its options
exec env OMP_NUM_THREADS=1 $launch "$(realpath "$binary")" bench exchange "${rest[@]}"
