#!/usr/bin/env bash
# The published results of experiments/papers/zero-bubble: rows pass, and wrong values fail.
# usage: zero_bubble_test.sh CONCERTINA
set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
script=$top/tests/papers/zero_bubble.py
binary=$1
scratch=$(mktemp -d) && trap 'rm -rf "$scratch"' EXIT
bad=0

# exits CODE TEXT ARGUMENTS: zero_bubble.py must exit with CODE and print TEXT.
exits() {
  local code=$1 text=$2
  shift 2
  python3 "$script" --program "$binary" "$@" >"$scratch/out" 2>&1
  local is=$?
  if [ $is != "$code" ] || ! grep -qF -- "$text" "$scratch/out"; then
    echo "FAILED: zero_bubble.py $*: exit code $is, wanted $code and '$text'"
    sed 's/^/  | /' "$scratch/out"
    bad=1
  fi
}

exits 0 '11 of 11 figures pass' --model 1.5B --microbatches 24
exits 0 '11 of 11 figures pass' --model 14.6B --microbatches 48
# Wrong values must fail.
wrong() { sed "$1" "$top/experiments/papers/zero-bubble/expected.json" >"$scratch/wrong.json"; }
wrong 's/"zb-h1": 0.1585/"zb-h1": 0.1584/'
exits 1 '10 of 11 figures pass' --model 1.5B --microbatches 24 --expected "$scratch/wrong.json"
wrong 's/"zb-2p": 0.0433/"zb-2p": 0.0400/; s/"1f1b-i": 13.1/"1f1b-i": 12.8/'
exits 1 '9 of 11 figures pass' --model 1.5B --microbatches 24 --expected "$scratch/wrong.json"
exits 2 'no row has this model' --model 2B
exits 2 'cannot read' --expected "$scratch/none.json"
exits 2 'cannot run' --program "$scratch/none"
exit $bad
