#!/usr/bin/env bash
# Measures how much other programs on the same cores slow down a rank with two threads:
#   bench_loaded.sh [--binary FILE] [--busy N] [--rounds N] [--steps N] [--least RATIO] [OPTION...]
# alternately runs `concertina bench step` with 1 and with 2 threads, next to N (2) busy loops, and
# prints the rates and the median of their ratios; exits with 1 if that is below
# RATIO (0.7). OPTIONs go to `bench step`: --set KEY=VALUE ... --busy 0: no busy loops.
set -euo pipefail

binary=$(dirname "$0")/../../build/experiments/concertina
busy=2 rounds=3 steps=3 least=0.7
rest=()
while (($#)); do
  case $1 in
    --binary) binary=${2:?--binary FILE}; shift 2 ;;
    --busy) busy=${2:?--busy N}; shift 2 ;;
    --rounds) rounds=${2:?--rounds N}; shift 2 ;;
    --steps) steps=${2:?--steps N}; shift 2 ;;
    --least) least=${2:?--least RATIO}; shift 2 ;;
    *) rest+=("$1"); shift ;;
  esac
done
[[ -x $binary ]] || { echo "bench_loaded.sh: $binary does not exist: run ninja -C build" >&2; exit 2; }

pids=()
trap '((${#pids[@]} == 0)) || kill "${pids[@]}" 2>/dev/null || true' EXIT
for ((i = 0; i < busy; ++i)); do
  while :; do :; done &
  pids+=($!)
done

rate() {
  "$binary" bench step --json --steps "$steps" --warmup 1 "${rest[@]}" --set run.threads="$1" |
    sed -n 's/.*"tokens_per_s":\([0-9.]*\).*/\1/p'
}
ratios=()
for ((i = 0; i < rounds; ++i)); do
  one=$(rate 1) two=$(rate 2)
  ratios+=("$(awk -v a="$one" -v b="$two" 'BEGIN { printf "%.3f", b / a }')")
  echo "with $busy busy processes: 1 thread $one tokens/s, 2 threads $two, ratio ${ratios[-1]}"
done
median=$(printf '%s\n' "${ratios[@]}" | sort -n | sed -n "$(((rounds + 1) / 2))p")
echo "median ratio $median, at least $least is expected"
awk -v a="$median" -v b="$least" 'BEGIN { exit !(a >= b) }'
