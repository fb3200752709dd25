#!/bin/sh
# The archive of tests/bundle.sh contains all that its programs load, and they run from it, also
# under its mpirun; its GPU check reports if there is no GPU.
# usage: bundle_test.sh SOURCE_ROOT BUILD_ROOT
set -u
source=$(realpath -- "$1") build=$(realpath -- "$2")
. "$source/tests/shell_checks.sh"

exits 0 'bundle.sh' bash "$source/tests/bundle.sh" --build "$build" --fast "$scratch/b.tar.xz"
exits 0 'unpacking' tar -xf b.tar.xz
top=$scratch/concertina-bundle
for program in "$top"/libexec/*; do
  "$top/lib/ld-linux-x86-64.so.2" --library-path "$top/lib" --list "$program" > out 2> err
  grep -v -e "$top/lib/" -e linux-vdso out | grep -q . && fail "$program loads a library that is not included"
done
env -i PATH=/usr/bin:/bin "$top/bin/concertina" doctor > out 2> err
[ $? = 0 ] || fail doctor
if [ -e "$(g++ -print-file-name=libsentencepiece.so.0)" ]; then
  exits 0 'a SentencePiece model' env -i PATH=/usr/bin:/bin "$top/bin/concertina" data inspect \
    --format text --tokenizer "$source/tests/golden/tokenizers/small_bpe.model" "$source/README.md"
fi
exits 0 'two ranks' env -i PATH=/usr/bin:/bin OMPI_MCA_mpi_yield_when_idle=1 \
  "$top/bin/mpirun" --oversubscribe --bind-to none -n 2 "$top/bin/concertina" bench step \
  --steps 1 --warmup 1 --set model.layers=1 --set model.width=32 --set model.heads=2 \
  --set model.context=16 --set batch.global=4 --set parallel.pp=2
grep -q tokens_per_s out || fail 'two ranks measured nothing'
seq 2000 > text
exits 0 'a supervised run' env -i PATH="$top/bin:/usr/bin:/bin" HOME="$scratch" concertina run --ranks 1 -- train data.text=text \
  run.steps=1 run.threads=1 model.layers=1 model.width=32 model.heads=2 model.context=16 batch.global=4 batch.microbatches=4 generate.tokens=0
exits 2 'a subcommand in Python' env -i PATH="$top/bin:/usr/bin:/bin" concertina soak --faults fire --ranks 1 -- train data.text=text
grep -q "unknown fault 'fire'" err || fail 'the Python package is not in the bundle'
if "$top/bin/concertina" doctor 2> err | grep -q '^gpu  *none'; then
  exits 1 'gpu_check.sh without a GPU' env -i PATH=/usr/bin:/bin "$top/gpu_check.sh" --out checks
  grep -q 'a GPU is found .*FAILED' out || fail 'gpu_check.sh does not say that there is no GPU'
fi
exits 2 'an unknown option' bash "$source/tests/bundle.sh" --buidl x
exits 2 'no build' bash "$source/tests/bundle.sh" --build "$scratch"
exit $bad
