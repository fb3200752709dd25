#!/bin/sh
# run.epochs, checkpoint.best and run.patience: how long a run is, which of its models is kept, and
# when it ends because none is better; the same at every layout, and after kills at any time.
# usage: selection_test.sh CONCERTINA FAILING_CALLS MPIRUN [MPIRUN_ARGS...]
set -u
binary=$(realpath -- "$1"); shift
failing=$(realpath -- "$1"); shift
mpirun=$*
. "$(dirname -- "$0")/training_checks.sh"
tiny_run 200

figure() { sed -n "s/^  \"$2\": \"*\([^\",]*\)\"*,*$/\1/p" "runs/$1/result.json"; }
end_of() { for key in steps ended_by best_by best_step best_figure validation_loss state_sha256; do figure "$1" $key; done; }
commits_of() { ls "runs/$1/checkpoints" | grep '^step-[0-9]*$'; }

# Epochs of 645 samples, 8 per step.
expect 0 0 epochs --set run.epochs=1 --set run.steps=0 --dry-run
grep -q '^steps .*, the end of epoch 1' out || fail 'the dry run does not show the epochs'
[ ! -e runs/epochs ] || fail 'a dry run created a directory'
expect 0 0 epochs --set run.epochs=1 --set run.steps=0
steps=$(figure epochs steps)
[ "$(figure epochs epochs)" = 1 ] && [ "$(figure epochs ended_by)" = run.epochs ] || fail 'result.json lacks the epochs'
grep -q "^steps = $steps\$" runs/epochs/config.toml || fail 'config.toml lacks the steps of the epochs'
expect 0 0 as_steps --set run.steps=$steps
[ "$(hash_of epochs)" = "$(hash_of as_steps)" ] || fail 'the bits of a run by epochs and by steps differ'
expect 2 0 both --set run.epochs=1 --set run.steps=7
one_message "run.steps = 7, but run.epochs = 1 takes $steps steps with this data" 'both'
expect 2 0 part --set run.epochs=0.5
# Adding epochs does not change the learning rates.
exits 0 'more epochs' "$binary" train runs/epochs run.epochs=2
exits 2 'other steps' "$binary" train runs/epochs run.steps=500
[ "$(figure epochs epochs)" = 2 ] && [ "$(figure epochs steps)" -gt "$steps" ] || fail 'no second epoch'
grep -q "^steps = $steps\$" runs/epochs/config.toml || fail 'lr.steps has grown with run.epochs'

# A learning rate at which the loss oscillates.
cat >> base.toml << 'END'
[optimizer]
lr = 0.6
[checkpoint]
every = 10
keep = 2
END
sed -i 's/^batches = 1/batches = 1\nevery = 4/' base.toml
wild='--set run.patience=3 --set checkpoint.best=validation_loss'

expect 0 0 whole $wild
grep -q '^step [0-9]*/200  held-out loss [0-9.]*, over .* targets (best so far)$' err || fail 'no held-out loss on the console'
grep -q '3 of 3 evaluations without a better one)$' err || fail 'the console does not show why it ends'
grep -q '^ended after 3 evaluations without a better validation_loss' out || fail 'the end is not reported'
[ "$(figure whole ended_by)" = run.patience ] && [ "$(figure whole steps)" -lt 200 ] || fail 'run.patience did not end it'
best=$(figure whole best_step)
[ "$((best + 12))" = "$(figure whole steps)" ] || fail "best after $best, ended after $(figure whole steps)"
# The losses must agree.
grep '"event":"validation"' runs/whole/events.jsonl | grep -v '"final":true' |
  sed 's/^{"step":\([0-9]*\),.*"loss":\([0-9.]*\).*/\2 \1/' | sort -g | head -n 1 > least
[ "$(cut -d' ' -f2 least)" = "$best" ] && [ "$(cut -d' ' -f1 least)" = "$(figure whole best_figure)" ] ||
  fail "the smallest loss is $(cat least), but the best is $(figure whole best_figure) after $best"
[ "$(commits_of whole | wc -l)" = 3 ] && commits_of whole | head -n 1 | grep -q "^step-0*$best\$" ||
  fail "the best of step $best is not kept besides two: $(commits_of whole)"

# Commands that read a run use its best checkpoint, or the newest if requested.
newest=$(figure whole steps)
taken() { # TEXT COMMAND...
  wanted_text=$1; shift
  exits 0 "$*" "$binary" "$@"
  cat out err | grep -qF -- "$wanted_text" || fail "$*: no '$wanted_text'"
}
taken "step $best, the best of the run by validation_loss" eval runs/whole
taken "step $newest: held-out" eval runs/whole --newest
taken "step $best, the best of" generate runs/whole generate.tokens=3
taken "model after step $newest" generate runs/whole --newest generate.tokens=3
taken "model after step $best, the best of" checkpoint export runs/whole --out exported
taken "model after step $newest" checkpoint export runs/whole --out exported --force --newest
taken "model after step $newest" checkpoint export runs/whole/checkpoints --out exported --force
taken "after step $best" train @base.toml run.name=from_best run.steps=1 model.from=runs/whole
taken "after step $newest" train @base.toml run.name=from_newest run.steps=1 model.from=runs/whole/checkpoints
exits 2 '--newest with --step' "$binary" eval runs/whole --newest --step "$best"
# Its held-out loss is the one by which it was selected.
"$binary" eval runs/whole --json | grep -q "\"loss\":$(figure whole best_figure)," || fail 'the best commit has another loss'

# A complete run trains nothing; with more patience it continues, as if started with it.
before=$(end_of whole)
expect 0 0 whole $wild
grep -q 'nothing to train (run.patience = 3)' err || fail 'a finished run does not say why'
[ "$(end_of whole)" = "$before" ] || fail 'a finished run has changed'
cp -r runs/whole runs/more && rm runs/more/run.id runs/more/checkpoints/owner.json
expect 0 0 more $wild --set run.patience=5
expect 0 0 patient $wild --set run.patience=5
[ "$(end_of more)" = "$(end_of patient)" ] || fail "more patience later: $(end_of more); from the start: $(end_of patient)"
# An improvement by more than the metric can change never happens.
expect 0 0 least $wild --set run.least_improvement=100
[ "$(figure least steps)" = 16 ] || fail "with run.least_improvement the run ends after $(figure least steps)"

# At other layouts.
expect 0 2 pipeline $wild --set parallel.pp=2
expect 0 4 replicas $wild --set parallel.pp=2 --set parallel.dp=2
for name in pipeline replicas; do
  [ "$(end_of $name)" = "$before" ] || fail "$name: $(end_of $name); at one rank: $before"
  [ "$(commits_of $name)" = "$(commits_of whole)" ] || fail "the commits of $name differ"
done

# Killed at any time: after each kill, the best checkpoint recorded in the newest commit exists, and
# the result is the same.
killed=0 first=1
for call in "rename step-" "rename config" "fsync shard" "fsync checkpoints" "unlinkat checkpoints" "mkdir partial" "pwrite shard"; do
  set -- $call
  name=killed-$1-$2-$first
  FAILING_CALL="$1 $first $first 0 $2" LD_PRELOAD=$failing timeout -k 5 60 "$binary" train @base.toml \
    --set "run.name=$name" $wild > out 2> err
  [ $? = 137 ] && killed=$((killed + 1))
  : > commits
  [ ! -d "runs/$name/checkpoints" ] || commits_of "$name" > commits
  [ ! -s commits ] || exits 0 "eval of $name" "$binary" eval "runs/$name"
  [ -s commits ] && anew= || anew=--from-scratch
  expect 0 0 "$name" $wild $anew
  [ "$(end_of "$name")" = "$before" ] || fail "$name: $(end_of "$name"); without a kill: $before"
  [ "$(commits_of "$name")" = "$(commits_of whole)" ] || fail "$name has the commits $(commits_of "$name")"
  first=$((10 - first))
done
[ $killed -ge 5 ] || fail "only $killed of 7 launches were killed"

# A checkpoint that cannot be written never counts as the best.
FAILING_CALL="mkdir 1 1 28 step-00000004" LD_PRELOAD=$failing timeout -k 5 60 "$binary" train @base.toml \
  --set run.name=full $wild --set run.steps=9 --set run.patience=0 > out 2> err || fail 'a full disk ends the run'
grep -q 'cannot write the checkpoint of step 4' err || fail 'a failed checkpoint is not reported'
[ "$(figure full best_step)" = 8 ] || [ "$(figure full best_step)" = 9 ] || fail "the best is $(figure full best_step)"

# The best checkpoint has been removed.
rm -r runs/whole/checkpoints/step-*$best
exits 2 'eval without the best' "$binary" eval runs/whole
one_message "the run's best checkpoint by validation_loss, of step $best, is missing" 'eval without the best'
taken "step $newest: held-out" eval runs/whole --newest
expect 0 0 whole $wild --set run.patience=5
grep -q "the best checkpoint by validation_loss, of step $best, is no longer in" err || fail 'a missing best checkpoint is not reported'

# Metrics that cannot be used for selection.
expect 2 0 bad --set checkpoint.best=accuracy
one_message 'checkpoint.best = "accuracy": evaluations of this task do not provide this metric' 'no accuracy'
expect 2 0 bad $wild --set data.validation=0
one_message 'checkpoint.best needs evaluations, but there is no held-out data' 'nothing held out'
expect 2 0 bad --set run.patience=1 --set eval.every=0
one_message 'run.patience = 1, but there is no evaluation before the last step' 'no evaluations'
exit $bad
