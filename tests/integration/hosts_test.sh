#!/usr/bin/env bash
# Tests `concertina run` on several hosts: one that is gone, one that is cut off, a spare, fewer ranks, hosts that return:
# hosts_test.sh PROGRAM MPIRUN OPTIONS...
here=$(realpath -- "$(dirname -- "$0")")
. "$here/common.sh" "$@"
export HOSTS_NAME=hosts$$
hosts=$here/emulated_hosts.sh supervisor=
"$hosts" up 3 2>said || { cat said; echo "no emulated hosts here: not tested"; exit 77; }
clean_up() {
  "$hosts" down
  kill -9 $supervisor 2>/dev/null || true
  rm -rf "$folder"
}
trap clean_up EXIT
launcher="$mpirun --mca plm_rsh_agent '$hosts agent' -H {hosts} -n {ranks} {program} {args}"

line() { tail -n "${2:-1}" "runs/$1" 2>/dev/null | head -n 1; }
step() { line far/metrics.jsonl | sed -n 's/.*"step":\([0-9]*\),.*/\1/p'; }
until_true() { # what, seconds, command
  local end=$((SECONDS + $2))
  until "${@:3}"; do
    [ $SECONDS -lt $end ] || { tail -n 40 said; cat runs/far/restarts.jsonl; die "$1"; }
    sleep 0.05
  done
}
reached() { [ "$(step || true)" -ge "$1" ] 2>/dev/null; }
restarts() { [ "$(wc -l <runs/far/restarts.jsonl 2>/dev/null || echo 0)" -ge "$1" ]; }
launched() { [ "$(wc -l <runs/far/launches.jsonl)" -ge "$1" ]; }
# Waits for a fault and the next launch, which must make progress.
after_fault() { # number, kind, hosts and ranks of the next launch
  until_true "fault $1 is not noticed" 30 restarts "$1"
  until_true "no launch after fault $1" 30 launched $(($1 + 1))
  line far/restarts.jsonl | grep -q "\"fault\":\"$2\"" || die "not '$2': $(line far/restarts.jsonl)"
  line far/launches.jsonl | grep -q "\"ranks\":$4," || die "not $4 ranks: $(line far/launches.jsonl)"
  until_true "launch $(($1 + 1)) does not get on" 60 reached $(($(step) + 12))
  line far/launches.jsonl | grep -oE '"host":"h[0-9]"' | cut -d'"' -f4 | xargs >names
  [ "$(cat names)" = "$3" ] || die "on $(cat names), not $3"
}
repeated() { line far/restarts.jsonl | python3 -c 'import json,sys; r=json.loads(sys.stdin.read()); print(r["reached"]-r["from"])'; }

seq -s ' ' 4000 >text.txt
train=(train data.text=text.txt model.layers=2 model.width=64 model.heads=4 model.context=64 batch.global=16
  batch.microbatches=4 run.steps=600 run.threads=1 checkpoint.every=1000 run.dir="$folder/runs")
run 2 "${train[@]}" run.name=clean parallel.pp=2

"$hosts" on h1 "$program" run --hosts h1:2,h2:2,h3:2 --ranks 4 --launcher "$launcher" -- \
  "${train[@]}" run.name=far parallel.pp=2 parallel.dp=2 checkpoint.snapshot_every=5 >said 2>&1 &
supervisor=$!
until_true "no step 30" 60 reached 30
"$hosts" power-off h2
after_fault 1 unreachable "h1 h3" 4
[ "$(repeated)" -le 20 ] || die "$(repeated) steps were lost with a host, although its partner had copies"
# h3 is cut off too, and h2 is still gone: two ranks are left.
"$hosts" cut h3
after_fault 2 unreachable "h1" 2
"$hosts" mend h2
"$hosts" mend h3
pkill -9 -n -f "^$program train .*run.name=far" || die "no rank to kill"
after_fault 3 died "h1 h2" 4
wait $supervisor || { tail -n 30 said; die "the run did not end"; }
[ "$(hash_of runs/far)" = "$(hash_of runs/clean)" ] || die "other bits"
for place in /tmp/$HOSTS_NAME/h?; do
  [ -z "$(ls "$place" | grep concertina)" ] || die "snapshots are left: $(ls "$place")"
done

# A rank of another host is stopped before MPI has started, where no other rank notices.
cat >starts <<'END'
#!/bin/bash
[ "$OMPI_COMM_WORLD_RANK" = 3 ] && mkdir stopped 2>/dev/null && kill -STOP $$
exec "$@"
END
chmod +x starts
launcher="$mpirun --mca plm_rsh_agent '$hosts agent' -H {hosts} -n {ranks} ./starts {program} {args}"
"$hosts" on h1 "$program" run --hosts h1:2,h2:2 --ranks 4 --launcher "$launcher" -- \
  "${train[@]}" run.name=halted run.steps=40 parallel.pp=2 parallel.dp=2 >said 2>&1 || { cat said; die "the run did not end"; }
grep '"fault":"stopped"' runs/halted/restarts.jsonl | grep -q "a rank on h2" || die "no stop on h2: $(cat runs/halted/restarts.jsonl)"

refused "is listed twice" run --hosts h1,h1 --ranks 2 -- "${train[@]}"
refused "4 ranks but only 3 slots" run --hosts h1:2,h2 --ranks 4 -- "${train[@]}"
refused "does not use the hosts" run --hosts h1:2 --ranks 2 --launcher "$mpirun -n {ranks} {program} {args}" -- "${train[@]}"
refused "unknown placeholder" run --ranks 2 --launcher "$mpirun -H {hosts} -n {ranks} {program} {args}" -- "${train[@]}"
echo "1 passed, 0 failed"
