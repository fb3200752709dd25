#!/usr/bin/env bash
# Averages of weights, L1 penalties, pruning, distillation and ensembles: recipes_test.sh PROGRAM MPIRUN OPTIONS... The same bits at
# every layout and after a stop; averages are those of the saved weights; a pruned model stays as sparse as it was.
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

run 1 checkpoint export runs/rules --out sparse --sparse-report --json
cp out sparse.json
PYTHONPATH=$package python3 - <<'PYTHON' || die "wrong counts of zeros: $(cat out)"
import json, numpy as np, concertina
report = json.loads(open("sparse.json").read().splitlines()[-1])
read = concertina.Run("runs/rules").checkpoint().read
assert report["zeros"] == sum(row["zeros"] for row in report["tensors"]) > 0 and report["of"] == 24576
for row in report["tensors"]:
    values = read(row["tensor"])
    assert (row["zeros"], row["of"]) == (np.sum(values == 0), values.size), row
PYTHON

# The mean of checkpoints, of one run and of several.
run 2 checkpoint average runs/rules --last 3 --out runs/mean
run 1 checkpoint average runs/rules runs/plain runs/each-adamw/checkpoints/step-00000005 --out runs/soup
PYTHONPATH=$package python3 - <<'PYTHON' || die "wrong means"
import numpy as np, concertina
run = concertina.Run("runs/rules")
for mean, parts in (("runs/mean", [run.checkpoint(step) for step in (6, 7, 8)]),
                    ("runs/soup", [concertina.Run(f"runs/{name}").checkpoint() for name in ("rules", "plain", "each-adamw")])):
    mean = concertina.Run(mean).checkpoint()
    assert mean.step == 0 and len(mean.tensors) == len(parts[0].tensors)
    for name in mean.tensors:
        expected = np.mean([part.read(name).astype(float) for part in parts], axis=0)
        assert np.abs(mean.read(name) - expected).max() <= 1e-7, name
PYTHON
[ -n "$(loss runs/mean)" ] || die "the mean cannot be evaluated"
refused 'one checkpoint has no other' checkpoint average runs/rules --out runs/x
refused 'there are 8 checkpoints' checkpoint average runs/rules --last 9 --out runs/x
refused 'is given twice' checkpoint average runs/rules runs/rules --out runs/x
refused 'the run already exists' checkpoint average runs/rules runs/plain --out runs/mean

# A teacher: the same bits with every layout and after a stop; it is not needed afterwards.
first=""
taught=("${small[@]}" distill.teacher=runs/plain distill.weight=0.7 run.name=taught)
for layout in '1 parallel.pp=1' '2 parallel.pp=2 parallel.schedule=zb-h1' '4 parallel.pp=2 parallel.dp=2'; do
  read -r -a words <<<"$layout"
  rm -rf runs/taught
  run "${words[0]}" train "${taught[@]}" run.steps=4 lr.steps=6 "${words[@]:1}"
  run 2 train runs/taught run.steps=6 parallel.pp=1 parallel.dp=2
  hash=$(hash_of runs/taught)
  [ "${first:=$hash}" = "$hash" ] || die "the teacher's student depends on the layout: $layout"
done
# Everything together, in all layouts of 4 ranks, and after kills.
all=("${rules[@]:0:2}" distill.teacher=runs/plain)
run 4 verify "${small[@]}" "${all[@]}" --steps 2
[ "$(grep -c 'same bits' out)" -ge 10 ] && grep -q 'are bit-identical' out || die "layouts differ: $(cat out)"
"$program" soak --mean 2 --for 6 --at-most 2 --faults kill --ranks 2 --launcher "$mpirun -n {ranks} ${options[*]} {program} {args}" --out soak --json -- \
  train "${small[@]}" "${all[@]}" run.name=killed run.steps=1500 checkpoint.every=50 parallel.pp=2 parallel.dp=1 >out 2>said ||
  { cat said out; die "not the same bits after kills"; }
grep -q '"faults": *[12],' out || die "no fault: $(cat out)"
refused 'another run: distill.teacher' train runs/taught run.steps=8 parallel.pp=1 parallel.dp=1 distill.teacher=runs/rules
run 1 train "${small[@]}" run.name=larger run.steps=1 model.vocab=300
refused 'the teacher: it has 7200 logits' train "${taught[@]}" run.name=x distill.teacher=runs/larger
refused 'require a task with one class' plan show model.task=regression distill.teacher=runs/plain --world 1
refused 'distill.weight' train "${small[@]}" run.name=x distill.weight=0.7
# A model that is its own teacher has nothing to learn.
run 1 train "${taught[@]}" run.name=same model.from=runs/plain distill.weight=1 optimizer.name=sgd optimizer.weight_decay=0 \
  optimizer.lr=1 optimizer.clip=0 run.steps=3
PYTHONPATH=$package python3 - <<'PYTHON' || die "a model learns from itself"
import numpy as np, concertina
before, after = (concertina.Run(f"runs/{name}").checkpoint() for name in ("plain", "same"))
for name in before.tensors:
    assert np.abs(before.read(name) - after.read(name)).max() <= 1e-6, name
PYTHON
mv runs/plain runs/moved
[ -n "$(loss runs/taught)" ] || die "the student needs its teacher"
run 1 generate runs/taught generate.tokens=3
mv runs/moved runs/plain

# Ensembles: the mean of probabilities and the vote of what --predictions writes.
python3 -c 'import random; random.seed(2)
open("rows.csv", "w").write("text,label\n" + "".join(f"{random.choice(x)} {random.choice(x)},{y}\n" for _ in range(80)
  for y, x in random.choices([("good", ["fine", "nice", "so so"]), ("bad", ["poor", "dull", "so so"]), ("odd", ["eh", "so so"])])))'
classes=("${small[@]:1}" data.format=csv data.files=rows.csv model.task=classification model.classes=3 model.vocab=260 data.seed=1
  data.most_overlap=1)
for seed in 1 2 3; do
  run 1 train "${classes[@]}" data.validation=0.4 run.seed=$seed run.name=seed$seed run.steps=12
  run 1 eval runs/seed$seed --predictions seed$seed.jsonl
done
run 1 eval runs/seed1 --ensemble runs/seed2 --ensemble runs/seed3 --json
grep "^{" out >together.json
run 2 eval runs/seed1 --ensemble runs/seed2 --ensemble runs/seed3 --json parallel.schedule=gpipe
grep "^{" out | cmp - together.json || die "ensembles depend on the number of ranks"
run 1 eval runs/seed1 --ensemble runs/seed2
grep -q '^majority vote  *- ' out || die "no table: $(cat out)"
python3 - <<'PYTHON' || die "wrong ensembles"
import json, numpy as np
report = json.load(open("together.json"))
rows = [[json.loads(line) for line in open(f"seed{seed}.jsonl")] for seed in (1, 2, 3)]
names = ["bad", "good", "odd"]
labels = np.array([names.index(row["label"]) for row in rows[0]])
logits = np.array([[row["logits"] for row in one] for one in rows])
each = np.exp(logits - logits.max(-1, keepdims=True))
each /= each.sum(-1, keepdims=True)
mean = each.mean(0)
votes = sum(np.eye(3)[one.argmax(-1)] for one in each) + mean / 2
at = np.arange(len(labels))
assert report["samples"] == len(labels)
for member, one in zip(report["members"], each):
    assert abs(member["accuracy"] - np.mean(one.argmax(-1) == labels)) < 1e-9
    assert abs(member["loss"] + np.mean(np.log(one[at, labels]))) < 1e-5
assert abs(report["mean"]["loss"] + np.mean(np.log(mean[at, labels]))) < 1e-6
assert abs(report["mean"]["accuracy"] - np.mean(mean.argmax(-1) == labels)) < 1e-9
assert abs(report["vote"]["accuracy"] - np.mean(votes.argmax(-1) == labels)) < 1e-9
PYTHON
refused 'an ensemble needs one run' eval runs/seed1 runs/seed2 --ensemble runs/seed3
refused 'does not predict one class' eval runs/seed1 --ensemble runs/plain
refused '--predictions has no effect' eval runs/seed1 --ensemble runs/seed2 --predictions x.csv
run 1 train "${classes[@]}" data.validation=0.2 run.name=less run.steps=1
refused 'different held-out data' eval runs/seed1 --ensemble runs/less
echo "averages, L1 penalties, pruned models, distillation and ensembles: passed"
