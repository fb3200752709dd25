#!/usr/bin/env bash
# Adapters: lora_test.sh PROGRAM MPIRUN OPTIONS... The same bits with every layout and after a stop; only they train; exports and
# runs that start from one are the same model.
. "$(dirname -- "$0")/common.sh" "$@"

python3 -c 'import random; random.seed(1)
open("text", "w").write(" ".join(random.choice(["the cat", "sat on", "a mat", "and saw it"]) for _ in range(3000)))'
small=(data.text=text run.dir=runs batch.global=8 batch.microbatches=4 numerics.leaves=4 run.threads=1 eval.batches=1)
for family in gpt neox; do
  run 1 train "${small[@]}" run.name=$family run.steps=5 model.family=$family model.layers=2 model.width=32 model.heads=4 model.context=24
  run 1 checkpoint export runs/$family --out $family
  start=(train "${small[@]}" model.from=$family lora.rank=3 lora.alpha=6 run.steps=6 optimizer.lr=1e-2)
  first=""
  for layout in '1 parallel.pp=1' '2 parallel.pp=2 parallel.schedule=zb-h1' '3 parallel.pp=3' '2 parallel.dp=2' \
    '2 parallel.pp=2 parallel.schedule=zb-v' '4 parallel.pp=2 parallel.dp=2 parallel.overlap=true'; do
    read -r -a words <<<"$layout"
    rm -rf runs/adapted
    run "${words[0]}" "${start[@]}" run.name=adapted "${words[@]:1}"
    hash=$(hash_of runs/adapted)
    [ "${first:=$hash}" = "$hash" ] || die "$family: the bits differ: $layout"
  done
  # A run that stops and continues on other ranks.
  rm -rf runs/continued runs/whole
  run 2 "${start[@]}" run.steps=3 lr.steps=6 run.name=continued parallel.pp=2
  run 1 train runs/continued run.steps=6 parallel.pp=1
  run 1 "${start[@]}" lr.steps=6 run.name=whole
  [ "$(hash_of runs/continued)" = "$(hash_of runs/whole)" ] || die "$family: the bits differ after a stop"
  refused 'lora.rank' train runs/continued lora.rank=2 run.steps=8

  # The sum of weights and adapters is exported, and other runs start from it.
  loss() { # arguments of eval
    run 1 eval "$@" --json
    sed -n 's/.*"loss":\([0-9.]*\).*/\1/p' out
  }
  wanted=$(loss runs/adapted)
  [ "$(loss runs/$family)" != "$wanted" ] || die "$family: the adapters have no effect"
  run 1 checkpoint export runs/adapted --out merged-$family
  run 1 checkpoint export runs/adapted --peft --out adapter-$family
  refused 'already exists' checkpoint export runs/adapted --peft --out adapter-$family
  run 1 checkpoint import merged-$family --out runs/merged-$family
  near() { # loss, what
    python3 -c 'import sys; sys.exit(abs(float(sys.argv[1]) - float(sys.argv[2])) > 1e-6)' "$1" "$wanted" || die "$family: $2 gives $1, not $wanted"
  }
  near "$(loss runs/merged-$family --text text)" "the export"
  for from in runs/adapted adapter-$family; do
    rm -rf runs/from
    run 2 train "${small[@]}" model.from=$from run.name=from run.steps=1 optimizer.lr=1e-12
    near "$(loss runs/from)" "$from"
  done
  run 1 checkpoint export runs/adapted --peft --out again --force
  cmp again/adapter_model.safetensors adapter-$family/adapter_model.safetensors || die "$family: another export"
  run 1 generate runs/adapted generate.tokens=3
done
# A killed export is repeated; a folder has adapters or a whole model; trained tensors are not lost.
touch again/adapter_model.safetensors.partial
run 1 checkpoint export runs/adapted --peft --out again --force
refused 'already exists' checkpoint export runs/adapted --out again
cp merged-neox/config.json again
refused 'both adapters and a whole model' train "${small[@]}" model.from=again run.name=x
run 1 train "${small[@]}" model.from=gpt lora.rank=2 'freeze.tensors=["!*.bias"]' run.steps=1 run.name=biases
refused 'the run also trained' checkpoint export runs/biases --peft --out x
run 1 train "${small[@]}" model.from=adapter-gpt run.steps=1 run.name=second
run 1 checkpoint export runs/second --peft --out second
grep -q '"base_model_name_or_path": ".*/gpt"' second/adapter_config.json || die "another base: $(cat second/adapter_config.json)"
rm again/adapter_model.safetensors again/config.json
refused 'no adapter_model.safetensors' train "${small[@]}" model.from=again run.name=x
refused 'trained no adapters' checkpoint export runs/gpt --peft --out x
refused 'lora.targets = "query" is not a valid value' train "${small[@]}" lora.rank=2 lora.targets=query run.name=x
refused 'lora.targets is empty' train "${small[@]}" lora.rank=2 'lora.targets=[]' run.name=x
rm -r gpt
refused 'is not a folder' train "${small[@]}" model.from=adapter-gpt run.name=x
echo "1 passed, 0 failed"
