#!/usr/bin/env bash
# Models stored by Hugging Face, used with the program: published_test.sh SOURCE PROGRAM MPIRUN OPTIONS...
# Each tiny model of tests/golden/published becomes a run and is exported to the same bytes, at any layout; a
# run that starts from one trains to the same bits with every layout, and transformers, if installed, reads its
# export.
published=$(realpath -- "$1")/tests/golden/published
shift
. "$(dirname -- "$0")/common.sh" "$@"

ranks=1
for folder_of_model in "$published"/*; do
  model=$(basename -- "$folder_of_model")
  [ "$model" != bert ] || continue # only a body
  run "$ranks" checkpoint import "$published/$model" --out "runs/$model" --set run.threads=1
  run 1 checkpoint export "runs/$model" --out "$model"
  cmp "$model/model.safetensors" "$published/$model/model.safetensors" || die "$model changed"
  cmp "$model/config.json" "$published/$model/config.json" || die "the config of $model changed"
  run 1 checkpoint export "runs/$model" --out half --dtype bfloat16 --force
  run 1 checkpoint import half --out "runs/half-$model"
  run 1 checkpoint export "runs/half-$model" --out half-again --dtype bfloat16 --force
  cmp half/model.safetensors half-again/model.safetensors || die "$model changed in bfloat16"
  ranks=$((ranks % 3 + 1))
done

python3 -c 'import random; random.seed(1)
open("tokens.bin", "wb").write(b"".join(random.randrange(40).to_bytes(2, "little") for _ in range(3000)))'
first=""
for layout in '1 parallel.pp=1' '2 parallel.pp=2' '3 parallel.pp=3' '2 parallel.dp=2'; do
  read -r ranks key <<<"$layout"
  run "$ranks" train "model.from=$published/llama" data.format=tokens 'data.files=["tokens.bin"]' run.dir=runs \
    "run.name=from-$ranks-$key" "$key" run.steps=4 numerics.leaves=2 run.threads=1
  hash=$(hash_of "runs/from-$ranks-$key")
  [ "${first:=$hash}" = "$hash" ] || die "the bits differ: $layout"
done
# A run continues without the model that it started from.
mv runs/from-1-parallel.pp=1 moved
run 1 train moved run.steps=6 run.threads=1

run 1 checkpoint export moved --out trained
if python3 -c 'import transformers' 2>/dev/null; then
  python3 -c 'import transformers; transformers.AutoModelForCausalLM.from_pretrained("trained")' ||
    die "transformers cannot read it"
else
  echo "transformers is not installed: its reading of the export was not tested"
fi

# A causal classifier: the run and transformers give the same answers, for files of any size.
python3 -c 'import random; random.seed(2)
print("sentence\tlabel")
for i in range(60): print("".join(random.choices("abc ", k=random.randrange(1, 20))), i % 3, sep="\t")' >classes.tsv
for family in gpt llama; do
  run 2 train model.family=$family model.task=classification model.classes=3 model.vocab=260 model.layers=2 \
    model.width=16 model.heads=2 model.context=24 data.format=tsv 'data.files=["classes.tsv"]' data.validation=0.2 data.test_files=classes.tsv data.most_overlap=1 \
    batch.global=8 batch.microbatches=4 run.steps=3 run.threads=1 run.dir=runs run.name=$family-classes
  run 1 eval runs/$family-classes --json --logits $family-logits
  grep -q '"accuracy":' out || die "no accuracy: $(cat out)"
  ! grep -qE 'perplexity|bits_per_token' out || die "perplexity of classes: $(cat out)"
  run 1 eval runs/$family-classes --json --files classes.tsv
  grep -q "\"split\":\"test\".*\"tokens\":$(($(wc -l <classes.tsv) - 1))," out || die "not all rows: $(cat out)"
  same="$(sed -n 's/"seconds":[^,]*,//p' out)"
  refused "--text is not available" eval runs/$family-classes --text classes.tsv
  run 1 eval runs/$family-classes --json --split test
  [ "$(sed -n 's/"seconds":[^,]*,//p' out)" = "$same" ] || die "the test files differ: $(cat out)"
  run 1 checkpoint export runs/$family-classes --out $family-classes --shard-size 8KB
  [ -e $family-classes/model-00002-of-0000"$(ls $family-classes/model-* | wc -l)".safetensors ] || die "no shards"
  grep -q '"pad_token_id": 259' $family-classes/config.json || die "no padding token in config.json"
  run 1 checkpoint import $family-classes --out runs/again-$family --set run.threads=1
  run 1 checkpoint export runs/again-$family --out again --force
  run 1 checkpoint export runs/$family-classes --out whole --force
  cmp again/model.safetensors whole/model.safetensors || die "$family changed in several files"
  ! python3 -c 'import transformers' 2>/dev/null || python3 - $family <<'END' || die "transformers gives another answer"
import sys, numpy as np, torch, transformers
model = transformers.AutoModelForSequenceClassification.from_pretrained(sys.argv[1] + "-classes").eval()
tokens, wanted = (np.load(f"{sys.argv[1]}-logits/{name}.npy") for name in ("tokens", "logits"))
with torch.no_grad():
    got = model(input_ids=torch.tensor(tokens.astype(np.int64))).logits.numpy()
assert got.shape == wanted.shape and np.abs(got - wanted).max() <= 1e-5 * np.abs(wanted).max()
END
done

# The guide's three commands for bert-base-uncased, on a small model with the hub's file contents:
# LayerNorm.gamma and beta, the head for next sentence prediction, vocab.txt.
mkdir bert-base-uncased
python3 - "$published/bert-masked-lm" <<'END'
import json, pathlib, struct, sys
source, out = pathlib.Path(sys.argv[1]), pathlib.Path("bert-base-uncased")
data = (source / "model.safetensors").read_bytes()
size = struct.unpack("<Q", data[:8])[0]
header, rest = json.loads(data[8:8 + size]), data[8 + size:]
new = {name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): value
       for name, value in header.items()}
width = 16
new["cls.seq_relationship.weight"] = {"dtype": "F32", "shape": [2, width], "data_offsets": [len(rest), len(rest) + 8 * width]}
rest += bytes(8 * width)
new["cls.seq_relationship.bias"] = {"dtype": "F32", "shape": [2], "data_offsets": [len(rest), len(rest) + 8]}
text = json.dumps(new).encode()
(out / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + rest + bytes(8))
config = json.loads((source / "config.json").read_text())
(out / "config.json").write_text(json.dumps({**config, "gradient_checkpointing": False}))
words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + list("abcdefgh")
(out / "vocab.txt").write_text("".join(word + "\n" for word in words))
END
for file in train dev; do
  python3 -c 'import random, sys; random.seed(sys.argv[1])
print("sentence\tlabel")
for i in range(60): print(" ".join(random.choices("abcd" if i % 2 else "efgh", k=4)), ["bad", "good"][i % 2], sep="\t")' \
    $file >$file.tsv
done
run 2 train model.from=bert-base-uncased model.task=classification data.format=tsv data.files=train.tsv data.most_overlap=1 \
  data.validation_files=dev.tsv batch.global=12 batch.microbatches=4 run.epochs=6 optimizer.lr=1e-2 lr.schedule=linear \
  run.threads=1 run.dir=runs run.name=sentiment checkpoint.best=accuracy
grep -q "the model's own tokenizer" out || die "the tokenizer differs: $(cat out)"
grep -q 'dropout = 0.1' runs/sentiment/config.toml || die "the dropout of config.json is not used"
grep -q '"validation_accuracy": 1.0' runs/sentiment/result.json || die "the model did not learn: $(cat runs/sentiment/result.json)"
run 1 checkpoint export runs/sentiment --out sentiment
grep -q '"BertForSequenceClassification"' sentiment/config.json || die "no classifier: $(cat sentiment/config.json)"

# A killed or failed import or export is repeated; a trained or imported run is kept.
rm -r runs/gpt2/checkpoints/step-*
run 1 checkpoint import "$published/gpt2" --out runs/gpt2
run 1 checkpoint verify runs/gpt2
refused "the run already exists" checkpoint import "$published/gpt2" --out runs/gpt2
mkdir gpt2/.partial
echo left >gpt2/.partial/model-00001-of-00002.safetensors
refused "the file already exists" checkpoint export runs/gpt2 --out gpt2
run 1 checkpoint export runs/gpt2 --out gpt2 --force
[ ! -e gpt2/.partial ] || die "files of a killed export are left"
(
  exec 9>/dev/null
  mkdir gpt2/.partial && exec 9>gpt2/.partial/lock && flock 9
  refused "another process" checkpoint export runs/gpt2 --out gpt2 --force
)
rm -r gpt2/.partial

# Ranks that see different files under one name: a copy is accepted, other weights or a run are not.
mkdir first second
cp -r "$published/gpt2" first/model
start=(train model.from=model data.format=tokens data.files="$folder/tokens.bin" model.context=8 batch.global=4
  batch.microbatches=2 parallel.dp=2 run.steps=1 run.threads=1 run.dir="$folder/runs")
apart() { # expected text or nothing, run.name
  local code=0
  "$mpirun" -n 1 -wdir "$folder/first" "${options[@]}" "$program" "${start[@]}" run.name="$2" : \
    -n 1 -wdir "$folder/second" "$program" "${start[@]}" run.name="$2" >out 2>&1 || code=$?
  [ "$code" = "${1:+2}" ] || [ "$code$1" = 0 ] || die "exit code $code: $(cat out)"
  grep -qF -- "$1" out || die "no '$1' in: $(cat out)"
}
cp -r "$published/gpt2" second/model
apart "" copies
printf '\1' | dd of=second/model/model.safetensors bs=1 seek=5000 conv=notrunc status=none
apart "reads a different model than rank 0" x
mv second/model second/folder
cp -r runs/gpt2 second/model
apart "model.from is a run on rank 1, but a Hugging Face folder on rank 0" x
rm -r first/model
cp -r runs/gpt2 first/model
sed -i 'y/0123456789abcdef/123456789abcdef0/' second/model/checkpoints/step-*/manifest.sha256
apart "reads a different model than rank 0" x
[ ! -e runs/x/config.toml ] || die "a rejected run left files"

cp -r "$published/gpt2" wrong
printf '\0\0\300\177' | dd of=wrong/model.safetensors bs=1 seek="$(($(stat -c %s wrong/model.safetensors) - 4))" \
  conv=notrunc status=none
refused "contain NaN, infinity" checkpoint import wrong --out runs/wrong
[ ! -e runs/wrong/config.toml ] || die "a rejected import left files"

refused "no such file or directory" checkpoint export runs/none --out x
refused "config.json" checkpoint import "$published" --out x
[ ! -e x ] || die "a rejected import left files"
echo "1 passed, 0 failed"
