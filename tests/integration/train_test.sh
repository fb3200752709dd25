#!/bin/sh
# Tests `concertina train` on the command line: stop by signal, resume at other layouts to the same bits,
# and all kinds of faults in data, checkpoints, directories and launches.
# Nothing may hang; every failure prints one message with what is wrong, where, and what to try.
# usage: train_test.sh CONCERTINA MPIRUN [MPIRUN_ARGS...]
set -u
binary=$(realpath -- "$1"); shift
mpirun=$*
. "$(dirname -- "$0")/training_checks.sh"
steps=300

# refused CODE TEXT RANKS NAME [--set ...]: expects exit code CODE, and one message of three lines with TEXT.
refused() {
  refused_code=$1 text=$2; shift 2
  expect "$refused_code" "$@"
  one_message "$text" "train $*"
}

# stopped SIGNAL TARGET LINES RANKS NAME [--set ...]: once metrics.jsonl has LINES lines, sends
# SIGNAL to mpirun (which forwards it to all) or to one rank; expects exit code 75.
stopped() {
  signal=$1 target=$2 lines=$3 ranks=$4 name=$5; shift 5
  launch_until "$lines" "$ranks" "$name" "$@"
  case $target in
    mpirun) kill -s "$signal" "$launcher" ;;
    rank) kill -s "$signal" "$(children_of "$launcher" | tail -n 1)" ;;
  esac
  wait $process
  got=$?
  [ "$got" = 75 ] || fail "SIG$signal after $lines lines: exit code $got, wanted 75"
  ls "runs/$name/checkpoints" | grep -q '^step-' || fail "SIG$signal: nothing was committed"
  [ ! -e "runs/$name/result.json" ] || fail "SIG$signal came after the end"
}

# A reproducible text: words chosen by a linear congruential generator.
awk 'BEGIN { split("the sea and a wind or one ship under far stars", word, " "); x = 1
  for (i = 0; i < 6000; ++i) { x = (x * 1103515245 + 12345) % 2147483648
    printf "%s%s", word[int(x / 65536) % 10 + 1], i % 12 == 11 ? "\n" : " " } }' > text

cat > base.toml << END
[run]
steps = $steps
threads = 1
[model]
layers = 3
width = 64
heads = 2
context = 64
[data]
text = "text"
[batch]
global = 24
microbatches = 12
[generate]
tokens = 0
[lr]
warmup = 5
END
uneven='parallel.layout=[
  {stages = [{rank = 0, units = [0, 4]}, {rank = 1, units = [4, 8]}], microbatches = [0, 8]},
  {stages = [{rank = 2, units = [0, 8]}], microbatches = [8, 12]}]'

# Whatever interrupts a run and wherever it continues, the final bits are the same.
expect 0 1 whole
stopped USR1 mpirun 10 2 parts --set parallel.pp=2
stopped USR1 rank 40 4 parts --set parallel.pp=2
stopped TERM rank 70 3 parts --set "$uneven"
expect 0 1 parts
[ -n "$(hash_of whole)" ] && [ "$(hash_of whole)" = "$(hash_of parts)" ] ||
  fail "state_sha256 differs: $(hash_of whole) uninterrupted, $(hash_of parts) in parts"
sed 's/^{"step":\([0-9]*\),.*/\1/' runs/parts/metrics.jsonl > got
seq $steps > wanted
cmp -s got wanted || fail "metrics.jsonl does not have every step once, in order"
losses() { sed 's/.*"loss":\([^,]*\),.*/\1/' "runs/$1/metrics.jsonl"; }
losses whole > wanted
losses parts > got
cmp -s got wanted || fail 'the losses of the interrupted run differ'

# A run directory can be used from anywhere, even if its text was given by a relative path.
here=$PWD
(cd / && timeout 60 "$binary" eval "$here/runs/whole" --json) > out 2> err ||
  fail "eval from another directory: $(tail -n 3 err)"

# Resuming a complete run trains nothing and reports the same.
before=$(hash_of parts)
expect 0 2 parts
[ "$(hash_of parts)" = "$before" ] || fail 'a complete run changed'

# A user's own schedule: uses the layout of its rows, from any directory.
small="--set run.steps=4"
expect 0 1 plain $small
expect 0 1 narrow $small
expect 0 2 narrow --set run.steps=6 --set numerics.compute=bf16 --set parallel.pp=2
grep -qF 'trained with "fp32" so far, continuing with "bf16"' out err || fail 'the other precision is not reported'
(cd runs && timeout 60 "$binary" eval narrow --json) > out 2> err || fail 'eval of a run in bf16'
"$binary" schedule show 1f1b --ranks 2 --microbatches 6 --chunks 2 --compute-only > own.csv
expect 0 4 own $small --set parallel.schedule=own.csv --set run.steps=2
grep -q "^schedule = \"$(pwd)/own.csv\"" runs/own/config.toml ||
  fail 'config.toml does not have the absolute path of the schedule'
grep -q '"layout":"pp2xdp2"' runs/own/metrics.jsonl || fail 'the file did not give the layout'
mkdir elsewhere
(cd elsewhere && timeout 60 $mpirun -n 4 "$binary" train ../runs/own --set data.text=../text $small \
  > ../out 2> ../err) || fail 'train from another directory'
[ "$(hash_of own)" = "$(hash_of plain)" ] || fail "the bits with a user's own schedule differ"
for ranks in 1 2 4; do
  (cd elsewhere && timeout 60 $mpirun -n $ranks "$binary" eval ../runs/own --set data.text=../text \
    > ../out 2> ../err) || fail "eval on $ranks ranks from another directory"
  tail -n 1 out > "loss.$ranks"
done
cmp -s loss.1 loss.4 && cmp -s loss.1 loss.2 || fail 'eval differs'
refused 2 'is a schedule for 2 ranks, but the run has 3 ranks' 3 bad --set parallel.schedule=own.csv
refused 2 'has 6 microbatches per replica, but a step has 12 for 1 replica' 2 bad --set parallel.schedule=own.csv
refused 2 'schedule file not found' 2 bad --set parallel.schedule=other.csv
sed 's/0B0/0B1/' own.csv > twice.csv
refused 2 'repeats' 4 bad --set parallel.schedule=twice.csv
rm own.csv
refused 2 'own.csv' 4 own --set parallel.schedule=own.csv --set run.steps=6

# NaN: reports step and rank, and the last checkpoint is valid.
refused 1 'step 2' 2 diverges --set optimizer.lr=1e18 --set lr.warmup=0 --set checkpoint.every=1
grep -q 'rank [01]' message || fail 'the message on NaN does not name a rank'
timeout 60 "$binary" checkpoint verify runs/diverges/checkpoints/step-* > out 2> err ||
  fail 'NaN: the last checkpoint is damaged'

# Checkpoints that are damaged or of another run. `few` trains a small and complete run.
few() { expect 0 2 "$1" --set run.steps=4 --set checkpoint.every=2; }
few damaged
for file in runs/damaged/checkpoints/step-00000004/shard-*; do
  printf 'XXXXXXXX' | dd of="$file" bs=1 seek=20000 conv=notrunc 2> /dev/null
done
refused 2 'step-00000004/shard-0000' 2 damaged --set run.steps=6
grep -q 'step-00000002' message || fail 'the message does not name the older, valid checkpoint'
few truncated
for file in runs/truncated/checkpoints/step-00000004/shard-*; do
  dd if=/dev/null of="$file" bs=1 seek=3000 2> /dev/null
done
refused 2 'step-00000004/shard-0000' 1 truncated --set run.steps=6
few foreign
echo '{"hello": "world"}' > runs/foreign/checkpoints/step-00000004/manifest.json
refused 2 'manifest' 2 foreign --set run.steps=6
few other
refused 2 'model.width was 64, now it is 32' 2 other --set run.steps=6 --set model.width=32
refused 2 'optimizer.lr was' 1 other --set run.steps=6 --set optimizer.lr=0.5
refused 2 'data.windows was "shifted", now it is "fixed"' 1 other --set run.steps=6 --set data.windows=fixed
refused 2 'freeze.units was 0, now it is 2' 1 other --set run.steps=6 --set freeze.units=2
grep -A1 '^.freeze' runs/other/config.toml | grep -q '^units = 0$' ||
  fail 'a rejected config replaced that of the run'
expect 0 2 frozen --set run.steps=3 --set freeze.units=4 --set parallel.pp=2
grep -q '4 of [0-9]* units frozen' err || fail 'the start-up line does not mention frozen units'
cp text text2 && echo more >> text2
refused 2 'data.text was' 2 other --set run.steps=6 --set data.text=text2

# Directories, data and launches.
refused 2 'text/runs' 2 unwritable --set run.dir=text/runs
refused 2 '/proc/runs' 2 unwritable --set run.dir=/proc/runs
refused 2 'no_such_file' 2 bad --set data.text=no_such_file
: > empty
refused 2 'empty' 2 bad --set data.text=empty
echo hi > short
refused 2 'shorter than one sample' 2 bad --set data.text=short
refused 2 'on 4 ranks, one of: pp=2 dp=2, pp=4 dp=1' 5 bad --set batch.microbatches=2 --set model.layers=1
refused 2 'rank 2' 2 bad --set "$uneven"
refused 2 'units' 2 bad --set parallel.pp=2 --set model.layers=1 --set parallel.chunks=5
exit $bad
