#!/bin/bash
# Documents that share samples, and sources mixed by weight: the same bits with every layout and after
# a resume; metrics of each source; errors.
# usage: documents_test.sh CONCERTINA MPIRUN [MPIRUN_ARGS...]
. "$(dirname -- "$0")/common.sh"

awk 'BEGIN { srand(3); for (r = 0; r < 400; ++r) { n = 2 + int(rand() * 9); t = "";
  for (w = 0; w < n; ++w) t = t " " substr("brown foxes jump over lazy dogs", 1 + int(rand() * 20), 3 + int(rand() * 6));
  print "{\"text\": \"" r t "\"}" } }' > web.jsonl
head -n 150 web.jsonl | tr a-z A-Z | sed 's/"TEXT"/"text"/' > code.jsonl

base=(data.format=jsonl model.layers=2 model.width=16 model.heads=2 model.context=48 batch.global=8
  batch.microbatches=4 run.steps=12 run.threads=1 checkpoint.every=5 eval.every=6)
packed=("${base[@]}" data.files=web.jsonl data.documents=packed)
mixed=("${base[@]}" 'data.files=["web.jsonl", "code.jsonl"]' 'data.weights=[0.7, 0.3]')

same_everywhere() { # name, config
  local name=$1
  shift
  run 1 train run.name="$name" "$@"
  cp out "$name.out"
  run 2 train run.name="$name-pp" parallel.pp=2 "$@"
  run 2 train run.name="$name-dp" parallel.dp=2 "$@"
  # 12 steps in two launches, at two layouts.
  run 2 train run.name="$name-again" parallel.pp=2 "$@" run.steps=7 lr.steps=12
  run 1 train run.name="$name-again" "$@" lr.steps=12
  for other in pp dp again; do
    [ "$(hash_of runs/$name)" = "$(hash_of runs/$name-$other)" ] || die "$name: the bits differ: $other"
  done
}

same_everywhere packed "${packed[@]}"
grep -q 'training: [0-9]* pieces of documents packed into [0-9]* samples of 48 tokens, [0-9.]*% padding' packed.out ||
  die "no share of padding: $(cat packed.out)"
run 1 train run.name=joined "${base[@]}" data.files=web.jsonl
[ "$(hash_of runs/packed)" != "$(hash_of runs/joined)" ] || die 'packing documents has no effect'
run 1 eval runs/packed --json
run 1 generate runs/packed generate.tokens=8
same_everywhere packed-llama "${packed[@]}" model.family=llama model.dropout=0.1 model.attention_dropout=0.1

same_everywhere mixed "${mixed[@]}"
for source in web code; do
  grep -q "^[^ ]* info $source.jsonl: [37]0% of the samples, [0-9]* of 96: [0-9.]* epochs of its [0-9]*" mixed.out ||
    die "no share of $source: $(cat mixed.out)"
done
run 1 train run.name=dry --dry-run "${mixed[@]}"
grep -q '^data *code.jsonl: 30% of the samples, 29 of 96: ' out || die "the dry run does not show shares: $(cat out)"
run 1 eval runs/mixed --json
grep -q '"loss_web_jsonl":' out && grep -q '"loss_code_jsonl":' out || die "no losses of sources: $(cat out)"
run 1 train run.name=both "${mixed[@]}" data.documents=packed run.epochs=1 run.steps=0

refused 'data.weights has 1 numbers, but data.files has 2 entries' train "${mixed[@]}" 'data.weights=[1]'
refused 'data.weights has 2 numbers, but data.validation_files has 1 entries' train "${mixed[@]}" data.validation_files=web.jsonl
refused 'data.weights' train "${mixed[@]}" 'data.weights=[1, 0]'
refused 'cannot be cached' train "${mixed[@]}" data.windows=fixed cache.memory=1MiB
refused 'cannot be used with model.task = "masked-lm"' train "${packed[@]}" model.family=bert model.task=masked-lm
refused 'packed documents are not supported on a GPU' train "${packed[@]}" run.device=cuda
