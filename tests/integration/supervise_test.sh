#!/usr/bin/env bash
# `concertina run` completes a run with the bits of an undisturbed one:
# supervise_test.sh PROGRAM MPIRUN OPTIONS...
. "$(dirname -- "$0")/common.sh" "$@"
clean_up() {
  kill -9 "$supervisor" $(pids "$program") 2>/dev/null || true
  local id
  for id in $(cat runs/*/run.id 2>/dev/null); do rm -f "/dev/shm/concertina-$id".*; done
  rm -rf "$folder"
}
supervisor=
trap clean_up EXIT
launcher="$mpirun -n {ranks} ${options[*]} {program} {args}"

# Prints processes of this test's runs that execute the program; those with a rank's variable are ranks.
pids() { # program; only of this test
  local process
  for process in $(pgrep -f "^$1 train" || true); do
    tr '\0' '\n' <"/proc/$process/environ" 2>/dev/null | grep -q "^CONCERTINA_MARK=$folder/" && echo "$process"
  done
  true
}
rank() { # head, tail or shuf: waits for the first, last or a random rank of a launch
  local found='' deadline=$((SECONDS + 60))
  while [ -z "$found" ] && [ $SECONDS -lt $deadline ]; do found=$(pids "$program" | "$1" -n 1); done
  echo "$found"
}
launcher_pid() { ps -o pid= --ppid "$supervisor" | tr -d ' ' | head -n 1; }
step_of() { sed -n 's/.*"step":\([0-9]*\),.*/\1/p' "$1/metrics.jsonl" 2>/dev/null | tail -n 1 || true; }
reach() { # run directory, step
  local deadline=$((SECONDS + 60)) at
  while :; do
    at=$(step_of "$1")
    [ "${at:-0}" -ge "$2" ] && return
    [ $SECONDS -lt $deadline ] || { cat said; die "step $2 of $1 was not reached: ${at:-0}"; }
    sleep 0.05
  done
}
supervised() { # name, more arguments of `run` before --
  "$program" run --ranks 2 --launcher "$launcher" "${@:2}" -- "${train[@]}" run.name="$1" >said 2>&1 &
  supervisor=$!
}
ended() { # expected exit code
  local code=0
  wait "$supervisor" || code=$?
  [ "$code" = "$1" ] || { cat said; die "exit code $code, not $1"; }
}

seq -s ' ' 4000 >text.txt
train=(train data.text=text.txt model.layers=2 model.width=64 model.heads=4 model.context=64 batch.global=16
  batch.microbatches=4 run.steps=260 run.threads=1 checkpoint.every=10 parallel.pp=2 run.dir="$folder/runs")
run 2 "${train[@]}" run.name=clean
clean=$(hash_of runs/clean)

# Prints shared memory of MPI that no process uses; other launches on the machine have their own.
left() {
  local file
  for file in $(ls -d /dev/shm/*segment* 2>/dev/null); do
    [ -n "$(grep -lsF "$file" /proc/[0-9]*/maps || true)" ] || echo "$file"
  done
}
left >before

# Ranks are killed, stopped, ended by a signal that requests a checkpoint; the launcher is killed.
supervised faulty
run=runs/faulty
reach $run 20; kill -9 "$(rank head)"
reach $run 50; sleep 0.3; reach $run 60; kill -9 "$(rank tail)"
reach $run 90; sleep 0.3; reach $run 100; kill -STOP "$(rank tail)"
reach $run 130; sleep 0.3; reach $run 140; kill -9 "$(launcher_pid)"
reach $run 170; sleep 0.3; reach $run 180; kill -HUP "$(rank head)"
ended 0
[ "$(hash_of $run)" = "$clean" ] || die "the bits differ after faults"
[ "$(wc -l <$run/restarts.jsonl)" = 5 ] || { cat said $run/restarts.jsonl; die "expected five restarts"; }
grep -q '"fault":"stopped","why":"rank . has been stopped by a signal' $run/restarts.jsonl || die "the stop was not noticed"
grep -q '"fault":"died","why":"rank . has died' $run/restarts.jsonl || die "no death was noticed"
grep -q 'finished in .* with 5 restarts' said || die "no summary: $(cat said)"

# Killed at random times while the checkpoint of each step is written in the background: the launch
# never continues from a checkpoint older than the last reported one.
told_of() { sed -n 's/^{"step":\([0-9]*\),"event":"checkpoint".*/\1/p' "$1/events.jsonl" | tail -n 1; }
restarts_of() { cat "$1/restarts.jsonl" 2>/dev/null | wc -l || true; }
train+=(checkpoint.every=1 checkpoint.snapshot_every=-1)
supervised random
run=runs/random
for at in 40 90 140 190; do
  reach $run $at; sleep "0.0$((RANDOM % 10))"
  told=$(told_of $run) restarts=$(restarts_of $run); kill -9 "$(rank shuf)"
  until [ "$(restarts_of $run)" -gt "$restarts" ]; do sleep 0.1; done
  reach $run $((at + 30))
  from=$(tail -n 1 $run/restarts.jsonl | sed 's/.*"from":\([0-9]*\).*/\1/')
  [ "$from" -ge "$told" ] || { cat said; die "step $told was committed, the launch continued from $from"; }
done
ended 0
[ "$(hash_of $run)" = "$clean" ] || die "the bits differ after kills during saves"
train+=(checkpoint.every=10 checkpoint.snapshot_every=0)
run=runs/faulty

# A finished run is extended, and its launch dies: its old result does not count.
train+=(run.steps=290)
supervised faulty
reach $run 270; kill -9 "$(pids "$program" | head -n 1)"
ended 0
[ "$(step_of $run)" = 290 ] || die "the longer run ended after $(step_of $run)"
train+=(run.steps=260)

# A command for fewer steps than the run has finds it finished.
supervised faulty
ended 0
grep -q '5 launches\|starts again' said && die "a longer run was relaunched: $(cat said)"

# The supervisor itself is killed, then told to stop: the same command continues.
supervised again
reach runs/again 40; kill -9 "$supervisor"; wait "$supervisor" || true
supervised again
reach runs/again 60
refused 'is using this run' run --ranks 2 --launcher "$launcher" -- "${train[@]}" run.name=again
reach runs/again 90; kill -USR1 "$supervisor"
ended 75
supervised again
ended 0
[ "$(hash_of runs/again)" = "$clean" ] || die "the bits differ after the supervisor's end"
[ -z "$(pids "$program")" ] || die "processes are left"
left | grep -vxFf before >after || true
[ ! -s after ] || die "shared memory is left: $(cat after)"

end_of_first_cases

# A run with missing checkpoints must not start over.
supervised gone
reach runs/gone 60; kill -USR1 "$supervisor"
ended 75
mv runs/gone/checkpoints elsewhere
supervised gone
ended 2
grep -q 'there is no checkpoint in' said || die "a run with missing checkpoints: $(cat said)"

# Before its first checkpoint, a launch leaves only logs: the next one starts over.
train+=(checkpoint.every=200 checkpoint.snapshot_every=-1)
supervised early
reach runs/early 30; kill -9 "$(pids "$program" | head -n 1)"
ended 0
[ "$(hash_of runs/early)" = "$clean" ] || die "the bits differ after a fault before the first checkpoint"

# A snapshot is newer than the log, because another launch had gone back before its step.
supervised stale
reach runs/stale 40; kill -9 "$supervisor"; wait "$supervisor" || true
kill -9 $(pids "$program") 2>/dev/null || true
sed -i -e '$d' runs/stale/metrics.jsonl
sed -i -e '$d' runs/stale/metrics.jsonl
supervised stale
ended 0
[ "$(hash_of runs/stale)" = "$clean" ] || die "the bits differ after a snapshot that was too new"
[ "$(grep -o '"step":[0-9]*' runs/stale/metrics.jsonl | cut -d: -f2 | xargs)" = "$(seq 260 | xargs)" ] || die "steps are missing or repeated"

# A rank is stopped before MPI has started, where no other rank notices.
cat >starts <<'END'
#!/bin/bash
if [ "$OMPI_COMM_WORLD_RANK" = 1 ] && mkdir stopped 2>/dev/null; then
  pid=$$
  (sleep 0.02; kill -STOP $pid) &
fi
exec "$@"
END
chmod +x starts
usual=$launcher
launcher="$mpirun -n {ranks} ${options[*]} ./starts {program} {args}"
supervised halted
ended 0
[ "$(hash_of runs/halted)" = "$clean" ] || die "the bits differ after a stop during the start of MPI"
grep -q '"fault":"stopped"' runs/halted/restarts.jsonl || die "no stop: $(cat runs/halted/restarts.jsonl)"

# The launcher is stopped before there is a rank.
cat >waits <<'END'
#!/bin/bash
mkdir waited 2>/dev/null && kill -STOP $$
exec "$@"
END
chmod +x waits
launcher="./waits $usual"
supervised waited
ended 0
[ "$(hash_of runs/waited)" = "$clean" ] || die "the bits differ after a launcher was stopped"
# The same while ranks wait for the launcher in order to start MPI.
cat >waits <<'END'
#!/bin/bash
[ "$OMPI_COMM_WORLD_RANK" = 1 ] && mkdir halted 2>/dev/null && kill -STOP $PPID
exec "$@"
END
launcher="$mpirun -n {ranks} ${options[*]} ./waits {program} {args}"
supervised helpless
ended 0
[ "$(hash_of runs/helpless)" = "$clean" ] || die "the bits differ after a launcher was stopped while its ranks waited"

# Launchers that exit late: the newest checkpoint is damaged, then bad input.
launcher=$usual
train+=(checkpoint.every=10)
supervised late
reach runs/late 60; kill -9 "$supervisor"; wait "$supervisor" || true
kill -9 $(pids "$program") 2>/dev/null || true
until_gone=$((SECONDS + 10))
while [ -n "$(pids "$program")" ] && [ $SECONDS -lt $until_gone ]; do sleep 0.1; done
newest=$(ls -d runs/late/checkpoints/step-???????? | tail -n 1)
shard=$(ls -d "$newest"/shard-*.h5 | head -n 1)
dd if=/dev/zero of="$shard" bs=4096 seek=$(($(stat -c %s "$shard") / 8192)) count=4 conv=notrunc 2>/dev/null
rm -f "/dev/shm/concertina-$(cat runs/late/run.id)".*
launcher="bash -c '${usual//\'/}; code=\$?; sleep 3; exit \$code'"
supervised late
ended 0
[ "$(hash_of runs/late)" = "$clean" ] || die "the bits differ after a damaged checkpoint"
[ -e "$newest.damaged" ] || die "it was not moved aside: $(ls runs/late/checkpoints; cat said)"
# A launch that is rejected for another reason does not move a damaged checkpoint.
cp -r runs/late runs/copied
newest=$(ls -d runs/copied/checkpoints/step-???????? | tail -n 1)
truncate -s 5000 "$newest/model.h5"
train+=(run.steps=280)
supervised copied
ended 2
{ [ "$(grep -c 'error:' said)" = 1 ] && [ -e "$newest" ]; } || die "a rejected copy was changed: $(ls runs/copied/checkpoints; cat said)"
train+=(model.width=63)
supervised tardy
ended 2
[ "$(grep -c 'error:' said)" = 1 ] || die "bad input was retried: $(cat said)"
[ ! -e runs/tardy ] || die "a rejected run left $(ls -a runs/tardy)"

# Permanent faults end the run with a reason: see also RestartPolicy in tests/experiments/launch_judges_test.cc.
train=(train data.text=text.txt run.steps=5 run.dir="$folder/runs")
launcher='bash -c "exit 7; {program} {args}"'
supervised vain
ended 1
grep -q '2 launches ended in the same way before their ranks started.*the launcher returned 7' said || die "$(cat said)"
[ "$(grep -c 'warning launch' said)" = 1 ] || die "more than two launches: $(cat said)"
if "$mpirun" --version | grep -q 'Open MPI'; then
  launcher="env OMPI_MCA_pml=none-such $usual"
  supervised uninitialized
  ended 1
  grep -q '2 launches ended in the same way' said && grep -q 'none-such' said || die "MPI_Init fails: $(cat said)"
fi
# A temporary fault: the next launch trains.
launcher="bash -c 'mkdir passed 2>/dev/null && exit 7; ${usual//\'/}'"
supervised passes
ended 0
refused 'cannot be supervised' run --ranks 2 -- eval runs/clean
refused 'the number of ranks is unknown' run -- train data.text=text.txt
refused 'does not exist or is not executable' run --ranks 2 --launcher 'no-such-launcher {program} {args}' -- train data.text=text.txt
echo "1 passed, 0 failed"
