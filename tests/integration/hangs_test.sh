#!/usr/bin/env bash
# A rank that hangs is reported within seconds, with what it did; `concertina run` then ends the launch long
# before run.watchdog, and the run gets the bits of an undisturbed one. A rank that becomes slow is reported:
# hangs_test.sh PROGRAM MPIRUN OPTIONS...
. "$(dirname -- "$0")/common.sh" "$@"
launcher="$mpirun -n {ranks} ${options[*]} {program} {args}"
seq -s ' ' 4000 >text.txt
train=(train data.text=text.txt model.layers=2 model.width=64 model.heads=4 model.context=64 batch.global=16
  batch.microbatches=4 run.steps=100000 run.threads=1 run.dir="$folder/runs")

# named NAME RANKS FAILPOINT PATTERN OPERATION [KEYS...]: a rank triggers FAILPOINT in step 20;
# within two seconds, the event must contain PATTERN for the reported rank, and OPERATION.
named() {
  local name=$1 ranks=$2 failpoint=$3 pattern=$4 operation=$5 launch deadline=$((SECONDS + 60))
  CONCERTINA_FAILPOINTS="$failpoint" "$mpirun" -n "$ranks" "${options[@]}" "$program" "${train[@]}" \
    run.name="$name" "${@:6}" >said 2>&1 &
  launch=$!
  until grep -q '"event":"stall"' "runs/$name/events.jsonl" 2>/dev/null; do
    [ $SECONDS -lt $deadline ] && kill -0 $launch 2>/dev/null || { cat said; die "$name: no rank is reported"; }
    sleep 0.1
  done
  sleep 1
  kill -KILL $(pgrep -f "^$program train.*$folder/runs run.name=$name") 2>/dev/null || true
  wait $launch || true
  grep '"event":"stall"' "runs/$name/events.jsonl" >event
  [ "$(wc -l <event)" = 1 ] || { cat event; die "$name: reported more than once"; }
  grep -qE "$pattern" event || { cat event; die "$name: wanted $pattern"; }
  grep -qE "\"operation\":\"$operation" event || { cat event; die "$name: wanted the operation $operation"; }
  grep -qE '"seconds":(1\.[789]|2\.[0-3])' event || { cat event; die "$name: reported too late"; }
  grep -q 'has made no progress for' said || { cat said; die "$name: the log does not report it"; }
  rm -rf "runs/$name"
}
named loop 2 hang@20:rank=1 '"rank":1,.*"why":"(computes|starved)",.*"waiting":\[0\].*"last":.*"stack":\["' \
  'F, stage 1, microbatch 0' parallel.pp=2
grep -q 'meet_failpoints\|0x' said || { cat said; die 'the stack does not show where'; }
named block 4 block@20:rank=1 '"rank":1,.*"why":"blocked",.*"waiting":\[0,2,3\]' 'F, stage 1, microbatch 0' parallel.pp=4
named block-dp 3 block@20:rank=2 '"rank":2,.*"why":"blocked",.*"waiting":\[0,1\]' 'F, ' \
  parallel.dp=3 batch.global=12 batch.microbatches=12
named lost 2 lost-message@20:rank=0 '"rank":0,.*"why":"cycle",.*"waits_for":1' 'RECV_B, stage 0' parallel.pp=2

# The whole sequence, at the speed of a supervised run: its first launch hangs.
train+=(run.steps=60 checkpoint.every=10 parallel.pp=2)
run 2 "${train[@]}" run.name=clean
cat >first_hangs <<'EOF'
mkdir "$0.once" 2>/dev/null && export CONCERTINA_FAILPOINTS=hang@30:rank=1
exec "$@"
EOF
"$program" run --ranks 2 --launcher "sh $folder/first_hangs $launcher" -- "${train[@]}" run.name=hung >said 2>&1 ||
  { cat said; die 'the run did not end'; }
[ "$(hash_of runs/hung)" = "$(hash_of runs/clean)" ] || die 'the bits differ after a hang'
grep -q '"fault":"hung","why":"rank 1 on .* has made no progress for [0-9.]* s' runs/hung/restarts.jsonl ||
  { cat said runs/hung/restarts.jsonl; die 'the hang was not the reason'; }
[ "$(wc -l <runs/hung/restarts.jsonl)" = 1 ] || die 'not one restart'

# A rank that is stopped most of the time, after its normal speed is known.
"$mpirun" -n 2 "${options[@]}" "$program" "${train[@]}" run.name=slow run.steps=1000000 checkpoint.every=0 >said 2>&1 &
launch=$!
pattern="^$program train.*$folder/runs.*run.name=slow"
trap 'kill -KILL $(pgrep -f "$pattern") 2>/dev/null || true; rm -rf "$folder"' EXIT
sleep 25
slowed=$(for pid in $(pgrep -f "$pattern"); do
  tr '\0' '\n' <"/proc/$pid/environ" | grep -q '^OMPI_COMM_WORLD_RANK=1$' && echo "$pid"; done || true)
deadline=$((SECONDS + 120))
until grep -q '"event":"straggler"' runs/slow/events.jsonl 2>/dev/null; do
  [ $SECONDS -lt $deadline ] && kill -0 $launch 2>/dev/null || { tail -n 5 said; die 'the slow rank is not reported'; }
  for _ in 1 2 3 4 5 6 7 8 9 10; do kill -STOP "$slowed"; sleep 0.04; kill -CONT "$slowed"; sleep 0.01; done
done
kill -KILL $(pgrep -f "$pattern") 2>/dev/null || true
wait $launch || true
grep '"event":"straggler"' runs/slow/events.jsonl | head -n 1 >event
grep -q '"rank":1,.*"cause":"compute","action":"[FB]"' event || { cat event; die 'another rank is reported'; }
grep -q 'rank 1 is slower than the others: its' said || { cat said; die 'the log does not report it'; }
echo "hangs are reported: passed"
