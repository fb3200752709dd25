#!/usr/bin/env bash
# Scores, several labels, and classes of words: the same bits with every layout and after a resume,
# metrics, predictions as rows, and the exported model in transformers.
# usage: tasks_test.sh CONCERTINA MPIRUN [MPIRUN_ARGS...]
. "$(dirname -- "$0")/common.sh"

python3 - <<'EOF'
import json, random
random.seed(7)
good, bad, all = ["fine", "warm", "bright"], ["dull", "cold", "grey"], "a the day film was very and it".split()
with open("regression.tsv", "w") as scores, open("multi-label.csv", "w") as labels, \
        open("token-classification.conll", "w") as words:
    scores.write("sentence1\tsentence2\tscore\n")
    labels.write("text,labels\n")
    words.write("-DOCSTART- O\n\n")
    for i in range(160):
        picked = random.choices(good + bad + all, k=5)
        value = sum(word in good for word in picked) - sum(word in bad for word in picked)
        scores.write(f"{' '.join(picked)}\t{random.choice(all)}\t{value / 2:.3f}\n")
        told = [name for name, of in (("up", good), ("down", bad)) if any(word in of for word in picked)]
        labels.write(f"{' '.join(picked)},{'|'.join(told)}\n")
        before = "O"
        for word in picked:
            kind = "UP" if word in good else "DOWN" if word in bad else ""
            tag = f"{'I' if before.endswith('-' + kind) else 'B'}-{kind}" if kind else "O"
            words.write(f"{word} x {tag}\n")
            before = tag
        words.write("\n")
EOF
common=(model.layers=2 model.width=16 model.heads=2 model.context=40 model.vocab=260 model.dropout=0.1 data.validation=0.25
  run.threads=1 run.dir=runs batch.global=16 batch.microbatches=4 run.steps=60 optimizer.lr=0.01 lr.warmup=4 lr.schedule=constant eval.every=20
  numerics.leaves=4 checkpoint.every=20 log.tensorboard=false log.trace=0)

check() { # task, rows as CSV and JSON lines, eval's --json, a folder of logits, the exported model
  python3 - "$@" <<'EOF' || die "$1: the rows do not match the output of eval"
import csv, json, math, sys
task, folder, exported = sys.argv[1], sys.argv[5], sys.argv[6]
rows = list(csv.DictReader(open(sys.argv[2])))
lines = [json.loads(line) for line in open(sys.argv[3])]
said = json.loads(open(sys.argv[4]).read().splitlines()[-1])
assert len(rows) == len(lines) == 40 and [line["index"] for line in lines] == list(range(40))
near = lambda a, b: abs(a - b) <= 1e-6 * max(1, abs(b)) or sys.exit(f"{a} is not {b}")
if task == "regression":
    told, right = ([line[key] for line in lines] for key in ("prediction", "score"))
    assert [float(row["prediction"]) for row in rows] == told and said["tokens"] == 40
    near(said["mean_squared_error"], sum((a - b) ** 2 for a, b in zip(told, right)) / 40)
    near(said["loss"], said["mean_squared_error"])
    assert said["pearson_correlation"] > 0.5 and said["spearman_correlation"] > 0.5, said
elif task == "multi-label":
    assert said["tokens"] == 80 and said["loss"] < 0.65, said
    near(said["subset_accuracy"], sum(line["labels"] == line["prediction"] for line in lines) / 40)
    soft = lambda x: max(x, 0) + math.log1p(math.exp(-abs(x)))
    names = ["down", "up"]
    near(said["loss"], sum(soft(x) - x * (name in line["labels"]) for line in lines
                           for name, x in zip(names, line["logits"])) / 80)
    for row, line in zip(rows, lines):
        assert json.loads(row["labels"]) == line["labels"] and float(row["logit_up"]) == line["logits"][1]
        assert line["prediction"] == [name for name, x in zip(names, line["logits"]) if x > 0]
else:
    pairs = [pair for line in lines for pair in zip(line["tags"], line["prediction"], strict=True)]
    assert len(pairs) == said["tokens"] == 200, len(pairs)
    near(said["accuracy"], sum(a == b for a, b in pairs) / 200)
    assert said["accuracy"] > 0.6 and "entity_f1" in said and sum(map(sum, said["confusion"])) == 200, said
try:
    import numpy as np, torch, transformers
except ImportError:
    sys.exit(0)
kind = "Token" if task == "token-classification" else "Sequence"
model = getattr(transformers, f"AutoModelFor{kind}Classification").from_pretrained(exported).eval()
batch = {path: torch.tensor(np.load(f"{folder}/{path}.npy").astype(np.int64)) for path in ("tokens", "types", "lengths")}
wanted = np.load(f"{folder}/logits.npy")
mask = (torch.arange(batch["tokens"].shape[1]) < batch["lengths"][:, None]).long()
with torch.no_grad():
    got = model(input_ids=batch["tokens"], token_type_ids=batch["types"], attention_mask=mask).logits.numpy()
wanted = wanted.reshape(got.shape)
if kind == "Token":
    got, wanted = got[mask > 0], wanted[mask > 0]
assert np.abs(got - wanted).max() <= 1e-5 * np.abs(wanted).max(), np.abs(got - wanted).max()
assert model.config.problem_type == {"regression": "regression", "multi-label": "multi_label_classification"}.get(task)
EOF
}

for set in regression:tsv:1:mean_squared_error multi-label:csv:2:subset_accuracy token-classification:conll:5:entity_f1; do
  IFS=: read -r task format classes best <<<"$set"
  keys=("${common[@]}" model.family=bert model.task="$task" model.classes="$classes" data.format="$format"
    data.files="$task.$format" checkpoint.best="$best")
  [ "$task" != multi-label ] || keys+=('data.label_separator=|')
  first=""
  for layout in '1 parallel.pp=1' '2 parallel.pp=2' '2 parallel.dp=2' '4 parallel.pp=2'; do
    read -r ranks key <<<"$layout"
    name=$task-$ranks-$key
    run "$ranks" train "${keys[@]}" run.name="$name" "$key"
    grep -q "held-out loss [0-9.]*, .*$best" out || die "no metrics on the console: $(cat out)"
    hash=$(hash_of "runs/$name")
    [ "${first:=$hash}" = "$hash" ] || die "$task: the bits differ at $layout"
    run "$ranks" eval "runs/$name" --json --predictions rows.csv
    sed -i '/^{/!d; s/"seconds":[^,]*,"layout":[^,]*,//' out # also removes the warning about many ranks
    [ -e "$task.csv.rows" ] || { cp rows.csv "$task.csv.rows" && cp out "$task.json"; }
    cmp rows.csv "$task.csv.rows" && cmp out "$task.json" || die "$task: the predictions differ at $layout"
  done
  # A run that ended early continues to the same bits at another layout.
  run 2 train "${keys[@]}" run.name="$task-on" parallel.pp=2 run.steps=20
  run 1 train "runs/$task-on" parallel.pp=1 run.steps=60
  [ "$(hash_of "runs/$task-on")" = "$first" ] || die "$task: the bits differ after a resume"
  run 1 eval "runs/$task-1-parallel.pp=1" --predictions rows.jsonl --logits "$task-logits"
  run 1 checkpoint export "runs/$task-1-parallel.pp=1" --out "$task-model"
  check "$task" "$task.csv.rows" rows.jsonl "$task.json" "$task-logits" "$task-model"
done
refused 'the model has 2 scores, but the data has 1' train "${common[@]}" model.family=bert model.task=regression data.format=tsv data.files=regression.tsv
refused 'a row of tsv has one label' train "${common[@]}" model.family=bert model.task=token-classification data.format=tsv data.files=regression.tsv
refused 'label_smoothing' train "${common[@]}" model.family=bert model.task=regression model.classes=1 model.label_smoothing=0.1 data.format=tsv data.files=regression.tsv
printf 'sentence\tscore\na\t1\nb\tnan\n' >nan.tsv
refused 'nan.tsv:3' train "${common[@]}" model.family=bert model.task=regression model.classes=1 data.format=tsv data.files=nan.tsv
echo "1 passed, 0 failed"
