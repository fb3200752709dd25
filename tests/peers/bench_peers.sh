#!/usr/bin/env bash
# Runs `concertina bench step` and PyTorch alternately on the same work, and prints a table.
# usage: bash tests/peers/bench_peers.sh [--venv DIR] [--build DIR] [--rounds N] [--steps N]
#          [--only TEXT] [--ways NAME,...] [--compute fp32|bf16] [--isa native|avx2] [--device cpu|cuda] [--json]
# --venv: a Python virtual environment with torch and numpy, created if missing (several GB;
# PIP_INDEX_URL sets the index). --isa avx2: limits both sides to AVX2. --build: the Meson build directory, which is not built here.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

venv=${XDG_CACHE_HOME:-$HOME/.cache}/concertina/torch
build=build
arguments=()
while [ $# -gt 0 ]; do
  case $1 in
    --venv | --build)
      [ $# -ge 2 ] || { echo "bench_peers.sh: $1 needs a directory" >&2; exit 2; }
      if [ "$1" = --venv ]; then venv=$2; else build=$2; fi
      shift 2 ;;
    *) arguments+=("$1"); shift ;;
  esac
done

binary=$build/experiments/concertina
if [ ! -x "$binary" ]; then
  echo "bench_peers.sh: $binary does not exist: run meson setup $build && ninja -C $build" >&2
  exit 2
fi
python=$venv/bin/python
if ! "$python" -c 'import torch, numpy' 2>/dev/null; then
  echo "== installing torch and numpy into $venv" >&2
  python3 -m venv "$venv" || { echo 'bench_peers.sh: install python3-venv' >&2; exit 1; }
  "$python" -m pip install --quiet torch numpy >&2
fi
exec "$python" tests/peers/compare.py --binary "$binary" "${arguments[@]}"
