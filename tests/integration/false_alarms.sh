#!/usr/bin/env bash
# Counts reports of ranks that neither hang nor are slow: in steps alone, then next to two busy loops.
# usage: false_alarms.sh STEPS BUSY_STEPS PROGRAM MPIRUN OPTIONS...
steps=$1 busy_steps=$2; shift 2
. "$(dirname -- "$0")/common.sh" "$@"
seq -s ' ' 4000 >text.txt
alarms() { grep -cE '"event":"(stall|straggler)"' "runs/$1/events.jsonl" || true; }
tiny() { # NAME STEPS KEYS...
  local began=$SECONDS
  run 2 train data.text=text.txt model.layers=2 model.width=64 model.heads=4 model.context=64 batch.global=16 \
    batch.microbatches=4 run.threads=1 run.dir="$folder/runs" run.name="$1" run.steps="$2" "${@:3}"
  echo "$1: $(alarms "$1") alarms in $2 steps, $((SECONDS - began)) s"
  grep -E '"event":"(stall|straggler)"' "runs/$1/events.jsonl" || true
}
tiny alone-pp $((steps / 2)) parallel.pp=2
tiny alone-dp $((steps / 2)) parallel.dp=2
(while :; do :; done) & one=$!
(while :; do :; done) & two=$!
trap 'kill $one $two 2>/dev/null; rm -rf "$folder"' EXIT
tiny busy-pp $((busy_steps / 2)) parallel.pp=2
tiny busy-dp $((busy_steps / 2)) parallel.dp=2
total=0
for name in alone-pp alone-dp busy-pp busy-dp; do total=$((total + $(alarms $name))); done
[ $total = 0 ] || die "$total false alarms"
echo "no false alarm in $steps steps and $busy_steps next to busy loops: passed"
