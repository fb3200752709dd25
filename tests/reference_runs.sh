#!/usr/bin/env bash
# Trains twelve short runs (families, layouts, precisions, freezing, changes of the layout,
# resumes) and prints the state_sha256 of each. To compare two builds that should train alike:
#   diff <(tests/reference_runs.sh OLD/concertina) <(tests/reference_runs.sh NEW/concertina)
# usage: reference_runs.sh PROGRAM [FOLDER]; the runs are kept in FOLDER, or removed if it is omitted.
set -euo pipefail
program=$(realpath -- "$1")
. "$(dirname -- "${BASH_SOURCE[0]}")/../experiments/env.sh"
folder=${2-}
if [ -n "$folder" ]; then
  mkdir -p "$folder"
else
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
fi
cd "$folder"

cat > base.toml <<'TOML'
[run]
threads = 1
steps = 12
[model]
layers = 4
width = 32
heads = 4
context = 32
[batch]
global = 24
microbatches = 12
[log]
every = 1
trace = 2
[eval]
every = 6
TOML
awk 'BEGIN { for (i = 0; i < 400; ++i) printf "%d ship under far stars %d\n", i % 7, i * i % 31 }' > text
awk 'BEGIN { print "sentence\tlabel"; for (i = 0; i < 240; ++i) printf "star %d of %d, row %d\t%d\n", i % 9, i * i % 31, i, i % 3 }' > rows.tsv
# MNIST's format: 240 images of 8 x 8 with classes 0 to 4.
python3 - <<'PY'
import struct
with open("images-idx3-ubyte", "wb") as images, open("labels-idx1-ubyte", "wb") as labels:
    images.write(struct.pack(">IIII", 2051, 240, 8, 8))
    labels.write(struct.pack(">II", 2049, 240))
    for i in range(240):
        images.write(bytes((i * 7 + p * (i % 5 + 1)) % 256 for p in range(64)))
        labels.write(bytes([i % 5]))
PY

# trains RANKS NAME KEYS...
trains() {
  local ranks=$1 name=$2 code=0
  shift 2
  mpirun --oversubscribe -n "$ranks" "$program" train @base.toml "run.name=$name" "$@" \
    > "$name.log" 2>&1 || code=$?
  [ "$code" = 0 ] || { cat "$name.log" >&2; echo "$name: exit code $code" >&2; exit 1; }
}
says() { # NAME
  printf '%-24s %s\n' "$1" "$(sed -n 's/.*"state_sha256": *"\([0-9a-f]*\)".*/\1/p' "runs/$1/result.json")"
}
one() { trains "$@"; says "$2"; }

bert=(model.family=bert model.vocab=260 data.format=tsv data.files=rows.tsv model.task=classification model.classes=3)
vit=(model.family=vit model.vit.image=8 model.vit.channels=1 model.vit.patch=4 model.classes=10 data.format=mnist
  'data.files=["images-idx3-ubyte", "labels-idx1-ubyte"]')
text=(data.text=text)
one 1 gpt "${text[@]}"
one 2 gpt-pp2-bf16 "${text[@]}" numerics.compute=bf16 parallel.pp=2 model.dropout=0.1
one 4 llama-zbv-2x2 "${text[@]}" model.family=llama model.llama.kv_heads=2 parallel.pp=2 parallel.schedule=zb-v
one 2 llama-dp2-lion "${text[@]}" model.family=llama optimizer.name=lion parallel.dp=2 parallel.overlap=true
one 2 bert-pp2-classes "${bert[@]}" parallel.pp=2 parallel.schedule=zb-h1
one 3 bert-masked-spare "${text[@]}" model.family=bert model.task=masked-lm model.vocab=260 parallel.dp=2 parallel.spare=1
one 1 vit-frozen "${vit[@]}" freeze.units=2
one 4 vit-pp4-muon "${vit[@]}" optimizer.name=muon parallel.pp=4
one 3 gpt-recompute-pp3 "${text[@]}" parallel.pp=3 parallel.recompute=full batch.microbatches=24
elastic=("${text[@]}" run.steps=40 freeze.policy=list 'freeze.at=["step 8: 1", "step 16: 2"]' freeze.every=4
  elastic.policy=predicted elastic.every=8 elastic.least_gain=0 data.windows=fixed)
one 2 gpt-elastic "${elastic[@]}" parallel.pp=2
one 3 gpt-elastic-cache "${elastic[@]}" parallel.pp=2 parallel.spare=1 cache.memory=4MiB
# The first half on two ranks, the rest on four.
trains 2 gpt-resumed "${text[@]}" parallel.pp=2 run.steps=6 lr.steps=12
trains 4 gpt-resumed "${text[@]}" parallel.pp=4 parallel.schedule=zb-h1 run.steps=12 lr.steps=12
says gpt-resumed
