#!/usr/bin/env bash
# `concertina compare` and `study table` of existing runs:
# compare_test.sh PROGRAM MPIRUN OPTIONS...
. "$(dirname -- "$0")/common.sh" "$@"
seq -s ' ' 4000 >text.txt
train=(train data.text=text.txt model.layers=2 model.width=32 model.heads=2 model.context=32 batch.global=8
  batch.microbatches=4 run.steps=12 run.threads=1 checkpoint.every=4 checkpoint.keep=9 eval.every=4 eval.batches=1 run.dir="$folder/runs")
run 1 "${train[@]}" run.name=one
run 2 "${train[@]}" run.name=two parallel.pp=2 parallel.schedule=zb-h1
run 1 "${train[@]}" run.name=seed run.seed=7
compare() { # exit code, arguments
  local code=0
  "$program" compare "${@:2}" >said 2>&1 || code=$?
  [ "$code" = "$1" ] || die "exit code $code, not $1: compare ${*:2}: $(cat said)"
}
says() { grep -qE -- "$1" said || die "no '$1' in: $(cat said)"; }

# Another layout: reports what differs, and that the bits are equal.
compare 0 runs/one runs/two --same
says 'parallel.schedule +1f1b +zb-h1'
says 'two against one: the same losses over 12 steps; the same final state \([0-9a-f]{12}\.\.\.\); the same bits in 3 checkpoints'
says 'Time to [^ ]*validation|time_to_validation_loss|to validation loss|Seconds to'
! grep -q 'batch.global' said || die "equal keys are reported as different: $(cat said)"
for what in '"Configs"' '"Bits"' 'seconds of training' 'tokens' 'the same losses over 12 steps'; do
  grep -qF "$what" compare.html || die "the page lacks $what"
done

# Another seed: reports the first step and tensor that differ.
compare 0 runs/one runs/two runs/seed --out three.html --json
python3 - said <<'END2' || die "not as expected: $(cat said)"
import json, sys
said = json.load(open(sys.argv[1]))
assert said["differences"]["run.seed"]["seed"] == "7" and said["page"] == "three.html", said["differences"]
assert said["bits"]["two"]["same"] and not said["bits"]["seed"]["same"]
assert said["bits"]["seed"]["log"]["step"] == 1 and said["bits"]["seed"]["tensor"]["step"] == 4
assert said["bits"]["seed"]["tensor"]["one"] != said["bits"]["seed"]["tensor"]["other"]
END2
compare 1 runs/one runs/seed --same
says 'seed against one: loss differs from step 1 on: [0-9.]+ against [0-9.]+; different final states; in the checkpoints of step 4 [0-9]+ of [0-9]+ tensors differ'

# An unfinished run of a program without some of the current keys; a whole folder.
cp -r runs/one runs/young
rm runs/young/result.json
sed -i -n '1,7p' runs/young/metrics.jsonl
sed -i '/^snapshot_every/d' runs/young/config.toml
compare 0 runs
says 'young \(at step 7\)'
says 'young \(at step 7\) against one: the same losses over 7 steps'
! grep -q 'snapshot_every' said || die "a missing key is reported as different"
"$program" study table runs --by parallel.schedule --baseline none >said 2>&1 || die "study table: $(cat said)"
says '^1f1b +3'
"$program" study plot runs/one runs/two --x step --y loss --out chart.svg >said 2>&1 || die "study plot: $(cat said)"

# A run of another model has no comparable tensors; imported logs may lack a config.
run 1 "${train[@]}" run.name=wide model.width=64
compare 0 runs/one runs/wide
says 'differ between the models'
mkdir bare
cp runs/one/metrics.jsonl bare
compare 0 bare runs/one
says 'one against bare \(at step 12\): the same losses over 12 steps'

# What cannot be read is no difference of the runs, and is said.
cp -r runs/one runs/text
sed -i '7s/"loss":[^,]*/"loss":"text"/' runs/text/metrics.jsonl
compare 0 runs/one runs/text --same
says "the same losses over 12 steps; loss of step 7 is not a number in a log: 'text'; the same final state"
head -c 40 runs/one/result.json >runs/text/result.json
compare 0 runs/one runs/text
says 'runs/text/result.json: skipped: invalid JSON'

refused "at least two runs" compare runs/one
refused "twice" compare runs/one runs/../runs/one
refused "no run in this folder" compare runs/one "$folder/runs/one/checkpoints"
refused "no such file or directory" compare runs/one nothing
printf x | dd of="$(ls -d runs/two/checkpoints/step-*/shard-*.h5 | head -n 1)" bs=1 seek=4100 conv=notrunc status=none
refused "shard-" compare runs/one runs/two
echo "1 passed, 0 failed"
