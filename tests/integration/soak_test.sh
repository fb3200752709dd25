#!/usr/bin/env bash
# Random faults in a run give the bits of a run without faults: soak_test.sh SECONDS PROGRAM MPIRUN OPTIONS...
seconds=$1
. "$(dirname -- "$0")/common.sh" "${@:2}"
seq -s ' ' 4000 >text.txt
launcher="$mpirun -n {ranks} ${options[*]} {program} {args}"

# A few seconds for each kind of fault, and a run that takes longer than the faults.
"$program" soak --mean 2.5 --for "$seconds" --seed 7 --launcher "$launcher" --out soak --json -- train data.text=text.txt \
  model.layers=2 model.width=64 model.heads=4 model.context=64 batch.global=32 batch.microbatches=4 run.steps=$((seconds * 80)) \
  run.threads=1 checkpoint.every=10 checkpoint.keep=4 parallel.pp=2 parallel.dp=1 >out 2>said || { cat said out; tail -n 30 soak/*.log; die "the soak failed"; }
cat out
python3 - out <<'PY'
import json, sys
result = json.load(open(sys.argv[1]))
assert result["passed"] and result["faults"] >= 2 and result["recovered"] == result["faults"], result
assert result["state_sha256"] == result["state_sha256_without_faults"] != "", result
assert result["seen_s"]["max"] < 5 and result["recovered_s"]["max"] < 20, result
PY
grep -q 'Soak' soak/report.html || die "no page"
refused 'the folder already exists' soak --out soak --ranks 2 -- train data.text=text.txt
refused "unknown fault 'fire'" soak --faults fire --ranks 2 -- train data.text=text.txt
echo "1 passed, 0 failed"
