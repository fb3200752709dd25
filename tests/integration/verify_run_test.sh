#!/usr/bin/env bash
# `verify --run` on a run that freezes layers, moves and reads its cache: verify_run_test.sh PROGRAM MPIRUN OPTIONS...
. "$(dirname -- "$0")/common.sh" "$@"

python3 -c '
import random
random.seed(1)
print(" ".join(random.choices("a lone tree stood in the long field".split(), k=600)))' >text.txt
common=(verify --run model.layers=3 model.width=16 model.heads=2 model.context=16 batch.global=8 batch.microbatches=4
  data.text=text.txt data.windows=fixed run.steps=80 run.threads=1 freeze.policy=linear freeze.every=12
  cache.memory=4MiB cache.use=always)
for elastic in pipetransformer predicted; do
  run 2 "${common[@]}" "elastic.policy=$elastic" elastic.every=9 parallel.pp=2 --json
  python3 - out <<'EOF' || die "$elastic: $(cat out)"
import json, sys
said = json.loads([line for line in open(sys.argv[1]) if line.startswith('{')][-1])  # a loaded machine logs stragglers after it
assert said["same"] and said["steps"] == 80 and not said["differ"], said
assert said["freezes"] >= 2 and said["cached_samples"] > 0, said
EOF
done
run 2 "${common[@]}" elastic.policy=pipetransformer parallel.pp=2
grep -q "1 change to the layout" out && grep -q "bit-identical in both runs" out || die "text: $(cat out)"
refused "a batch that grows with the replicas" "${common[@]}" elastic.policy=predicted elastic.batch=grows
refused "no data to train on" verify --run model.layers=2 run.steps=2
[ ! -e runs ] || die "verify created a run directory"
echo "1 passed, 0 failed"
