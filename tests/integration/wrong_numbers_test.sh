#!/usr/bin/env bash
# Runs with wrong numbers: the actions of verify.on_fault, and that a repaired run has the bits of
# one without a fault: wrong_numbers_test.sh PROGRAM MPIRUN OPTIONS...
. "$(dirname -- "$0")/common.sh" "$@"

python3 -c '
import random
random.seed(1)
print(" ".join(random.choices("a lone tree stood in the long field".split(), k=600)))' >text.txt
keys=(model.layers=2 model.width=16 model.heads=2 model.context=16 batch.global=8 batch.microbatches=4
  data.text=text.txt data.windows=fixed run.steps=12 run.threads=1 lr.warmup=2 log.trace=0
  checkpoint.every=5 eval.batches=1)

# train RANKS NAME FAILPOINTS KEY...; `fails` does the same for a launch that ends with 1 and one error.
train() {
  CONCERTINA_FAILPOINTS=$3 run "$1" train "${keys[@]}" "run.name=$2" "${@:4}"
}
fails() {
  local code=0
  CONCERTINA_FAILPOINTS=$3 "$mpirun" -n "$1" "${options[@]}" "$program" train "${keys[@]}" "run.name=$2" \
    "${@:4}" >out 2>&1 || code=$?
  [ "$code" = 1 ] || die "exit code $code of $2: $(cat out)"
  [ "$(grep -c 'error:' out)" = 1 ] || die "not one error of $2: $(cat out)"
}
says() { grep -qF -- "$1" out || die "no '$1' in: $(cat out)"; }
same() { [ "$(hash_of "runs/$1")" = "$(hash_of "runs/$2")" ] || die "the bits of $1 and $2 differ"; }

# events NAME: prints "step action" per fault. steps NAME: prints metrics.jsonl's steps, and how many lack a loss.
events() {
  python3 - "$1" <<'PY'
import json, sys
for line in open(f"runs/{sys.argv[1]}/events.jsonl"):
    event = json.loads(line)
    if event["event"] == "fault":
        print(event["step"], event["action"], *event.get("ranks", []))
PY
}
steps() {
  python3 - "$1" <<'PY'
import json, sys
lines = [json.loads(line) for line in open(f"runs/{sys.argv[1]}/metrics.jsonl")]
assert [line["step"] for line in lines] == list(range(1, len(lines) + 1)), lines
print(len(lines), *(line["step"] for line in lines if line["loss"] is None))
PY
}
is() { [ "$1" = "$2" ] || die "$3: '$1', not '$2'"; }

nan='activation-nan@8:microbatch=2,unit=1'
train 1 good '' parallel.pp=1
for layout in pp=2 dp=2; do
  train 2 "good-$layout" '' "parallel.$layout" verify.every=1
  same "good-$layout" good

  # A NaN ends the run: one error, and the checkpoint is kept. The same command continues to the same bits.
  fails 2 "stop-$layout" "$nan" "parallel.$layout"
  says 'the loss of step 8 is NaN'
  says 'microbatch 2'
  is "$(ls "runs/stop-$layout/checkpoints" | grep step-)" step-00000005 'checkpoints'
  train 2 "stop-$layout" '' "parallel.$layout"
  same "stop-$layout" good

  train 2 "skip-$layout" "$nan" "parallel.$layout" verify.on_fault=skip
  is "$(events "skip-$layout")" '8 skipped' 'events of a skip'
  is "$(steps "skip-$layout")" '12 8' 'steps of a skip'

  train 2 "back-$layout" "$nan" "parallel.$layout" verify.on_fault=rollback
  is "$(events "back-$layout")" '5 goes back' 'events of a rollback'
  is "$(steps "back-$layout")" 12 'steps of a rollback'
  same "back-$layout" good

  fails 2 "again-$layout" "$nan,times=2" "parallel.$layout" verify.on_fault=rollback
  says 'the loss of step 8 is NaN, again'

  # A rank detects a change in state that only it owns; no replica can repair it.
  fails 2 "moment-$layout" optimizer-bit@8:rank=1 "parallel.$layout" verify.every=1
  says 'in step 8, the state differs from the result of the previous update'
  says 'rank 1: m of '
  train 2 "moment-back-$layout" optimizer-bit@8:rank=1 "parallel.$layout" verify.every=1 verify.on_fault=rollback
  same "moment-back-$layout" good
done
same skip-pp=2 skip-dp=2
[ "$(hash_of runs/skip-dp=2)" != "$(hash_of runs/good)" ] || die 'a skipped step changed nothing'

# Before there is a checkpoint, the run returns to its start.
train 2 start "${nan/@8/@3}" parallel.dp=2 verify.on_fault=rollback
is "$(events start)" '0 goes back' 'events of a rollback to the start'
same start good
train 2 resumed "${nan/@8/@1}" parallel.dp=2 verify.on_fault=skip run.steps=1 lr.warmup=0
train 1 resumed '' verify.on_fault=skip run.steps=2 lr.warmup=0

# A flipped bit in a weight of one replica.
train 2 flip weight-bit@8:rank=1 parallel.dp=2 verify.every=1
is "$(events flip)" '8 repaired 1' 'events of a repair'
same flip good
fails 2 stuck weight-bit@8:rank=1,times=9 parallel.dp=2 verify.every=1
says 'again after the run was repaired'
says 'rank 1: '
train 4 flip-four weight-bit@8:rank=3 parallel.pp=2 parallel.dp=2 verify.every=1
is "$(events flip-four)" '8 repaired 3' 'events of a repair'
same flip-four good
fails 2 both weight-bit-after@7:rank=1 parallel.dp=2 verify.every=1
says 'replicas have different weights'
says 'ranks 0, 1: '

# Nothing is finite any more: diverged weights never recover.
fails 2 forever activation-nan:times=1000 parallel.dp=2 verify.on_fault=skip
says 'after 10 skipped steps'

CONCERTINA_FAILPOINTS=weigth-bit refused "'weigth-bit' is not a failpoint" train run.name=none data.text=text.txt
# Under `concertina run`: a repeated fault ends the run after one launch, a transient one leaves no trace.
supervised() { # NAME, FAILPOINTS, options of `run`...
  local code=0
  CONCERTINA_FAILPOINTS=$2 "$program" run --ranks 2 "${@:3}" -- train "${keys[@]}" run.name="$1" parallel.pp=2 \
    >out 2>&1 || code=$?
  echo "$code"
}
launcher="$mpirun -n {ranks} ${options[*]} {program} {args}"
is "$(supervised certain "$nan,times=1000" --launcher "$launcher")" 1 'a run that diverges'
says 'would fail again'
is "$(wc -l <runs/certain/launches.jsonl)" 1 'launches of a run that diverges'
is "$(supervised chance "$nan" --launcher "$launcher")" 0 'a number that was wrong by chance'
is "$(wc -l <runs/chance/launches.jsonl)" 1 'launches after a number that was wrong by chance'
same chance good

# The last step makes the weights too large: the losses of steps are finite, and only the held-out one is NaN.
code=0
"$program" run --ranks 2 --launcher "$launcher" -- train "${keys[@]}" run.name=overflow parallel.pp=2 run.steps=1 \
  optimizer.lr=1e19 lr.warmup=0 >out 2>&1 || code=$?
is "$code" 1 'a run whose held-out loss is NaN'
says 'the held-out loss is NaN: the weights have diverged'
is "$(wc -l <runs/overflow/launches.jsonl)" 2 'launches of a run whose held-out loss is NaN'

# A fault that recurs with the same message in the same state would recur again; another message may be another fault.
for words in same '$RANDOM'; do
  cat >launch <<END
#!/bin/bash
echo >>launched
mkdir -p runs/words
echo "{\"fault\":\"failed\",\"ranks\":[],\"what\":\"$words\",\"time\":\"now\"}" >>runs/words/faults.jsonl
sleep 0.1
exit 1
END
  chmod +x launch
  is "$(supervised words '' --launcher './launch {program}')" 1 'a launch that fails'
  echo "$(wc -l <launched)"; rm launched
done >counts
is "$(xargs <counts)" '2 5' 'launches that fail'
echo "1 passed, 0 failed"
