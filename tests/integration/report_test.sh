#!/bin/sh
# The files that a run leaves for `concertina report`, and its pages and output.
# usage: report_test.sh CONCERTINA MPIRUN [MPIRUN_ARGS...]
set -u
binary=$(realpath -- "$1"); shift
mpirun=$*
. "$(dirname -- "$0")/../shell_checks.sh"

train() {
  ranks=$1 name=$2; shift 2
  exits 0 "train $name $*" $mpirun -n "$ranks" "$binary" train --set data.text=text \
    --set run.steps=8 --set run.threads=1 --set model.width=64 --set model.layers=3 \
    --set generate.tokens=0 --set eval.batches=1 --set "run.name=$name" "$@"
}

report() { timeout 60 "$binary" report "$@" > out 2> err; }

# refused TEXT RUN...: expects exit code 2 and one message with TEXT.
refused() {
  text=$1; shift
  exits 2 "report $*" "$binary" report "$@"
  one_message "$text" "report $*"
}

# figures RUN: expects --json to print one object whose causes add up, with memory as predicted.
figures() {
  report --json "$1" || fail "report --json $1"
  [ "$(wc -l < out)" = 1 ] || fail 'stdout is not one line'
  sed 's/"bubble":/\n&/g; s/"ranks"/\n/' out | awk '
    /^"bubble"/ && /"schedule":/ {
      n = split($0, part, /[{},:]/); sum = 0
      for (i = 1; i < n; ++i) {
        if (part[i] ~ /^"(schedule|imbalance|variation|transfer|reduction|optimizer|other)"$/)
          sum += part[i + 1]
        if (part[i] == "\"bubble\"") bubble = part[i + 1]
        if (part[i] == "\"saved_bytes\"") { if (saved) same = saved == part[i + 1]; saved = part[i + 1] }
      }
      if ((sum - bubble) ^ 2 > 1e-18 || !same || !(bubble > 0 && bubble < 1)) wrong = 1
      saved = 0; ++ranks
    }
    END { exit wrong || ranks == 0 }' || fail "the values of $1"
}

awk 'BEGIN { for (i = 0; i < 9000; ++i) printf "%d %d\n", i * i % 997, i % 13 }' > text

train 2 stages --set parallel.pp=2
train 2 replicas --set parallel.dp=2
train 4 grid --set parallel.pp=2 --set parallel.schedule=gpipe
train 1 one
for run in stages replicas grid one; do
  figures "runs/$run"
  [ "$(tail -c 8 "runs/$run/report.html")" = '</html>' ] || fail "$run: report.html is not complete"
  [ "$(grep -c '"cat":"step"' "runs/$run/trace.json")" = \
    $((4 * $(grep -c '"process_name"' "runs/$run/trace.json"))) ] || fail "$run: the number of steps in trace.json"
done
[ "$(grep -c '"ph":"s"' runs/stages/trace.json)" = 64 ] || fail 'arrows: 8 + 8 a step'
[ "$(grep -c '"ph":"f"' runs/stages/trace.json)" = 64 ] || fail 'the ends of arrows'
[ "$(grep -c '"ph":"s".*"name":"gradients"' runs/replicas/trace.json)" = 4 ] ||
  fail 'arrows of the gradient exchange: expected one per step'
report runs/stages --output page.html && [ -s page.html ] || fail '--output'

# Recording changes nothing and can be disabled.
train 2 silent --set parallel.pp=2 --set log.trace=0
[ "$(hash_of silent)" = "$(hash_of stages)" ] || fail 'a trace changed the weights'
[ ! -e runs/silent/trace.json ] || fail 'log.trace=0 left a trace'

# A killed run has no costs.json; its report says what is therefore missing.
rm runs/replicas/costs.json
exits 0 'report without costs' "$binary" report runs/replicas
grep -q 'without the reduction of gradients: the run has no costs.json' out ||
  fail 'a report without costs.json does not say so'

report runs/silent && grep -q 'no step was recorded' out || fail 'the report of a run without a trace'
report runs && grep -q '"text":"one (report)","href":"one/report.html"' runs/report.html || fail 'an index of runs'
refused 'not a run directory' nowhere
head -c 5000 runs/stages/trace.json > short && mv short runs/stages/trace.json
refused 'runs/stages/trace.json' runs/stages
exit $bad
