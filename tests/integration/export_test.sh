#!/bin/sh
# Tests `concertina checkpoint export` and `eval --logits`: the same bytes at every layout and each time,
# and errors. usage: export_test.sh CONCERTINA MPIRUN [MPIRUN_ARGS...]
set -u
binary=$(realpath -- "$1"); shift
mpirun=$*
. "$(dirname -- "$0")/training_checks.sh"

tiny_run 4
expect 0 1 one
expect 0 4 four --set parallel.pp=2

# Logits at three layouts, of runs with the same weights.
for ranks in 1 2 4; do
  exits 0 "eval --logits on $ranks ranks" \
    $mpirun -n $ranks "$binary" eval runs/four --logits "logits.$ranks" --set "parallel.pp=$ranks" \
    --set parallel.dp=1
done
for array in logits tokens targets; do
  [ -s "logits.1/$array.npy" ] || fail "no $array.npy"
  for ranks in 2 4; do
    cmp "logits.1/$array.npy" "logits.$ranks/$array.npy" || fail "$array differs on $ranks ranks"
  done
done
[ "$(ls logits.1 | wc -l)" = 3 ] || fail "not three arrays: $(ls logits.1)"
head -c 6 logits.1/logits.npy | tail -c 5 | grep -qx NUMPY || fail 'not a NumPy array'
# A second evaluation replaces longer arrays.
exits 0 'eval --logits again' "$binary" eval runs/one --logits logits.2
cmp logits.1/logits.npy logits.2/logits.npy || fail 'an evaluation leaves data of an older one'

refused_export() { # TEXT ARGUMENTS...
  text=$1; shift
  exits 2 "export $*" "$binary" checkpoint export "$@"
  one_message "$text" "export $*"
}
"$binary" checkpoint export runs/one --onnx --out onnx > out 2> err
code=$?
if grep -q 'library onnx is missing' err; then
  grep -q 'try: .*install' err || fail "no advice if onnx is missing: $(cat err)"
  exit $bad
fi
[ $code = 0 ] || fail "export: exit code $code, $(cat err)"
cp onnx/model.onnx first.onnx
refused_export 'the file already exists' runs/one --onnx --out onnx
exits 0 'export again' "$binary" checkpoint export runs/one --onnx --out onnx --force --json
cmp first.onnx onnx/model.onnx || fail 'the same export has different bytes'
grep -q '"data":""' out || fail 'a small model has a separate weights file'
exits 0 'export with weights apart' \
  "$binary" checkpoint export runs/one --onnx --out apart.onnx --inline-limit '10 kB'
[ -s apart.onnx_data ] || fail 'no weights file'
[ "$(ls -d apart* onnx/* | wc -l)" = 3 ] || fail "unexpected files are left: $(ls -d apart* onnx/*)"

refused_export 'no such file or directory' runs/one/checkpoints/step-00000003 --onnx --out onnx
refused_export 'with float32 weights' runs/one --onnx --out onnx --dtype bfloat16
exits 0 'export of a checkpoint' \
  "$binary" checkpoint export runs/one/checkpoints/step-00000004 --onnx --out onnx --force
cmp first.onnx onnx/model.onnx || fail 'the exports of a run and of its checkpoint differ'
refused_export 'expected a size below 2 GiB' runs/one --onnx --out onnx --inline-limit big
refused_export 'expected a size below 2 GiB' runs/one --onnx --out onnx --inline-limit '2 GiB'
refused_export 'not a directory' runs/one --onnx --out text
refused_export 'cannot write this file' runs/one --onnx --out nowhere/model.onnx
rm -r runs/four/checkpoints/step-*
refused_export 'no checkpoint' runs/four --onnx --out onnx
cmp first.onnx onnx/model.onnx || fail 'a rejected export changed the model'
# A model whose shapes differ from its weights.
sed -i 's/^width = .*/width = 64/' runs/one/config.toml
refused_export 'has shape' runs/one --onnx --out onnx

exit $bad
