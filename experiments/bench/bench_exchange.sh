#!/usr/bin/env bash
# Exchange of gradients between replicas against the bound of a ring, on any launcher:
#   bench_exchange.sh [--binary FILE] [--launch "mpirun -n 4 ..."] [OPTION...]
# OPTIONs go to `concertina bench exchange`: --bytes 16e6, --buckets 12, --rounds 5, --json ...
# Ends with 1 if it takes more than 1.5 times the bound or the prediction is off by more than 15%;
# both are meant for one rank on each host: --launch "mpirun -n 4 -H h1,h2,h3,h4 ...".
set -euo pipefail
. "$(dirname "$0")/bench_launch.sh"
launch_bench exchange "$@"
