#!/usr/bin/env bash
# Metrics of a task besides the loss in `train` and `eval`, and predictions as rows: the same at
# every layout, and recomputed from the rows by another program.
# usage: metrics_test.sh CONCERTINA MPIRUN [MPIRUN_ARGS...]
. "$(dirname -- "$0")/common.sh"

python3 - <<'EOF'
import random
random.seed(3)
good, bad, all = ["fine", "warm", "bright"], ["dull", "cold", "grey"], "a the day film was very and it".split()
def line(words, noise):
    picked = random.choices(all, k=5) + ([] if random.random() < noise else random.choices(words, k=2))
    random.shuffle(picked)
    return " ".join(picked)
with open("two.tsv", "w") as two, open("three.tsv", "w") as three:
    two.write("sentence\tlabel\n")
    three.write("sentence\tlabel\n")
    for i in range(200):
        label = random.random() < 0.3
        two.write(f"{line(good if label else bad, 0.3)}\t{'yes' if label else 'no'}\n")
        three.write(f"{line([good, bad, all][i % 3], 0.2)}\t{'abc'[i % 3]}\n")
EOF
common=(model.family=bert model.task=classification model.layers=2 model.width=16 model.heads=2 model.context=40 model.vocab=260 data.format=tsv
  data.validation=0.25 run.threads=1 batch.global=16 batch.microbatches=4 run.epochs=12 optimizer.lr=0.003 lr.warmup=4 eval.every=6
  log.tensorboard=false log.trace=0)

check_rows() { # rows as CSV and JSON lines, eval's --json
  python3 - "$@" <<'EOF' || die "the rows do not match the output of eval"
import csv, json, math, sys
rows = list(csv.DictReader(open(sys.argv[1])))
lines = [json.loads(line) for line in open(sys.argv[2])]
said = json.loads(open(sys.argv[3]).read().splitlines()[-1])
names = said["classes"]
assert [int(row["index"]) for row in rows] == list(range(said["tokens"])), "not a row for each sample"
loss, right, confusion = 0, 0, [[0] * len(names) for _ in names]
for row, line in zip(rows, lines, strict=True):
    logits = [float(row["logit_" + name]) for name in names]
    sums = sum(math.exp(x) for x in logits)
    loss -= logits[names.index(row["label"])] - math.log(sums)
    assert row["prediction"] == names[max(range(len(names)), key=logits.__getitem__)]
    assert abs(float(row["probability"]) - math.exp(max(logits)) / sums) < 1e-12
    confusion[names.index(row["label"])][names.index(row["prediction"])] += 1
    right += row["label"] == row["prediction"]
    assert 3 <= line["tokens"] <= 40
    assert line == {"index": int(row["index"]), "tokens": int(row["tokens"]), "label": row["label"], "prediction": row["prediction"],
                    "probability": float(row["probability"]), "logits": logits}, line
assert confusion == said["confusion"], (confusion, said["confusion"])
assert right / len(rows) == said["accuracy"]
assert abs(loss / len(rows) - said["loss"]) < 1e-6, (loss / len(rows), said["loss"])
if len(names) == 2:
    (tn, fp), (fn, tp) = confusion
    assert said["f1"] == 2 * tp / (2 * tp + fp + fn) and said["precision"] == tp / (tp + fp) and said["recall"] == tp / (tp + fn)
    den = math.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn))
    assert abs(said["matthews_correlation"] - (tp * tn - fp * fn) / den) < 1e-12
else:
    assert "macro_f1" in said and "f1" not in said
EOF
}

for set in two:f1:2 three:macro_f1:3; do
  IFS=: read -r name best classes <<<"$set"
  for layout in '1 parallel.pp=1' '2 parallel.pp=2' '2 parallel.dp=2'; do
    read -r ranks key <<<"$layout"
    run "$ranks" train "${common[@]}" data.files=$name.tsv model.classes=$classes "checkpoint.best=$best" "run.name=$name-$ranks-$key" "$key"
    grep -q "held-out loss [0-9.]*, accuracy [0-9.]*%.*, $best [0-9.]*%.*, matthews_correlation" out || die "no metrics on the console: $(cat out)"
    run "$ranks" eval "runs/$name-$ranks-$key" --json --predictions rows.csv
    sed -i 's/"seconds":[^,]*,"layout":[^,]*,//' out
    [ -e "$name.csv" ] || { cp rows.csv $name.csv && cp out $name.json; }
    cmp rows.csv $name.csv && cmp out $name.json || die "$name: the predictions differ at $layout"
    python3 - "runs/$name-$ranks-$key/result.json" "$best" <<'EOF' || die "result.json of $name"
import json, sys
result = json.load(open(sys.argv[1]))
assert result["best_by"] == sys.argv[2] and result["best_figure"] >= result["validation_" + sys.argv[2]] > 0, result
assert sum(map(sum, result["validation_confusion"])) == result["validation_tokens"]
assert len(result["validation_classes"]) == len(result["validation_confusion"])
EOF
  done
  run 1 eval "runs/$name-1-parallel.pp=1" --predictions rows.jsonl
  grep -qE '^predicted as .*yes|^predicted as .* c$' out || die "no table of classes: $(cat out)"
  check_rows $name.csv rows.jsonl $name.json
done
refused 'predictions are written as CSV or JSON lines' eval runs/two-1-parallel.pp=1 --predictions rows.txt
printf 'a long text about a day that was fine and warm and bright, %d\n' $(seq 60) >text
run 1 train data.text=text run.name=text model.layers=1 model.width=8 model.heads=1 model.context=16 run.steps=1 run.threads=1
refused 'this model predicts neither classes nor scores' eval runs/text --predictions rows.csv
