#!/usr/bin/env bash
# Predicted against measured step times of schedules, on any launcher:
#   bench_prediction.sh [--binary FILE] [--launch "mpirun -n 2 ..."] [OPTION...]
# OPTIONs go to `concertina bench prediction`: --bound 8, --steps 20, --json, --set KEY=VALUE ...
# Ends with 1 if a prediction is off by more than the bound or the ranking is wrong. For two hosts
# give the launcher that reaches them: --launch "mpirun -n 2 -H h1,h2 ...".
set -euo pipefail
. "$(dirname "$0")/bench_launch.sh"
launch_bench prediction --set parallel.pp=2 "$@"
