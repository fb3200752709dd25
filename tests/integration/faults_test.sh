#!/usr/bin/env bash
# `verify --run` finds each fault of plant.py, in a program built with all of them, one active at a time:
# faults_test.sh PROGRAM PLANT MPIRUN OPTIONS...
plant=$(realpath -- "$2")
. "$(dirname -- "$0")/common.sh" "$1" "${@:3}"

# Layers freeze, train again when the learning rate rises, and freeze again; the layout changes from
# two stages to two replicas, back, and again; the cache is read from the second epoch on.
python3 -c '
import random
random.seed(1)
print(" ".join(random.choices("a lone tree stood in the long field".split(), k=600)))' >text.txt
verify=(verify --run model.layers=3 model.width=16 model.heads=2 model.context=16 batch.global=8 batch.microbatches=4
  data.text=text.txt data.windows=fixed run.steps=160 run.threads=1 lr.schedule=cosine-restarts lr.warmup=6
  freeze.policy=linear freeze.every=6 freeze.end=0.4 freeze.unfreeze=lr
  cache.memory=4MiB cache.use=always elastic.policy=pipetransformer parallel.pp=2)

run 2 "${verify[@]}"
grep -q '^7 changes to frozen layers, 3 changes to the layout, [1-9][0-9]* samples read' out || die "was not tested: $(cat out)"
found=0
for fault in $("$plant"); do
  code=0
  PLANTED=$fault timeout -k 5 60 "$mpirun" -n 2 "${options[@]}" "$program" "${verify[@]}" >out 2>&1 || code=$?
  if [ "$code" = 1 ] && grep -Eo '(after|in) step [1-9][0-9]*, .*' out >said; then
    echo "$fault: $(head -n 1 said)"
    found=$((found + 1))
  else
    echo "$fault: MISSED, exit code $code: $(cat out)"
  fi
done
[ "$found" = 6 ] || die "$found of 6 faults found"
echo "1 passed, 0 failed"
