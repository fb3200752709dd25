#!/usr/bin/env bash
# Measures what the layout policy gains when another program uses the core of one of two ranks:
#   bench_straggler.sh [--binary FILE] [--busy N] [--rounds N] [--least RATIO] [KEY=VALUE...]
# alternately trains with the even layout and with elastic.policy=predicted, rank 0 on the first core
# and rank 1 on the second, next to N (1) busy loops there. Prints the seconds of both whole
# launches and the median of their ratios; exits with 1 if that is below RATIO (1.3) or the bits
# differ. --busy 0: no busy loops. KEY=VALUE, such as parallel.dp=2, are passed to both.
set -euo pipefail

binary=$(dirname "$0")/../../build/experiments/concertina
busy=1 rounds=3 least=1.3
keys=()
while (($#)); do
  case $1 in
    --binary) binary=${2:?--binary FILE}; shift 2 ;;
    --busy) busy=${2:?--busy N}; shift 2 ;;
    --rounds) rounds=${2:?--rounds N}; shift 2 ;;
    --least) least=${2:?--least RATIO}; shift 2 ;;
    *) keys+=("$1"); shift ;;
  esac
done
[[ -x $binary ]] || { echo "bench_straggler.sh: $binary does not exist: run ninja -C build" >&2; exit 2; }
binary=$(realpath "$binary")
. "$(dirname "$0")/../../experiments/env.sh"
read -r -a cores < <(taskset -cp $$ | sed 's/.*: //' | tr , '\n' |
  awk -F- '{ for (c = $1; c <= ($2 == "" ? $1 : $2); ++c) print c }' | xargs)
((${#cores[@]} >= 2)) || { echo "bench_straggler.sh: needs two cores" >&2; exit 2; }

room=$(mktemp -d) pids=()
trap '((${#pids[@]} == 0)) || kill "${pids[@]}" 2>/dev/null || true; rm -rf "$room"' EXIT
for ((i = 0; i < busy; ++i)); do
  taskset -c "${cores[1]}" bash -c 'while :; do :; done' &
  pids+=($!)
done
cd "$room"
awk 'BEGIN { for (i = 0; i < 20000; ++i) printf "%d ship under far stars %d\n", i % 7, i * i % 31 }' > text

# run NAME KEY=VALUE...
run() {
  local train=("$binary" train data.text=text run.name="$1" run.steps=200 run.threads=1
    model.layers=12 model.width=128 model.context=64 batch.global=16 batch.microbatches=16
    generate.tokens=0 "${@:2}" "${keys[@]}")
  mpirun -n 1 taskset -c "${cores[0]}" "${train[@]}" : -n 1 taskset -c "${cores[1]}" "${train[@]}" \
    > "$1.log" 2>&1 || { cat "$1.log" >&2; exit 1; }
}
# figure NAME KEY: prints KEY of its result.json.
figure() { sed -n "s/.*\"$2\": *\"\{0,1\}\([0-9a-f.]*\).*/\1/p" "runs/$1/result.json" | head -n 1; }

ratios=()
for ((i = 0; i < rounds; ++i)); do
  run "even$i"
  run "elastic$i" elastic.policy=predicted elastic.every=10
  even=$(figure "even$i" launch_s) elastic=$(figure "elastic$i" launch_s)
  ratios+=("$(awk -v a="$even" -v b="$elastic" 'BEGIN { printf "%.3f", a / b }')")
  echo "with $busy busy processes: even $even s, elastic $elastic s, ratio ${ratios[-1]}"
  grep -h 'takes .* as long\|predicted\| -> ' "elastic$i.log" | head -n 4 || true
  [[ $(figure "even$i" state_sha256) == "$(figure "elastic$i" state_sha256)" ]] ||
    { echo "bench_straggler.sh: the bits differ" >&2; exit 1; }
done
sorted=$(printf '%s\n' "${ratios[@]}" | sort -n)
median=$(sed -n "$(((rounds + 1) / 2))p" <<< "$sorted")
echo "same bits; median ratio $median ($(head -n 1 <<< "$sorted") to $(tail -n 1 <<< "$sorted"))," \
  "at least $least wanted"
awk -v a="$median" -v b="$least" 'BEGIN { exit !(a >= b) }'
