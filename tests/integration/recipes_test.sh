#!/usr/bin/env bash
# Averages of weights, L1 penalties and pruning: recipes_test.sh PROGRAM MPIRUN OPTIONS... The same bits at every layout and after a
# stop; averages are those of the saved weights; a pruned model stays as sparse as it was.
package=$(realpath -- "$(dirname -- "$0")/../../experiments/python")
. "$(dirname -- "$0")/common.sh" "$@"

python3 -c 'import random; random.seed(1)
open("text", "w").write(" ".join(random.choice(["the cat", "sat on", "a mat", "and saw it"]) for _ in range(3000)))'
small=(data.text=text run.dir=runs batch.global=8 batch.microbatches=4 numerics.leaves=4 run.threads=1 eval.batches=1
  model.layers=2 model.width=32 model.heads=4 model.context=24 optimizer.lr=1e-2)
rules=(optimizer.ema=0.8 optimizer.l1=0.5 checkpoint.every=1 checkpoint.keep=100)
first=""
for layout in '1 parallel.pp=1' '2 parallel.pp=2 parallel.schedule=zb-h1' '2 parallel.dp=2' '3 parallel.pp=3' \
  '4 parallel.pp=2 parallel.dp=2 parallel.overlap=true'; do
  read -r -a words <<<"$layout"
  rm -rf runs/rules
  run "${words[0]}" train "${small[@]}" "${rules[@]}" run.name=rules run.steps=8 "${words[@]:1}"
  hash=$(hash_of runs/rules)
  [ "${first:=$hash}" = "$hash" ] || die "the bits differ: $layout"
done
run 2 train "${small[@]}" "${rules[@]}" run.name=continued run.steps=4 lr.steps=8 parallel.pp=2
run 1 train runs/continued run.steps=8 parallel.pp=1
[ "$(hash_of runs/continued)" = "$first" ] || die "the bits differ after a stop"

# The average follows the saved weights; L1 makes exact zeros; a frozen tensor has no average.
PYTHONPATH=$package python3 - <<'PYTHON' || die "wrong averages or no zeros"
import numpy as np, concertina
steps = [concertina.Run("runs/rules").checkpoint(step) for step in range(1, 9)]
for name in steps[-1].tensors:
    average = steps[0].read(name).astype(float)
    for step in steps[1:]:
        average = 0.8 * average + 0.2 * step.read(name)
    assert np.abs(concertina.Checkpoint(steps[-1].path, average=True).read(name) - average).max() <= 1e-6, name
zeros = np.mean([np.mean(steps[-1].read(name) == 0) for name in steps[-1].tensors if name.endswith("up.weight")])
assert zeros > 0.1, zeros
PYTHON
loss() { # arguments of eval
  run 2 eval "$@" --json
  sed -n 's/.*"loss":\([0-9.]*\).*/\1/p' out
}
[ "$(loss runs/rules)" != "$(loss runs/rules --average)" ] || die "--average has no effect"
run 1 checkpoint export runs/rules --out averaged --average
grep -q '| weights | moving average' averaged/README.md || die "the card does not tell of the average"
! grep -q '| held out |' averaged/README.md || die "the card has the metrics of other weights"
run 1 checkpoint import averaged --out runs/averaged
[ "$(loss runs/averaged --text text)" = "$(loss runs/rules --average --text text)" ] || die "the exported average differs"
run 1 generate runs/rules --average generate.tokens=3

run 1 train "${small[@]}" run.name=plain run.steps=3
refused "has no 'ema' of the weights" eval runs/plain --average
refused 'optimizer.keep_zeros' train "${small[@]}" run.name=x optimizer.name=muon optimizer.keep_zeros=true
refused 'optimizer.ema' train "${small[@]}" run.name=x optimizer.ema=1
refused 'prune' checkpoint export runs/plain --out x --prune 1
# Half of the hidden layers' weights become zero, and fine-tuning keeps them.
for kind in each global; do
  words=(); [ $kind = each ] || words=(--prune-global)
  run 1 checkpoint export runs/plain --out pruned-$kind --prune 0.5 "${words[@]}" --json
  grep -q '"of":24576,"path":"pruned-'$kind'","step":3,"zeros":12288' out || die "$kind: $(cat out)"
  for optimizer in adamw lion; do
    run 2 train "${small[@]}" model.from=pruned-$kind run.name=$kind-$optimizer run.steps=5 optimizer.keep_zeros=true \
      optimizer.name=$optimizer parallel.pp=2
    PYTHONPATH=$package python3 - runs/$kind-$optimizer <<'PYTHON' || die "$kind, $optimizer: the zeros changed"
import sys, numpy as np, concertina
read = concertina.Run(sys.argv[1]).checkpoint().read
names = [name for name in concertina.Run(sys.argv[1]).checkpoint().tensors if "/" in name and name.startswith("0") and name.endswith("weight")]
zeros = [int(np.sum(read(name) == 0)) for name in names if read(name).ndim == 2 and "table" not in name]
assert sum(zeros) == 12288, (names, zeros)
PYTHON
  done
done
echo "averages, L1 penalties and pruned models: passed"
