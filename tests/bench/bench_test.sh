#!/usr/bin/env bash
# Every bench runs and prints its results: bench_test.sh CONCERTINA_BENCH CHECKPOINT_BENCH MPIRUN OPTIONS...
set -euo pipefail
bench=$1 checkpoint=$2 mpirun=("${@:3}")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
keys=(model.layers=2 model.width=32 model.heads=2 model.context=32 batch.global=8 batch.microbatches=4)
launch() { "${mpirun[@]}" -n 2 "$bench" "$@" > out; }
# figure CODE: checks that a Python expression of the result `r` is true.
figure() { python3 -c "import json; r = json.load(open('out')); assert $1, r"; }
launch executor "${keys[@]}" parallel.pp=2 --steps 2 --bound 100
figure '0 < r["untraced"]["overhead"] < 1 and r["ok"]'
launch prediction "${keys[@]}" parallel.pp=2 --schedules 1f1b,gpipe --steps 2 --warmup 1 --bound 1000 || [ $? = 1 ]  # 1: the order differs
figure '[one["schedule"] for one in r["schedules"]] == ["1f1b", "gpipe"] and r["schedules"][0]["measured_ms"] > 0'
launch change "${keys[@]}" --rounds 1 --warmup 0
figure 'r["there"]["change_ms"] > 0 < r["back"]["predicted_ms"]'
launch exchange --bytes 1e5 --buckets 2 --rounds 1 --bound 0
figure 'r["measured_ms"] > 0 < r["predicted_ms"] and r["ok"]'
code=0 && "$bench" change > out 2>&1 || code=$?
[ $code = 2 ] && grep -q 'one rank has nobody' out
MB=1 "$checkpoint" --benchmark_min_time=0.01 --benchmark_format=json > out 2> err
figure 'len(r["benchmarks"]) == 8'
[ -z "$(ls -d checkpoint-bench-* /dev/shm/concertina-checkpoint-bench-* 2> /dev/null)" ]
echo '1 passed, 0 failed'
