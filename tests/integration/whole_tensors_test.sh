#!/usr/bin/env bash
# Optimizers that update whole tensors train to the same bits with every layout, after a resume at
# another one, and when units freeze: whole_tensors_test.sh PROGRAM MPIRUN OPTIONS...
. "$(dirname -- "$0")/common.sh" "$@"

sizes=(model.layers=3 model.width=32 model.heads=4 model.context=16 batch.global=24
  batch.microbatches=12 numerics.leaves=4 run.threads=1 checkpoint.every=4)
uneven='parallel.layout=[
  {stages = [{rank = 0, units = [0, 4]}, {rank = 2, units = [4, 8]}], microbatches = [0, 6]},
  {stages = [{rank = 1, units = [0, 8]}], microbatches = [6, 12]}]'
seq 1 4000 >numbers.txt

train() { # ranks, run.name, keys
  run "$1" train "run.name=$2" 'data.text=["numbers.txt"]' "${sizes[@]}" "${@:3}"
}
same() { # what, run, run
  [ "$(hash_of "runs/$2")" = "$(hash_of "runs/$3")" ] || die "$1: the bits differ"
  echo "same bits: $1"
}

for rule in muon lamb; do
  for ranks in 2 3; do
    run "$ranks" verify --layouts all --steps 2 "${sizes[@]}" "optimizer.name=$rule" \
      model.family=llama model.llama.kv_heads=2 freeze.units=2
    echo "same bits: $rule, all layouts of $ranks ranks"
  done
  train 1 "$rule" run.steps=8 "optimizer.name=$rule"
  train 4 "$rule-moved" run.steps=4 "optimizer.name=$rule" parallel.dp=4
  train 3 "$rule-moved" run.steps=8 "optimizer.name=$rule" "$uneven"
  same "$rule, 4 replicas and then 2 + 1 stages" "$rule" "$rule-moved"
  freezing=(run.steps=8 "optimizer.name=$rule" freeze.policy=list 'freeze.at=["step 3: 1", "step 6: 2"]')
  train 1 "$rule-frozen" "${freezing[@]}"
  train 4 "$rule-frozen-grid" "${freezing[@]}" parallel.pp=2 parallel.dp=2
  same "$rule, frozen on the way" "$rule-frozen" "$rule-frozen-grid"
done
echo "1 passed, 0 failed"
