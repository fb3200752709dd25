#!/usr/bin/env bash
# Predicted against measured step times of schedules, on any launcher:
#   bench_prediction.sh [--binary FILE] [--launch "mpirun -n 2 ..."] [OPTION...]
# OPTIONs go to `concertina bench prediction`: --bound 8, --steps 20, --json, --set KEY=VALUE ...
# Ends with 1 if a prediction is off by more than the bound or the ranking is wrong. For two hosts
# give the launcher that reaches them: --launch "mpirun -n 2 -H h1,h2 ...".
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
[[ -x $binary ]] || { echo "bench_prediction.sh: no binary at $binary: ninja -C build" >&2; exit 2; }
# shellcheck disable=SC2086  # a command and its options
exec env OMP_NUM_THREADS=1 $launch "$(realpath "$binary")" bench prediction --set parallel.pp=2 "${rest[@]}"
