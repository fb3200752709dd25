#!/usr/bin/env bash
# Four soaks with all kinds of faults, 4 ranks on 2 of 3 emulated hosts and an emulated disk: GPT and BERT, with and
# without freezing, changing layouts and a cache. Needs root, an hour and an otherwise idle machine. Fails unless all bits are the same:
# survival.sh PROGRAM TEXT OUT [FAULTS [MEAN [WORKLOAD...]]]   (50 faults each, one per 15 s; gpt gpt-elastic bert bert-elastic)
set -euo pipefail
here=$(realpath -- "$(dirname -- "$0")")
program=$(realpath -- "$1") text=$(realpath -- "$2") out=$(realpath -m -- "$3") faults=${4:-50} mean=${5:-15}
workloads=("${@:6}")
[ ${#workloads[@]} -gt 0 ] || workloads=(gpt gpt-elastic bert bert-elastic)
. "$here/../../experiments/env.sh"
export HOSTS_NAME=all$$ DISK=/tmp/survival$$
hosts=$here/emulated_hosts.sh disk=$here/emulated_disk.sh
trap '"$hosts" down; "$disk" down' EXIT
"$disk" up 200  # before the hosts, which only see existing mounts
"$hosts" up 3
mkdir -p "$out"
common=("data.text=$text" model.width=64 model.heads=4 model.context=64 batch.microbatches=4 run.threads=1
  checkpoint.every=20 checkpoint.keep=4 checkpoint.snapshot_every=1)
# Enough steps to take longer than the faults; more if layers freeze.
all=$((faults * mean * 18)) bad=0
static=(model.layers=2 parallel.pp=2 parallel.dp=2 batch.global=128)
elastic=(model.layers=4 parallel.pp=4 batch.global=64 freeze.policy=linear "freeze.every=$((all / 4))" elastic.policy=pipetransformer
  cache.memory=64MiB data.windows=fixed)
bert=(model.family=bert model.vocab=260)
for workload in "${workloads[@]}"; do
  steps=$all
  [[ $workload != *-elastic ]] || steps=$((all * 3 / 2))
  case $workload in
    gpt) seed=101 keys=("${static[@]}") ;;
    gpt-elastic) seed=102 keys=("${elastic[@]}") ;;
    bert) seed=103 keys=("${static[@]}" "${bert[@]}") ;;
    bert-elastic) seed=104 keys=("${elastic[@]}" "${bert[@]}" data.views=2) ;;
    *) echo "unknown workload $workload" >&2; exit 2 ;;
  esac
  echo "== $workload"
  "$hosts" on h1 "$program" soak --hosts h1:2,h2:2,h3:2 --ranks 4 --host-faults "$hosts" --disk-faults "$disk" \
    --mean "$mean" --for 1e6 --at-most "$faults" --seed $seed --out "$out/$workload" \
    --launcher "mpirun --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 --mca plm_rsh_agent '$hosts agent' -H {hosts} -n {ranks} {program} {args}" \
    -- train "${common[@]}" "${keys[@]}" run.steps=$steps checkpoint.dir="$DISK/checkpoints" || bad=1
  rm -rf "$DISK/checkpoints"
done
exit $bad
