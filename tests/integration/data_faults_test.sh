#!/usr/bin/env bash
# Bad data is found before the first step by every command that reads it; if it appears later, no step is lost:
# data_faults_test.sh PROGRAM MPIRUN OPTIONS...
. "$(dirname -- "$0")/common.sh" "$@"

python3 -c '
import random
random.seed(1)
print(" ".join(random.choices("a lone tree stood in the long field".split(), k=900)))' >text.txt
small=(model.layers=1 model.width=16 model.heads=2 model.context=16 batch.global=8 batch.microbatches=4
  run.threads=1 lr.warmup=2 log.trace=0 eval.batches=1 run.steps=8)

# Every family and task that reads token files rejects a prepared file with a flipped bit.
"$program" data prepare data.text=text.txt --out sound.tok >out 2>&1 || die "$(cat out)"
python3 -c '
data = bytearray(open("sound.tok", "rb").read())
data[300] ^= 4
open("flipped.tok", "wb").write(data)'
for family in gpt llama neox bert; do
  keys=(data.format=tokens data.tokenizer=bytes model.vocab=264 "model.family=$family" "run.name=flip-$family")
  run 1 train "${small[@]}" "${keys[@]}" data.files=sound.tok --dry-run
  refused 'damaged' train "${small[@]}" "${keys[@]}" data.files=flipped.tok
  refused 'damaged' train "${small[@]}" "${keys[@]}" data.files=flipped.tok --dry-run
  [ ! -e "runs/flip-$family" ] || die "a run was created from damaged tokens: $family"
done

run 1 train "${small[@]}" data.format=tokens data.tokenizer=bytes model.vocab=264 run.name=evaluated data.files=sound.tok
run 1 eval runs/evaluated --files sound.tok
refused 'damaged' eval runs/evaluated --files flipped.tok

# Data that is bad only once it is drawn is found by --dry-run, `data inspect` and the first launch.
python3 - <<'PY'
import struct
tokens = [i % 250 for i in range(6000)]
tokens[5900] = 999  # in the held-out part
open("beyond.bin", "wb").write(struct.pack("<6000H", *tokens))
open("latin.csv", "wb").write(b"text,label\n" + b"".join(b"film %d,%d\n" % (i, i % 2) for i in range(120))
                               + b"caf\xe9,1\n")
PY
"$program" data train-tokenizer text.txt --out tok --vocabulary 300 >out 2>&1 || die "$(cat out)"
for more in '' --dry-run; do
  refused 'beyond.bin: byte 11800' train "${small[@]}" data.format=tokens data.files=beyond.bin model.vocab=256 \
    run.name=beyond $more
  refused 'latin.csv:122' train "${small[@]}" data.format=csv data.files=latin.csv data.tokenizer=tok \
    model.vocab=310 model.family=bert model.task=classification model.classes=2 run.name=latin $more
done
refused 'latin.csv:122' data inspect --format csv latin.csv --tokenizer tok
refused 'all samples belong to class' train "${small[@]}" data.format=csv data.files=one.csv model.vocab=264 \
  model.family=bert model.task=classification model.classes=1 data.validation=0 <<<"$(
    printf 'text,label\na,x\nb,x\nc,x\nd,x\n' >one.csv)"

# If data turns out bad in a step or an evaluation, all finished steps are committed, the error ends every rank,
# and the same command resumes to the bits of a run without a fault, at every layout and on a spare rank.
keys=("${small[@]}" data.text=text.txt checkpoint.every=0 eval.every=2)
run 1 train "${keys[@]}" run.name=good
fails() { # ranks, name, failpoints, arguments
  local code=0
  CONCERTINA_FAILPOINTS=$3 timeout 100 "$mpirun" -n "$1" "${options[@]}" "$program" train "${keys[@]}" \
    "run.name=$2" "${@:4}" >out 2>&1 || code=$?
  [ "$code" = 2 ] || die "exit code $code of $2: $(cat out)"
  [ "$(grep -c 'error:' out)" = 1 ] || die "not one error of $2: $(cat out)"
  grep -q 'a sample cannot be read' out || die "the reason is missing: $(cat out)"
}
for layout in 1 pp=2 dp=2 'pp=1 spare=1'; do
  ranks=2
  [ "$layout" != 1 ] || ranks=1
  arguments=()
  for one in ${layout#1}; do arguments+=("parallel.$one"); done
  for fault in unread@6:rank=0 unread-held-out:rank=0 "unread@4:rank=$((ranks - 1))"; do
    [[ $layout != *spare* || $fault != *rank=1 ]] || continue  # it reads nothing
    name="run-${layout// /-}-${fault//[@:=]/-}"
    fails "$ranks" "$name" "$fault" "${arguments[@]}"
    done_steps=$(sed -n 's/.*resumes after step \([0-9]*\).*/\1/p' out)
    [ -n "$done_steps" ] && [ -d "runs/$name/checkpoints/step-0000000$done_steps" ] || die "nothing is kept: $(cat out)"
    run "$ranks" train "${keys[@]}" "run.name=$name" "${arguments[@]}"
    [ "$(hash_of "runs/$name")" = "$(hash_of runs/good)" ] || die "the bits of $name differ"
    python3 - "$name" <<'PY' || die "the curves differ: $name"
import json, sys
def curve(name):
    lines = [json.loads(line) for line in open(f"runs/{name}/metrics.jsonl")]
    return [(one["step"], one.get("loss"), one.get("validation_loss")) for one in lines]
assert curve(sys.argv[1]) == curve("good"), (curve(sys.argv[1]), curve("good"))
PY
  done
done

# The supervisor does not restart it, and a run continues with data that was repaired differently.
code=0
CONCERTINA_FAILPOINTS=unread@5:rank=0 "$program" run --ranks 1 -- train "${keys[@]}" run.name=repaired >out 2>&1 ||
  code=$?
[ "$code" = 2 ] || die "exit code $code of the supervisor: $(cat out)"
[ "$(wc -l <runs/repaired/launches.jsonl)" = 1 ] || die "launched more than once: $(cat out)"
sed 's/lone/gone/' text.txt >other && mv other text.txt
run 1 train "${keys[@]}" run.name=repaired
grep -q 'assumed to have been repaired' out || die "not reported: $(cat out)"
refused 'is from another run' train "${keys[@]}" run.name=good run.steps=9
