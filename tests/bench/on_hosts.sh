#!/usr/bin/env bash
# Runs a program under mpirun on emulated hosts whose links have a limited rate, with one thread per rank:
#   bash tests/bench/on_hosts.sh HOSTS RANKS_PER_HOST RATE PROGRAM [ARGUMENT...]
# RATE is of tc, such as 1gbit. Needs root and iproute2 (tests/integration/emulated_hosts.sh).
set -euo pipefail
[ $# -ge 4 ] || { sed -n '2,4s/^# *//p' "$0" >&2; exit 2; }
here=$(realpath "$(dirname "$0")") count=$1 ranks=$2 rate=$3; shift 3
hosts=$here/../integration/emulated_hosts.sh
export HOSTS_NAME=bench$$
. "$here/../../experiments/env.sh"
"$hosts" up "$count"
trap '"$hosts" down' EXIT
on=
for number in $(seq "$count"); do
  "$hosts" slow "h$number" "$rate"
  on=$on,h$number:$ranks
done
"$hosts" on h1 mpirun --mca plm_rsh_agent "$hosts agent" -H "${on#,}" -n $((count * ranks)) -x OMP_NUM_THREADS=1 "$(command -v "$1")" "${@:2}"
