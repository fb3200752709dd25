#!/usr/bin/env bash
# Runs that start from another run: model_from_test.sh PROGRAM MPIRUN OPTIONS...
# A masked model becomes a classifier: its body has the same weights, its head is new, and training
# gives the same bits with every layout, whatever the path of the source.
. "$(dirname -- "$0")/common.sh" "$@"

python3 - <<'EOF'
import random
random.seed(1)
words = "a lone tree stood in the long field and the wind went round it all day".split()
line = lambda: " ".join(random.choices(words, k=8))
open("text.txt", "w").write("\n".join(line() for _ in range(100)))
open("lines.tsv", "w").write("sentence\tlabel\n" + "".join(f"{line()}\t{i % 3}\n" for i in range(60)))
EOF
cat >tensors.py <<'EOF'
"""The tensors of a safetensors file, as bytes by name."""
import json
def tensors(path):
    data = open(path, "rb").read()
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:start])
    return {name: data[start + t["data_offsets"][0]:start + t["data_offsets"][1]]
            for name, t in header.items() if name != "__metadata__"}
EOF
export PYTHONPATH=. PYTHONDONTWRITEBYTECODE=1
common=(run.dir=runs run.threads=1 batch.global=4 batch.microbatches=4 numerics.leaves=2)
run 2 train "${common[@]}" run.name=masked model.family=bert model.layers=2 model.width=16 model.heads=2 \
  model.context=48 model.vocab=300 model.bert.hidden=40 model.dropout=0.1 model.attention_dropout=0.2 data.text=text.txt run.steps=3 checkpoint.dir=kept
# A run, its moved checkpoints, one of them and a file of it give the same inspection.
cp -r kept runs/masked/kept
step=kept/step-00000003
for path in runs/masked kept "$step" "$step/manifest.json" runs/masked/kept "runs/masked/$step/manifest.json"; do
  run 1 checkpoint verify "$path"
  run 1 checkpoint inspect "$path"
  grep -q "^step 3, " out || die "inspect $path: $(cat out)"
done
run 1 checkpoint export "runs/masked/$step/manifest.json" --out of-a-file
rm -r runs/masked/kept
classify=("${common[@]}" model.task=classification model.classes=3 data.format=tsv 'data.files=["lines.tsv"]' run.steps=3)

first=""
for layout in '1 parallel.pp=1 runs/masked' '2 parallel.pp=2 kept' '3 parallel.pp=3 runs/masked' '2 parallel.dp=2 runs/masked'; do
  read -r ranks key from <<<"$layout"
  [ "$from" = kept ] && cp -r kept runs/masked/kept && from=runs/masked/kept
  run "$ranks" train "${classify[@]}" "model.from=$from" "run.name=from-$ranks-$key" "$key"
  grep -q "initialized, not in the source: .*/classes.bias" out || die "the new head is not reported: $(cat out)"
  grep -q "in the source, but not used: .*/transform.bias" out || die "the old head is not reported: $(cat out)"
  hash=$(hash_of "runs/from-$ranks-$key")
  [ "${first:=$hash}" = "$hash" ] || die "the bits differ: $layout"
done
grep -q '^dropout = 0.1' runs/from-1-parallel.pp=1/config.toml || die "dropout did not follow"
grep -q '^attention_dropout = 0.2' runs/from-1-parallel.pp=1/config.toml || die "attention's dropout was not inherited"
run 1 train "${classify[@]}" run.name=random model.family=bert model.layers=2 model.width=16 model.heads=2 \
  model.context=48 model.vocab=300 model.bert.hidden=40 model.dropout=0.1
[ "$(hash_of "runs/random")" != "$first" ] || die "it did not start from another run"

# The imported weights are exactly those stored by the other run.
run 2 checkpoint import runs/masked --out runs/same
run 1 checkpoint export runs/masked --out masked
run 1 checkpoint export runs/same --out same
cmp masked/model.safetensors same/model.safetensors || die "the same task, other weights"
run 3 checkpoint import runs/masked --out runs/classes --set model.task=classification --set model.context=20
run 1 checkpoint export runs/classes --out classes
python3 - <<'EOF' || die "another body"
from tensors import tensors
before, after = tensors("masked/model.safetensors"), tensors("classes/model.safetensors")
body = [name for name in before if name.startswith("bert.")]
assert len(body) > 30 and "classifier.weight" in after and "classifier.weight" not in before
for name in body:
    positions = "position_embeddings" in name
    assert after[name] == (before[name][:20 * 16 * 4] if positions else before[name]), name
EOF

# Other classes need a new head on the same body, from a run and from a published folder.
run 1 checkpoint export runs/from-1-parallel.pp=1 --out of-three
python3 -c 'print("sentence\tlabel\n" + "\n".join(f"the field {i}\t{i % 5}" for i in range(60)))
idx = lambda name, sizes, data: open(name, "wb").write(b"".join(n.to_bytes(4, "big") for n in (0x800 + len(sizes), *sizes)) + bytes(data))
idx("images", (60, 4, 4), (i % 251 for i in range(960)))
idx("labels", (60,), (i % 10 for i in range(60)))
idx("more", (60,), (i % 12 for i in range(60)))' >five.tsv
run 1 train "${common[@]}" run.name=images model.family=vit model.layers=1 model.width=8 model.heads=2 model.vit.image=4 model.vit.patch=2 \
  model.classes=10 data.format=mnist 'data.files=["images", "labels"]' run.steps=1
run 1 train "${common[@]}" run.name=images-5 model.family=vit model.layers=5 model.width=8 model.heads=2 model.vit.image=4 model.vit.patch=2 \
  model.classes=10 data.format=mnist 'data.files=["images", "labels"]' run.steps=1
images=("${common[@]}" model.from=runs/images-5 data.format=mnist 'data.files=["images", "labels"]' run.steps=1)
run 1 train "${images[@]}" run.name=deep freeze.policy=linear freeze.every=1 freeze.max=5
run 1 train "${images[@]}" run.name=listed freeze.policy=list 'freeze.at=["epoch 1: 5"]'
refused "freeze.max = 6, but the model has 5 layers" train "${images[@]}" run.name=x freeze.policy=linear freeze.every=1 freeze.max=6
run 1 train "${common[@]}" run.name=others model.from=runs/images model.head=new model.classes=12 data.format=mnist \
  'data.files=["images", "more"]' run.steps=1
for from in runs/from-1-parallel.pp=1 of-three; do
  run 2 train "${classify[@]}" data.files=five.tsv "model.from=$from" model.classes=5 model.head=new run.name=five run.steps=1 optimizer.lr=1e-30 \
    optimizer.weight_decay=0 data.tokenizer=bytes
  grep -q "initialized, not in the source: .*/classes.bias, .*/classes.weight$" out || die "$from: other weights are new: $(cat out)"
  run 1 checkpoint export runs/five --out of-five
  python3 - <<'EOF' || die "$from: the body differs"
from tensors import tensors
three, five = tensors("of-three/model.safetensors"), tensors("of-five/model.safetensors")
assert three.keys() == five.keys()
differ = [name for name in three if three[name] != five[name]]
assert sorted(differ) == ["classifier.bias", "classifier.weight"], differ
EOF
  rm -r runs/five of-five
done

# A run continues without the model that it started from.
mv runs/masked gone
run 1 train runs/from-1-parallel.pp=1 run.steps=4 run.threads=1
mv gone runs/masked

refused "no such file or directory" train "${classify[@]}" model.from=nowhere run.name=x
refused "neither a run nor a checkpoint" train "${classify[@]}" model.from=runs run.name=x
refused "model.width = 32, but the model in model.from has 16" train "${classify[@]}" model.from=runs/masked model.width=32 run.name=x
refused "model.context = 64" train "${classify[@]}" model.from=runs/masked model.context=64 run.name=x
refused "model.bert.hidden = 0" train "${classify[@]}" model.from=runs/masked model.bert.hidden=0 run.name=x
refused "model.head = \"new\", but this task has no classes" train model.family=bert data.text=text.txt model.from=runs/masked model.head=new run.name=x
refused "model.head = \"new\" requires model.from" train "${classify[@]}" model.head=new run.name=x
refused "model.classes = 5, but" train "${classify[@]}" model.from=runs/from-1-parallel.pp=1 model.classes=5 run.name=x
sed -i 's/hidden = 40/hidden = 48/' runs/masked/config.toml
refused "the tensor 002.mlp/down.weight has the shape [40, 16], but this model needs [48, 16]" train "${classify[@]}" model.from=runs/masked run.name=x
mv kept moved
refused "there is no checkpoint" train "${classify[@]}" model.from=runs/masked run.name=x
[ ! -e runs/x/config.toml ] || die "a rejected run left files"
echo "1 passed, 0 failed"
