#!/bin/sh
# Tests the results of a run: result.json, metrics.jsonl, held-out loss, traces; and the output of `eval`,
# `generate` and `report` for it. Every value is compared with what it is computed from.
# usage: figures_test.sh CONCERTINA MPIRUN [MPIRUN_ARGS...]
set -u
binary=$(realpath -- "$1") tests=$(dirname -- "$(realpath -- "$0")"); shift
mpirun=$*
. "$tests/training_checks.sh"

# refused CODE TEXT ARGUMENTS...: expects one message with TEXT, without a C library's -nan.
refused() {
  code=$1 text=$2; shift 2
  exits "$code" "$*" "$binary" "$@"
  one_message "$text" "$*"
  grep -aqF -e '-nan' out err && fail "$*: says -nan"
}

# holds WHAT EXPRESSION: checks a Python expression over r (runs/a/result.json, or that of $run) and
# m (the lines of its metrics.jsonl).
holds() {
  python3 - "${run:-a}" "$2" << 'END' || fail "$1"
import json, math, re, statistics, sys
folder = "runs/" + sys.argv[1]
r = json.load(open(folder + "/result.json"))
m = [json.loads(line) for line in open(folder + "/metrics.jsonl")]
e = [json.loads(line) for line in open(folder + "/events.jsonl")]
def near(a, b, t=1e-9): return abs(a - b) <= t * abs(b)
if not eval("(" + sys.argv[2] + ")"):
    print("result.json:", r)
    sys.exit(1)
END
}

awk 'BEGIN { x = 1; for (i = 0; i < 12000; ++i) { x = (x * 1103515245 + 12345) % 2147483648
  printf "%s%s", substr("seawindonestar", 1 + int(x / 65536) % 10, 4), i % 9 == 8 ? "\n" : " " } }' > text
held_out=$(($(wc -c < text) / 10))

cat > base.toml << END
[run]
steps = 8
threads = 1
[model]
layers = 2
width = 32
heads = 2
context = 24
[data]
text = "text"
[batch]
global = 24
microbatches = 12
[checkpoint]
every = 4
keep = 9
[lr]
warmup = 2
END

# The rate is of the whole run, the steps are of this launch; nothing is generated unless requested.
expect 0 2 a --set parallel.pp=2
[ "$(wc -l < out)" = 4 ] || fail 'train prints more than its result'
holds 'rate' 'near(r["tokens_per_s"], 8 * 576 / sum(l["step_ms"] / 1e3 for l in m))'
holds 'median' 'near(r["median_step_ms"], statistics.median(l["step_ms"] for l in m))'
holds 'steps' 'r["steps"] == 8 and r["launch_steps"] == 8'
holds 'seconds' '0 < r["steps_s"] + r["eval_s"] + r["checkpoint_s"] < r["launch_s"] < 60'
holds 'bubble' '0 < r["bubble"] < 1 and 0 < r["predicted_bubble"] < 1'
holds 'causes' 'near(sum(r["recorded"]["bubble_causes"].values()), r["recorded"]["bubble"])'
holds 'recorded' 'r["recorded"]["first_step"] == 3 and r["recorded"]["steps"] == 4'
holds 'prediction' '0 < r["predicted_step_ms"] < 100 * r["median_step_ms"]'
exits 0 'report' "$binary" report runs/a --json
report_says() { python3 -c 'import json, sys; print(json.load(open("out"))[sys.argv[1]])' "$1"; }
holds 'the prediction is the one in the report' \
  "near(r['predicted_step_ms'], $(report_says predicted_step_ms), 1e-4) and
   near(r['predicted_bubble'], $(report_says predicted_bubble), 1e-4)"
guide=$tests/../../experiments/guide/run-directory.md
holds 'the guide lists every key' "not [k for k in [*r, *r['recorded'], *m[-1],
   *json.loads(open(folder + '/launches.jsonl').readline())] if '\`' + k + '\`' not in open('$guide').read()]"
holds 'setup' '(r["layout"], r["ranks"], r["schedule"], r["seed"]) == ("pp2xdp1", 2, "1f1b", 1)'
holds 'last step' 'all(r[k] == m[-1][k] for k in ("loss", "grad_norm", "lr", "peak_bytes"))'
holds 'hash' 're.fullmatch("[0-9a-f]{64}", r["state_sha256"])'
holds 'times' 'all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", l["time"]) for l in m + e)'
holds 'times in order' 'sorted(l["time"] for l in m) == [l["time"] for l in m]'
holds 'time comes last' 'all(list(l)[-1] == "time" for l in m)'
expect 0 1 a --set run.steps=10
holds 'steps of a second launch' 'r["steps"] == 10 and r["launch_steps"] == 2'
holds 'rate of a second launch' 'near(r["tokens_per_s"], 2 * 576 / sum(l["step_ms"] / 1e3 for l in m[8:]))'

# Held-out loss: every target of the split once, for any batch size; part of it if requested.
holds 'all held-out tokens' "r['validation_tokens'] == r['validation_of_tokens'] == $held_out - 1"
expect 0 1 small --set batch.global=6 --set batch.microbatches=2 --set model.context=17 \
  --set eval.batches=1 --set eval.every=3
run=small holds 'held-out tokens at another batch' \
  "(r['validation_tokens'], r['validation_of_tokens']) == (4096, $held_out - 1)"
grep -q 'over 4,096 of 5,[0-9]* targets' out || fail 'train does not report how much it evaluated'
grep -q 'an evaluation over 4,096 of .* takes' err || fail 'the cost of evaluations is not reported'
expect 0 1 periodic --set eval.periodic_batches=1 --set eval.every=4
run=periodic holds 'periodic evaluations' \
  "[(l['step'], l['tokens'], l['final']) for l in e if l['event'] == 'validation'] ==
   [(4, 4096, False), (8, 4096, False), (8, $held_out - 1, True)]"

loss() { sed -n 's/.*"loss":\([^,]*\),.*/\1/p' out; }
exits 0 'eval' "$binary" eval runs/a --json
whole=$(loss)
run=a holds 'eval and train' "near(r['validation_loss'], $whole)"
grep -qF 'the run'"'"'s own layout' err && fail 'the layout of a run that names none is replaced'
exits 0 'eval --step' "$binary" eval runs/a --step 4 --json
[ "$(loss)" != "$whole" ] && grep -q '"step":4,' out || fail 'eval --step 4 does not use step 4'
refused 2 'one of: 4, 8, 10' eval runs/a --step 5
exits 0 'eval of pp=2 alone' "$binary" eval runs/a --set parallel.pp=2 --json
grep -qF '(pp=2) does not fit 1 rank: using pp1xdp1' err || fail 'eval does not report which layout it uses'
refused 2 'data.validation changed from 0.1 to 0.5' eval runs/a --set data.validation=0.5
refused 2 'the run has no test data' eval runs/a --split test
cp text before
tr s z < before > text
refused 2 'differ from those that the run was trained on' eval runs/a
refused 2 '--text has no effect with --split test' eval runs/a --text before --split test
exits 0 'eval --text' "$binary" eval runs/a --text text --json
[ "$(loss)" != "$whole" ] || fail 'eval --text did not read it'
exits 0 'eval --text of the old one' "$binary" eval runs/a --text before --json
[ "$(loss)" = "$whole" ] || fail 'the same bytes have a different loss'
exits 0 'eval --files' "$binary" eval runs/a --files before --json
[ "$(loss)" != "$whole" ] && grep -q '"split":"test".*"tokens":'$(($(wc -c < before) - 1))',' out ||
  fail 'eval --files does not read the whole file'
rm text
exits 0 'generate without the text' "$binary" generate runs/a --set generate.temperature=0
[ "$(wc -c < out)" -gt 200 ] || fail 'generate does not make 200 tokens'
mv before text

# Records windows of steps wherever requested.
expect 0 2 traced --set log.trace=2 --set 'log.trace_at=[2, 7]' --set generate.tokens=7
(cd runs/traced && ls trace*) | tr '\n' ' ' > got
[ "$(cat got)" = 'trace-00000002.json trace-00000007.json trace.json ' ] || fail "traces: $(cat got)"
cmp -s runs/traced/trace.json runs/traced/trace-00000007.json || fail 'trace.json is not the last one'
run=traced holds 'recorded steps' 'r["recorded"]["first_step"] == 7 and r["recorded"]["steps"] == 2'
for step in 2 7; do
  exits 0 "report --step $step" "$binary" report runs/traced --step $step --json
  grep -q "\"recorded_steps\":\[$step,$((step + 1))\]" out || fail "report --step $step reports another step"
done
refused 2 'no trace starts at step 3' report runs/traced --step 3
expect 0 1 every --set log.trace=1 --set log.trace_every=3
[ "$(ls runs/every/trace-*)" = "$(printf 'runs/every/trace-%08d.json\n' 3 6)" ] || fail 'log.trace_every'

# MFU is reported only if a peak rate is given.
holds 'no MFU' 'not any("mfu" in x for x in m + [r])'
expect 0 1 mfu --set run.peak_tflops=0.5
run=mfu holds 'MFU' 'near(r["mfu"], 72 * 24 * 24 * 2 * 32**2 * (1 + 24 / (6 * 32) + 256 / (12 * 2 * 32))
  / (r["steps_s"] / 8 * 0.5e12)) and all(l["mfu"] > 0 for l in m) and r["peak_tflops_per_rank"] == 0.5'

# Weights that give no finite loss are reported in plain words, without success.
expect 1 1 diverged --set run.steps=1 --set optimizer.lr=1e19 --set lr.warmup=0
one_message 'the held-out loss is NaN' 'a diverged run'
grep -aqF -e 'nan' out err && fail 'a diverged run prints nan'
run=diverged holds 'NaN in result.json' 'r["validation_loss"] is None'
refused 1 'the held-out loss is NaN' eval runs/diverged
refused 1 'the loss of step 2 is NaN' train runs/diverged --set run.steps=2
exit $bad
