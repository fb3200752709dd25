#!/bin/sh
# Launches whose ranks have different settings or processors, hang, store slowly, or are stopped by
# signals.
# usage: launch_test.sh CONCERTINA FAILING_CALLS MPIRUN [MPIRUN_ARGS...]
# FAILING_CALLS: a library to preload (failing_calls.cc).
set -u
binary=$(realpath -- "$1") failing=$(realpath -- "$2"); shift 2
mpirun=$*
. "$(dirname -- "$0")/training_checks.sh"

tiny_run 4 'watchdog = 20'
sed 's/far/red/' text > text2

# train RANKS NAME [--set ...]: expects exit code $code, by default 0.
train() { expect "${code:-0}" "$@"; }

# disagree KEY COMMON FIRST SECOND: two ranks with different options are rejected quickly.
disagree() {
  common="$2"
  began=$(date +%s)
  exits 2 "ranks that differ in $1" \
    $mpirun -n 1 "$binary" train @base.toml --set run.name=differ $common $3 : \
    -n 1 "$binary" train @base.toml --set run.name=differ $common $4
  one_message "the ranks do not agree on $1: " "ranks that differ in $1"
  last_is_ours "ranks that differ in $1"
  grep -q 'on rank 0, .* on rank 1' message || fail "$1: the message does not name the ranks"
  [ $(($(date +%s) - began)) -lt 10 ] || fail "$1: rejected too late"
  [ ! -e runs/differ ] || { fail "$1: a rejected launch left a run directory"; rm -r runs/differ; }
}
set_() { printf ' --set %s' "$@"; }
disagree data.text "$(set_ parallel.dp=2)" '' "$(set_ data.text=text2)"
disagree data.text "$(set_ parallel.pp=2)" '' "$(set_ data.text=text2)"
disagree run.seed "$(set_ parallel.dp=2)" '' "$(set_ run.seed=2)"
disagree optimizer.lr "$(set_ parallel.dp=2)" '' "$(set_ optimizer.lr=0.01)"
disagree model.dropout "$(set_ parallel.dp=2)" '' "$(set_ model.dropout=0.1)"
disagree numerics.compute "$(set_ parallel.pp=2)" '' "$(set_ numerics.compute=bf16)"
disagree parallel.schedule "$(set_ parallel.pp=2)" '' "$(set_ parallel.schedule=gpipe)"
disagree parallel.pp '' "$(set_ parallel.pp=2)" "$(set_ parallel.dp=2)"
disagree run.steps "$(set_ parallel.dp=2)" '' "$(set_ run.steps=5)"
# For a user's own schedule, the content counts, not the path.
"$binary" schedule show gpipe --ranks 2 --microbatches 4 > a.csv
"$binary" schedule show 1f1b --ranks 2 --microbatches 4 > b.csv
disagree 'the schedule file' '' "$(set_ parallel.schedule=a.csv)" "$(set_ parallel.schedule=b.csv)"
cp a.csv c.csv
exits 0 'two paths of one content' \
  $mpirun -n 1 "$binary" train @base.toml --set run.name=paths --set parallel.schedule=a.csv : \
  -n 1 "$binary" train @base.toml --set run.name=paths --set run.threads=2 --set parallel.schedule=c.csv
end_of_first_cases
# A directory that rank 1 does not see is reported before the first step, also by a dry run: if keys
# differ, or if each node has its own disk there.
unseen() { # WHAT KEY WHERE FIRST SECOND: the options and the launcher of rank 1 differ
  exits 2 "rank 1 has a different $3" $mpirun -n 1 "$binary" train @base.toml run.name=unseen $4 : \
    -n 1 $5
  one_message ') is not visible to rank 1 on ' "$3"
  grep -q "error: $1 of rank 0 (on " message || fail "$3: the message names another directory"
  grep -q "try: a $2 on a file system shared by all nodes" message || fail "$3: wrong advice"
  [ ! -e runs/unseen ] && [ -z "$(find . -name 'ranks-*' -o -name '*-dir')" ] ||
    fail "$3: a rejected launch left files"
}
one="$binary train @base.toml run.name=unseen"
unseen 'the run directory' run.dir 'run.dir' '' "$one run.dir=other-dir"
unseen 'the run directory' run.dir 'run.dir, dry' --dry-run "$one run.dir=other-dir --dry-run"
unseen 'the checkpoint directory' checkpoint.dir 'checkpoint.dir' checkpoint.dir=a-dir/ \
  "$one checkpoint.dir=b-dir"
mkdir -p runs disks
printf 'mount -t tmpfs tmpfs "$1" && shift && exec "$@"' > mounted
if unshare -m sh mounted disks true 2> /dev/null; then
  unseen 'the run directory' run.dir 'disk under runs' '' "unshare -m sh mounted runs $one"
  unseen 'the checkpoint directory' checkpoint.dir 'disk under disks' \
    'checkpoint.dir=disks/x --dry-run' "unshare -m sh mounted disks $one checkpoint.dir=disks/x --dry-run"
else
  echo 'no mount namespaces here: disks that only one rank sees are not tested'
fi
exits 0 'two spellings of one directory' \
  $mpirun -n 1 "$binary" train @base.toml run.name=spelled run.dir=runs checkpoint.dir=disks/x/ : \
  -n 1 "$binary" train @base.toml run.name=spelled "run.dir=$PWD/runs" "checkpoint.dir=$PWD/disks/x"
# eval checks too: here, rank 1 has a different held-out text.
train 1 whole
exits 2 'eval of ranks that differ' $mpirun -n 1 "$binary" eval runs/whole : \
  -n 1 "$binary" eval runs/whole --set data.text=text2
one_message 'the ranks do not agree on data.text' 'eval'

# Ranks on different processors use the instruction sets that all of them have.
one() { sed -n "s/.*\"$2\": *\"\([^\"]*\)\".*/\1/p" "runs/$1/result.json"; }
for kind in SSE41:baseline AVX2:avx2; do
  limit=${kind%:*} isa=${kind#*:}
  train 1 "$isa" --set "numerics.isa=$isa"
  for layout in pp dp; do
    exits 0 "rank 1 has $limit, $layout=2" \
      $mpirun -n 1 "$binary" train @base.toml --set "run.name=$isa-$layout" --set "parallel.$layout=2" : \
      -n 1 env "DNNL_MAX_CPU_ISA=$limit" "$binary" train @base.toml --set "run.name=$isa-$layout" \
      --set "parallel.$layout=2"
    [ "$(hash_of "$isa-$layout")" = "$(hash_of "$isa")" ] || fail "the bits of $layout=2 and $isa differ"
    [ "$(one "$isa-$layout" isa)" = "$isa" ] || fail "result.json does not name $isa"
  done
done
[ "$(hash_of baseline)" != "$(hash_of avx2)" ] || fail 'the instruction set has no effect'
[ "$(hash_of whole)" = "$(train 1 again; hash_of again)" ] || fail 'two equal runs differ'
exits 2 'a rank without avx2' \
  $mpirun -n 1 "$binary" train @base.toml --set run.name=lacks --set numerics.isa=avx2 : \
  -n 1 env DNNL_MAX_CPU_ISA=SSE41 "$binary" train @base.toml --set run.name=lacks --set numerics.isa=avx2
one_message 'not on rank 1: avx2' 'a rank without avx2'
train 1 baseline --set run.steps=5 --set numerics.isa=avx2
grep -q 'numerics.isa: trained with baseline so far, continuing with avx2' err ||
  fail 'a resume does not report another instruction set'

# Storage slower than the watchdog's limit neither ends a run nor prevents it from loading.
slowly() {
  call=$1 ranks=$2 name=$3; shift 3
  exits 0 "slow storage: $call $ranks $name $*" $mpirun -n 1 env "LD_PRELOAD=$failing" \
    "FAILING_CALL=$call 1 1 -3 /shard-" "$binary" train \
    @base.toml --set "run.name=$name" --set run.watchdog=1 "$@" : -n "$ranks" "$binary" train \
    @base.toml --set "run.name=$name" --set run.watchdog=1 "$@"
}
slowly fsync 1 slow --set parallel.dp=2 --set checkpoint.every=2 --set run.steps=2
grep -q 'saving a checkpoint' err || fail 'a slow save is not reported'
slowly pread 1 slow --set parallel.dp=2 --set run.steps=3
grep -q 'trained 3 steps' out || fail 'the slow run did not continue'
exits 2 'too long a watchdog' "$binary" train @base.toml --set run.watchdog=1e11
one_message 'run.watchdog = 100000000000.0 is out of range' 'too long a watchdog'

# started RANKS NAME [--set ...]: starts a run in the background, and waits until some steps are done.
started() {
  ranks=$1 name=$2; shift 2
  timeout -k 5 60 sh -c 'echo $$ > pid; exec "$@"' launch $mpirun -n "$ranks" "$binary" train \
    @base.toml --set "run.name=$name" --set run.steps=100000 "$@" > out 2> err &
  process=$!
  until [ "$(wc -l 2> /dev/null < "runs/$name/metrics.jsonl")" -gt 5 ] 2> /dev/null; do
    kill -0 $process 2> /dev/null || { fail "$name did not start"; return; }
    sleep 0.05
  done
}

# A rank that is stopped is reported, whichever it is and however many ranks wait for it.
stands_still() {
  ranks=$1 stopped=$2; shift 2
  started "$ranks" still --set run.watchdog=2 "$@"
  for child in $(children_of "$(cat pid)"); do
    [ "$(rank_of "$child")" != "$stopped" ] || kill -STOP "$child"
  done
  wait $process
  got=$?
  for child in $(children_of "$(cat pid)"); do kill -KILL "$child"; done
  [ $got != 0 ] || fail "rank $stopped of $ranks is stopped, exit code 0"
  grep -q "no progress for .*waits for rank $stopped" err ||
    fail "rank $stopped of $ranks is stopped and not reported"
  rm -rf runs/still
}
# A rank that a signal has stopped is named with the command that resumes it.
started 2 halted --set parallel.dp=2
for child in $(children_of "$(cat pid)"); do
  [ "$(rank_of "$child")" != 1 ] || halted=$child
done
kill -STOP "$halted"
until grep -q "rank 1 has been stopped by a signal.*to resume: kill -CONT $halted\$" err; do
  kill -0 $process 2> /dev/null || { fail 'a stopped rank is not named with its process'; break; }
  sleep 0.1
done
steps=$(wc -l < runs/halted/metrics.jsonl)
kill -CONT "$halted"
until [ "$(wc -l < runs/halted/metrics.jsonl)" -gt "$steps" ]; do
  kill -0 $process 2> /dev/null || { fail 'the run did not go on after SIGCONT'; break; }
  sleep 0.1
done
kill -USR1 "$(cat pid)"; wait $process
for stopped in 0 1 2; do stands_still 3 $stopped --set parallel.dp=3 --set batch.global=12 \
  --set batch.microbatches=12; done
for stopped in 0 1 2 3; do stands_still 4 $stopped --set parallel.pp=2; done

# Ctrl-C makes a commit, like SIGTERM.
interrupted() {
  started "$@"
  target=$(cat pid)
  [ "$1" = 1 ] || target=$(children_of "$target" | tail -n 1)
  [ "$1" = 1 ] && target=$(children_of "$target" | head -n 1)
  kill -INT "$target"
  wait $process
  got=$?
  [ $got = 75 ] || fail "SIGINT at $1 ranks: exit code $got, wanted 75"
  ls "runs/$2/checkpoints" | grep -q '^step-' || fail "SIGINT at $1 ranks: nothing was committed"
  grep -q '"exit":75' "runs/$2/launches.jsonl" || fail 'launches.jsonl does not record how it ended'
}
# So does Ctrl-C of mpirun, which sends SIGTERM a second later, and SIGKILL after another second.
started 2 mpirun-int --set parallel.pp=2
kill -INT "$(cat pid)"
wait $process
grep -q '"exit":75' runs/mpirun-int/launches.jsonl || fail 'SIGINT of mpirun: nothing was committed'
grep -q 'stopped by SIGTERM (mpirun forwards Ctrl-C as SIGTERM) after step [0-9]*, whose checkpoint is saved; rerun the same command to resume' err ||
  fail 'SIGINT of mpirun: the program does not report that it was stopped'
# A rank that dies is reported by another rank, with what to do.
dies() {
  dead=$1 fix=$2 signal=$3; shift 3
  started 3 dies --set parallel.dp=3 --set batch.global=12 --set batch.microbatches=12 "$@"
  for child in $(children_of "$(cat pid)"); do
    [ "$(rank_of "$child")" != "$dead" ] || kill "-$signal" "$child"
  done
  wait $process
  got=$?
  [ $got != 0 ] || fail "rank $dead dies of $signal: exit code 0"
  one_message "rank $dead has died" "rank $dead dies of $signal"
  [ "$(grep -c 'concertina: error' err)" = 1 ] || fail "rank $dead dies: reported more than once"
  grep -q "$fix" message || fail "rank $dead dies of $signal: wanted '$fix'"
  rm -rf runs/dies
}
dies 0 'the same command with --from-scratch: there is no checkpoint yet' KILL
dies 1 'the same command: it resumes after step [1-9]' KILL --set checkpoint.every=1
dies 2 'the same command: it resumes after step [1-9]' SEGV --set checkpoint.every=1
interrupted 1 ctrl-c
interrupted 2 ctrl-c-2 --set parallel.pp=2
# Also after the last step: the state is saved, and the final output is skipped.
timeout 60 "$binary" train @base.toml --set run.name=late --set generate.tokens=100000 > out 2> err &
process=$!
until [ -d runs/late/checkpoints/step-00000004 ] && [ -s runs/late/costs.json ]; do
  kill -0 $process 2> /dev/null || break
  sleep 0.05
done
kill -TERM "$(children_of $process)"
wait $process
got=$?
[ $got = 75 ] || fail "SIGTERM after the last step: exit code $got, wanted 75"

# A model larger than the free memory is rejected with what would fit, and leaves nothing.
width=$(awk '/^MemAvailable:/ { n = sqrt($2 * 1024 * 3 / 16 / 24 ); print int(n / 64 + 1) * 64 }' /proc/meminfo)
code=2 train 1 large --set "model.width=$width" --set generate.tokens=0
one_message 'is free' 'a model larger than the memory'
grep -q 'rank 0 needs' message || fail 'the message does not say how much the rank needs'
[ ! -e runs/large ] || fail 'a rejected launch left a run directory'
code=2 train 3 misfit --set parallel.pp=2
one_message 'no layout with pp = 2 fits 3 ranks' 'an unfit layout'
grep -q 'try: mpirun -n 2 concertina train ...; or on 3 ranks, one of: pp=1 dp=3' message ||
  fail 'an unfit layout: the message does not say how many ranks would fit'
last_is_ours 'an unfit layout'
[ ! -e runs/misfit ] || fail 'a rejected layout left a run directory'
# Without mpirun, and for a run that was trained on more ranks.
exits 2 'two stages without mpirun' "$binary" train @base.toml parallel.pp=2 run.name=misfit
one_message 'no layout with pp = 2 fits 1 rank' 'two stages without mpirun'
grep -q 'try: mpirun -n 2 concertina train ...' message || fail 'mpirun -n 2 is not suggested'
exits 2 'a run of two ranks on one' "$binary" train runs/baseline-pp run.steps=9
grep -q 'try: mpirun -n 2 concertina train ...' err || fail 'a run of two ranks: mpirun -n 2 is not suggested'
printf '0F0,0B0\n1F0,1B0\n2F0,2B0\n' > three.csv
exits 2 'a schedule file on too few ranks' "$binary" train @base.toml run.name=misfit \
  batch.microbatches=1 parallel.schedule=three.csv
grep -q 'try: mpirun -n 3 concertina train ...' err || fail 'a schedule file: 3 ranks are not suggested'
exit $bad
