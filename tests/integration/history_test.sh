#!/bin/sh
# What a run directory stores about its launches, and what later launches may not change.
# usage: history_test.sh CONCERTINA
set -u
binary=$(realpath -- "$1")
. "$(dirname -- "$0")/training_checks.sh"

tiny_run 6

train() { expect "${code:-0}" 0 "$@"; }
refused() {
  text=$1; shift
  code=2 train "$@"
  one_message "$text" "train $*"
}
lines() { wc -l < "$1"; }
rate() { sed -n "s/^{\"step\":$2,.*\"lr\":\([^,]*\),.*/\1/p" "runs/$1/metrics.jsonl"; }

# A dry run prints what would be done and writes nothing, neither for a new run nor in an existing one.
listing() { find . -type f ! -name out ! -name err ! -name message ! -name listed -printf '%p %s %T@ %i\n' | sort; }
listing > listed
train dry --dry-run
grep -q '^dry run: nothing is trained or written' out || fail 'a dry run does not say so'
grep -q '^run  *runs/dry (new)' out || fail 'a dry run does not show where it would write'
grep -q '^layout  *pp1xdp1 on 1 rank, 1f1b, 4 microbatches in 4 leaves' out || fail 'layout'
grep -q '^steps  *1 to 6, from new weights' out || fail 'a dry run does not show its steps'
grep -q '^tokens  *128 per step, 768 in 6 steps; the data has ' out || fail 'tokens'
grep -q '^learning rate cosine of 0.001, warm-up of 2 steps, ends at step 6' out || fail 'lr'
grep -q '^memory  *[0-9.]* MiB on the largest rank, ' out || fail 'memory'
grep -q '^step  *[0-9.]* ms predicted (matrix products only)' out || fail 'predicted step'
[ ! -e runs ] || fail 'a dry run created a directory'
listing | cmp -s listed - || fail 'a dry run created a file'
refused 'cannot write here' dry --set run.dir=text --dry-run
train dry --set run.steps=4
listing > listed
train dry --dry-run
grep -q '^run  *runs/dry (exists)' out || fail 'a dry run does not see the run'
grep -q '^steps  *5 to 6, resuming after the checkpoint of step 4 in runs/dry/checkpoints' out ||
  fail 'a dry run does not show what would be resumed'
grep -q '^learning rate .* ends at step 4' out || fail 'the learning rate must end at the planned step'
grep -q '^step  *[0-9.]* ms predicted (from the costs.json of this run)' out || fail 'costs.json'
grep -qF 'run.steps = 6 (was 4)' out || fail 'a dry run does not show what changed'
refused 'model.width was 32, now it is 64' dry --set model.width=64 --dry-run
refused '--from-scratch is given, but there are checkpoints' dry --from-scratch --dry-run
listing | cmp -s listed - || fail "a dry run changed a run: $(listing | diff listed -)"

# Trained steps are never restarted silently.
train ck --set checkpoint.dir=elsewhere --set checkpoint.every=2
cp runs/ck/metrics.jsonl kept
refused "config.toml has checkpoint.dir = $PWD/elsewhere" ck --set run.steps=7
grep -q -- '--from-scratch' message || fail 'the message does not suggest --from-scratch'
cmp -s kept runs/ck/metrics.jsonl || fail 'a rejected launch changed metrics.jsonl'
mv elsewhere away
refused 'which has none' ck --set run.steps=7
refused 'has trained 6 steps, but there is no checkpoint in' ck --set checkpoint.dir=elsewhere
cmp -s kept runs/ck/metrics.jsonl || fail 'a rejected launch changed metrics.jsonl'
train ck --set run.steps=3 --from-scratch
[ "$(lines runs/ck/metrics.jsonl)" = 3 ] && cmp -s kept runs/ck/metrics.jsonl.1 ||
  fail 'the old metrics were not moved aside'
[ -s runs/ck/events.jsonl.1 ] && [ -s runs/ck/result.json.1 ] || fail 'the old events are missing'
rm -r runs/ck/checkpoints
train ck --set run.steps=2 --from-scratch
cmp -s kept runs/ck/metrics.jsonl.1 && [ "$(lines runs/ck/metrics.jsonl.2)" = 3 ] ||
  fail 'the metrics that were moved aside first are missing'
refused 'there are checkpoints up to step 2' ck --set run.steps=4 --from-scratch
# The same after a kill before the first checkpoint.
timeout -s KILL 60 "$binary" train @base.toml --set run.name=killed --set run.steps=100000 \
  > out 2> err &
until [ "$(lines runs/killed/metrics.jsonl 2> /dev/null)" -gt 5 ] 2> /dev/null; do
  kill -0 $! 2> /dev/null || break
  sleep 0.05
done
kill -KILL "$(cat /proc/[0-9]*/status 2> /dev/null |
  awk -v parent=$! '$1 == "Pid:" { pid = $2 } $1 == "PPid:" && $2 == parent { print pid }')"
wait
refused 'stopped before its first one (checkpoint.every = 0)' killed
grep -q '"end":null,"exit":null' runs/killed/launches.jsonl || fail 'a killed launch has an end'

# One line per launch.
train plain --set parallel.schedule=1f1b
cp runs/plain/config.toml before
train plain --set parallel.schedule=gpipe
cmp -s before runs/plain/config.toml || fail 'a launch that trained nothing changed config.toml'
grep -qF 'nothing is left to train, so config.toml is unchanged; this launch has parallel.schedule = "gpipe" (was "1f1b")' \
  err || fail 'the differences are not reported'
train plain --set run.steps=8 --set parallel.schedule=gpipe
grep -qF 'resuming with changed keys: run.steps = 8 (was 6), parallel.schedule = "gpipe" (was "1f1b")' err ||
  fail 'changed keys are not reported'
grep -q '^schedule = "gpipe"' runs/plain/config.toml || fail 'config.toml is not from the last launch'
"$binary" schedule show gpipe --ranks 1 --microbatches 4 > own.csv
train plain --set run.steps=9 --set parallel.schedule=own.csv
hash=$(sha256sum own.csv | cut -c1-64)
cmp -s own.csv "runs/plain/schedule-$(echo "$hash" | cut -c1-12).csv" || fail 'no copy of own.csv'
python3 - "$hash" << 'END' || fail 'launches.jsonl'
import datetime, json, os, sys
lines = [json.loads(line) for line in open('runs/plain/launches.jsonl')]
assert [(l['from'], l['to'], l['exit']) for l in lines] == [(0, 6, 0), (6, 6, 0), (6, 8, 0), (8, 9, 0)]
for l in lines:
    begin, end = (datetime.datetime.strptime(l[k], '%Y-%m-%dT%H:%M:%S.%fZ') for k in ('start', 'end'))
    assert begin <= end and l['command'][1] == 'train' and l['hosts'][0]['threads'] == [1]
    assert l['hosts'][0]['host'] == os.uname().nodename and l['hosts'][0]['load'] >= 0
    assert l['layout'] == 'pp1xdp1' and l['seed'] == 1 and l['program'] and l['isa'] and l['onednn']
assert [l['schedule'] for l in lines[:3]] == ['1f1b', 'gpipe', 'gpipe']
assert lines[3]['schedule']['sha256'] == sys.argv[1]
END

# A run that is extended keeps its planned learning rates.
train long --set run.steps=9
train grows
train grows --set run.steps=9
grep -q 'the learning-rate schedule ends at step 6 (lr.steps), but the run ends at step 9' err ||
  fail 'the end of the learning rate is not reported'
for step in 7 8 9; do
  [ "$(rate grows $step)" = "$(rate grows 6)" ] || fail "the learning rate of step $step has changed"
done
[ "$(rate grows 6)" != "$(rate long 6)" ] || fail 'the two runs do not differ'
grep -A5 '^.lr' runs/grows/config.toml | grep -q '^steps = 6$' || fail 'config.toml has no lr.steps'
train grows --set run.steps=12 --set lr.steps=12
grep -q 'lr.steps: trained with 6 so far, continuing with 12' err || fail 'a changed lr.steps is not reported'
[ "$(rate grows 10)" != "$(rate grows 9)" ] || fail 'lr.steps has no effect'

# Separate seeds of weights and of the order of data.
train seed --set run.seed=3
train both --set run.seed=3 --set model.seed=3 --set data.seed=3
[ "$(hash_of both)" = "$(hash_of seed)" ] || fail 'the seeds do not default to run.seed'
train weights --set run.seed=3 --set model.seed=4
train order --set run.seed=3 --set data.seed=4
train other --set run.seed=4
[ "$(for run in seed weights order other; do hash_of $run; done | sort -u | wc -l)" = 4 ] ||
  fail 'a seed has no effect'
refused 'data.seed was 4, now it is 3' order --set run.seed=3 --set run.steps=7
exit $bad
