#!/bin/sh
# File systems that reject writes, lose files, or have no space for a log. No such failure ends a
# run as long as its state is safe, and nothing is lost silently.
# usage: storage_test.sh CONCERTINA FAILING_CALLS.so
set -u
binary=$(realpath -- "$1") shim=$(realpath -- "$2")
. "$(dirname -- "$0")/training_checks.sh"
EIO=5 ENOSPC=28

awk 'BEGIN { for (i = 0; i < 3000; ++i) printf "%d ", i * i % 997 }' > text
cat > base.toml << END
[run]
steps = 6
threads = 1
[model]
layers = 1
width = 16
heads = 1
context = 16
[data]
text = "text"
[batch]
global = 4
microbatches = 2
[generate]
tokens = 0
[eval]
batches = 1
[lr]
warmup = 2
[log]
trace = 0
END

# train CODE NAME [--set ...]: expects exit code CODE.
train() {
  code=$1; shift
  expect "$code" 0 "$@"
}

# failing CALLS CODE NAME [--set ...]: the same while the calls of FAILING_CALL fail.
failing() {
  calls=$1 code=$2 name=$3; shift 3
  exits "$code" "train $name $* while '$calls' fails" env "LD_PRELOAD=$shim" \
    "FAILING_CALL=$calls" "$binary" train @base.toml --set "run.name=$name" "$@"
}

# commits NAME STEP...: expects exactly these commits.
commits() {
  name=$1; shift
  wanted=$(for step; do printf 'step-%08d ' "$step"; done)
  # shellcheck disable=SC2012
  got=$(ls "runs/$name/checkpoints" | grep '^step-[0-9]*$' | tr '\n' ' ')
  [ "$got" = "$wanted" ] || fail "$name has the commits $got, wanted $wanted"
}

train 0 whole
wanted_hash=$(hash_of whole)
[ -n "$wanted_hash" ] || fail 'no state_sha256'
same_bits() { [ "$(hash_of "$1")" = "$wanted_hash" ] || fail "the bits of $1 differ"; }

# A checkpoint that cannot be written gives a warning, unless it is the last one.
every='--set checkpoint.every=2 --set checkpoint.keep=9'
failing "fsync 1 1000 $ENOSPC step-00000002.partial" 0 gap $every
grep -q 'warning.*cannot write the checkpoint of step 2: fsync failed: No space left' err ||
  fail 'a failed checkpoint is not reported'
grep -q 'warning.*the checkpoint of step 4 is written; failed before it: 1' err ||
  fail 'the number of checkpoints that failed is not told'
commits gap 4 6
same_bits gap
failing "fsync 1 1000 $ENOSPC .partial" 1 none --set checkpoint.every=1
[ "$(grep -c 'warning.*checkpoint' err)" = 1 ] || fail 'a full disk is told of several times'
grep -q 'the weights after step 6 are not saved: fsync failed: No space left' err ||
  fail 'a full disk at the end: it is not said that nothing is saved'
failing "fsync 1 1000 $EIO step-00000006.partial" 1 last $every
one_message 'step 6 are not saved: fsync failed: Input/output error' 'the last checkpoint fails'
commits last 2 4
train 0 last $every
same_bits last

# A path without rights is bad input, a full disk a failure, whoever meets them.
printf 'base = "base.toml"\n[launch]\nranks = 1\n' > study.toml
for place in '13 2' '28 1'; do
  set -- $place
  failing "mkdir 1 9 $1 runs/denied" "$2" denied
  exits "$2" "study run without a folder ($1)" env "LD_PRELOAD=$shim" "FAILING_CALL=mkdir 1 9 $1 studies" \
    "$binary" study run study.toml
done

end_of_first_cases
# A first start that is killed at any call can be repeated.
for call in mkdir rename fsync; do
  i=1
  while [ $i -lt 40 ]; do
    name=first-$call-$i
    env "LD_PRELOAD=$shim" "FAILING_CALL=$call $i $i 0 runs" "$binary" train @base.toml \
      --set "run.name=$name" > out 2> err
    [ ! -e "runs/$name/config.toml" ] || break
    train 0 "$name"
    same_bits "$name"
    i=$((i + 1))
  done
  [ $i -gt 1 ] && [ $i -lt 40 ] || fail "killed at $((i - 1)) calls of $call"
done

# Killed at any call of a checkpoint that is written in the background, by any thread: every
# reported checkpoint exists and is complete, and the bits are the same.
killed=0 tried=0
for call in 'mkdir partial' 'fallocate shard' 'pwrite shard' 'fsync shard' 'fsync partial' 'fsync checkpoints' \
  'rename step-' 'unlinkat removed' 'fallocate room.tmp'; do
  for at in 1 3 4 6; do
    name=killed-$((tried = tried + 1))  # must not contain a part of a call
    env "LD_PRELOAD=$shim" "FAILING_CALL=${call% *} $at $at 0 ${call#* }" "$binary" train @base.toml checkpoint.every=1 \
      --set "run.name=$name" > out 2> err
    [ $? = 137 ] && killed=$((killed + 1))
    told=$(sed -n 's/^{"step":\([0-9]*\),"event":"checkpoint".*/\1/p' "runs/$name/events.jsonl" 2> /dev/null | tail -n 1)
    newest=$(ls "runs/$name/checkpoints" 2> /dev/null | sed -n 's/^step-0*\([0-9]*\)$/\1/p' | sort -n | tail -n 1)
    [ "${newest:-0}" -ge "${told:-0}" ] || fail "$name: step $told was reported, but the newest is $newest"
    [ -z "$newest" ] || exits 0 "verify $name" "$binary" checkpoint verify "runs/$name"
    from=; [ -n "$newest" ] || from=--from-scratch
    train 0 "$name" --set checkpoint.every=1 $from
    same_bits "$name"
  done
done
[ $killed -ge 25 ] || fail "only $killed of 36 launches were killed"

# An undeletable checkpoint ends neither the run nor its checkpoints.
failing "unlinkat 1 1000 $EIO .removed" 0 old --set checkpoint.every=1 --set checkpoint.keep=1
grep -q 'warning.*cannot remove an old checkpoint' err || fail 'a failed prune is not reported'
same_bits old
commits old 6
train 0 old --set checkpoint.every=1 --set checkpoint.keep=1

# Failures of logs, plots and the terminal never end a run.
for part in metrics.jsonl events.jsonl tfevents.; do
  name=without-$(echo $part | cut -c 1-3)
  failing "write 1 1000 $ENOSPC $part" 0 "$name"
  [ "$(grep -c 'warning.*lines are lost' err)" = 1 ] || fail "$part: not one warning"
  same_bits "$name"
  commits "$name" 6
done
failing "write 3 3 $ENOSPC metrics.jsonl" 0 hole
[ "$(wc -l < runs/hole/metrics.jsonl)" = 6 ] || fail 'metrics: a line that could not be written is lost'
timeout 60 "$binary" train @base.toml --set run.name=mute > out 2> /dev/full < /dev/null ||
  fail 'a full log ends the run'
same_bits mute

# A result that cannot be written is retried, and then reported; the same command writes it, also
# replacing that of fewer steps.
failing "write 1 1 $EIO result.json" 0 result
grep -q 'warning runs/result/result.json: write failed: Input/output error: retrying' err ||
  fail 'a retry is not reported'
same_bits result
failing "write 1 9 $ENOSPC result.json" 1 result --set run.steps=8 --set checkpoint.keep=1
one_message 'cannot write result.json: write failed: No space left' 'no room for a result'
grep -q 'try: .*rerun the same command to write it: .*the checkpoint of step 8 is complete' message ||
  fail 'the message does not say that the run is complete'
grep -q '^held-out loss' out || fail 'the summary is lost with the result'
commits result 8
train 0 result --set run.steps=8 --set checkpoint.keep=1
grep -q '"steps": 8,' runs/result/result.json || fail 'the result is of another step'

# Logs that fill the disk leave space for the last checkpoint.
mkdir disk
cat > on_small_disk << 'END'
mount -t tmpfs -o size=2m tmpfs disk || exit 3
"$@" && [ -s disk/fills/checkpoints/step-00005000/manifest.json ] &&
  [ "$(wc -l < disk/fills/metrics.jsonl)" -lt 5000 ]
END
if unshare -m sh -c 'mount -t tmpfs tmpfs disk' 2> /dev/null; then
  exits 0 'logs that fill the disk' unshare -m sh on_small_disk "$binary" train @base.toml \
    run.dir=disk run.name=fills run.steps=5000
  grep -q 'warning.*cannot write metrics.jsonl, so lines are lost: .*No space left' err || fail 'the disk was not full'
  exits 1 'a disk without room' unshare -m sh on_small_disk "$binary" train @base.toml \
    run.dir=disk run.name=fills run.steps=5 model.width=128
  grep -q 'warning.*no space for the next checkpoint (up to [0-9.]* MiB): .*No space left' err ||
    fail 'a disk without space is not reported at the start'
else
  echo 'no mounts here: a disk filled by logs is not tested'
fi

# Output that cannot be written is a failure.
for command in 'eval runs/whole --json' 'schedule show 1f1b --ranks 2 --microbatches 4' \
  'checkpoint inspect runs/whole' '--help'; do
  "$binary" $command > /dev/full 2> err
  [ $? = 1 ] || fail "$command > /dev/full does not exit with 1"
  one_message 'cannot write the output' "$command > /dev/full"
done

# A state that has diverged is never committed, and good commits are kept.
train 1 diverged --set optimizer.lr=1e30 --set lr.warmup=0 --set checkpoint.every=1
one_message 'training has diverged: after step 1' 'weights that overflow'
grep -q 'another run.name' message || fail 'the advice on divergence cannot be followed'
commits diverged
train 1 poison --set optimizer.lr=1e12 --set lr.warmup=0 --set checkpoint.every=1 \
  --set checkpoint.keep=1
one_message 'is NaN' 'the loss after weights of 1e12'
if grep -qE -e '-nan|nan' err; then fail 'a message contains nan'; fi
exits 1 'eval of a diverged model' "$binary" eval runs/poison --json
one_message 'held-out loss is NaN' 'eval of a diverged model'

# State of a run that a newer version found necessary is not ignored.
train 0 newer
commit=runs/newer/checkpoints/step-00000006
sed -i 's/"metadata":{/"metadata":{"model.rope":"true",/' $commit/manifest.json
(cd $commit && sha256sum manifest.json > manifest.sha256)
train 2 newer --set run.steps=8
one_message 'model.rope = true, which is unknown to this version' 'a key of a newer version'

# The text may not change during a run, but a new modification time is harmless.
cp text moving
"$binary" train @base.toml --set run.name=moving --set data.text=moving --set run.steps=100000 \
  --set checkpoint.every=20 > out 2> err &
process=$!
wait_for() { # LINES of metrics.jsonl
  for _ in $(seq 1500); do
    [ "$(cat runs/moving/metrics.jsonl 2> /dev/null | wc -l)" -ge "$1" ] && return
    sleep 0.02
  done
  fail "the run did not make $1 steps"
}
wait_for 5
touch moving
wait_for $(($(wc -l < runs/moving/metrics.jsonl) + 60))
kill -0 $process 2> /dev/null || fail 'a touched text ended the run'
printf X | dd of=moving bs=1 seek=50 conv=notrunc 2> /dev/null
wait $process
[ $? = 1 ] || fail 'a changed text was not noticed'
one_message 'the text changed' 'a text edited in place'
cp text moving
exits 0 'with the text as it was' "$binary" train runs/moving --set run.steps=100

# eval during a run that removes commits while they are read.
"$binary" train @base.toml --set run.name=busy --set run.steps=100000 --set checkpoint.every=1 \
  --set checkpoint.keep=1 > busy.out 2>&1 &
process=$!
for _ in $(seq 500); do ls runs/busy/checkpoints/step-*[0-9] > /dev/null 2>&1 && break; sleep 0.02; done
for _ in 1 2 3 4 5 6 7 8 9 10 11 12; do exits 0 'eval during training' "$binary" eval runs/busy; done
kill $process
wait $process
[ $? = 75 ] || fail 'the busy run was not ended by the signal'

# No space for cached activations, or a disk that fails while caching: one warning, and the same bits.
head -c 400 text > short
kept='--set data.text=short --set data.windows=fixed --set run.steps=18 --set freeze.units=2'
train 0 uncached $kept
kept="$kept --set cache.use=always --set cache.disk=1MiB"
train 0 cached $kept
grep -q 'read (0 from memory, [1-9][0-9]* from disk), 22 written' out || fail 'nothing was cached'
one_warning() { # TEXT
  [ "$(grep -c 'warning' err)" = 1 ] && grep -q "warning activations are not cached in cache.disk: $1" err ||
    fail "expected only the warning '$1': $(grep warning err)"
}
failing "fallocate 1 9 $ENOSPC runs/full/#" 0 full $kept
one_warning 'not enough space for'
failing "pwrite 150 9999 $EIO runs/broken/#" 0 broken $kept
one_warning 'pwrite failed'
train 0 elsewhere $kept --set cache.dir=missing
one_warning 'open failed: No such file .*missing'
for run in cached full broken elsewhere; do
  [ "$(hash_of $run)" = "$(hash_of uncached)" ] || fail "the bits of $run and uncached differ"
done

# A path that no config file can represent is rejected before anything is created.
strange=$(printf 'caf\351')
mkdir "$strange" && cp text base.toml "$strange"
(cd "$strange" && exits 2 'a path that is not UTF-8' "$binary" train @base.toml &&
  mv out err .. && exit $bad) || bad=1
one_message 'is not valid UTF-8' 'a path that is not UTF-8'
[ ! -e "$strange/runs" ] || fail 'a run was created where its config cannot be written'
exit $bad
