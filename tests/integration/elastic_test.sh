#!/bin/sh
# Runs that freeze layers during training, and spare ranks: the same decisions and the same bits with every
# layout and after every stop; nothing hangs if a spare rank is stopped, killed or told to stop.
# usage: elastic_test.sh CONCERTINA MPIRUN [MPIRUN_ARGS...]
set -u
binary=$(realpath -- "$1"); shift
mpirun=$*
here=$(realpath -- "$(dirname -- "$0")")
. "$here/training_checks.sh"

tiny_run 80
sed -i 's/^layers = 2/layers = 4/' base.toml
awk 'BEGIN { for (i = 0; i < 120; ++i) printf "%d ship under far stars %d\n", i % 7, i * i % 31 }' > text

# decisions NAME: prints what was frozen when and why, without times and layouts.
decisions() {
  grep '"event":"freeze"' "runs/$1/events.jsonl" | sed 's/,"layout".*//; s/,"time".*//'
}
# same_as FIRST NAME: compares bits and decisions.
same_as() {
  [ -n "$(hash_of "$1")" ] && [ "$(hash_of "$1")" = "$(hash_of "$2")" ] ||
    fail "the bits of $2 and $1 differ"
  decisions "$1" > wanted
  decisions "$2" > got
  cmp -s wanted got || fail "$2 and $1 decide differently: $(diff wanted got | head -n 4)"
}
# freezes COUNT NAME: expects at least COUNT freezes or unfreezes.
freezes() {
  [ "$(grep -c '"units_before"' "runs/$2/events.jsonl")" -ge "$1" ] || fail "$2 does not freeze"
}
# everywhere NAME KEYS...: runs once at each layout.
everywhere() {
  one=$1; shift
  expect 0 0 "$one" "$@"
  expect 0 2 "$one-pp2" "$@" --set parallel.pp=2
  expect 0 2 "$one-dp2" "$@" --set parallel.dp=2
  expect 0 4 "$one-zbv" "$@" --set parallel.pp=2 --set parallel.schedule=zb-v
  expect 0 3 "$one-spare" "$@" --set parallel.dp=2 --set parallel.spare=1
  for layout in pp2 dp2 zbv spare; do same_as "$one" "$one-$layout"; done
}

# Every policy, at every layout. An epoch has 21 or 22 steps.
everywhere pipe --set freeze.policy=pipetransformer
freezes 2 pipe
end_of_first_cases
everywhere auto --set freeze.policy=autofreeze
freezes 1 auto
expect 0 0 list --set freeze.policy=list --set 'freeze.at=["epoch 1: 1", "epoch 3: 2"]'
expect 0 3 list-spare --set freeze.policy=list --set 'freeze.at=["epoch 1: 1", "epoch 3: 2"]' \
  --set parallel.pp=2 --set parallel.spare=1
same_as list list-spare
freezes 2 list
# The log and metrics.jsonl report what is frozen, from the first freeze on.
grep -q 'bubble [0-9]*%  pp2xdp1, 2 of 4 layers frozen  ETA 0:00$' err ||
  fail "the progress of list-spare does not show what is frozen: $(grep 'step 80/80' err)"
grep -q 'step 10/80 .*%  ETA' err || fail 'the progress of list-spare before a freeze'
sed 's/.*"frozen_units":\([0-9]*\),.*/\1/' runs/list-spare/metrics.jsonl | uniq | xargs > got
[ "$(cat got)" = '0 3 5' ] || fail "metrics.jsonl of list-spare: frozen units $(cat got)"
plastic='--set freeze.policy=plasticity --set freeze.every=4'
expect 0 0 plastic $plastic
expect 0 3 plastic-spare $plastic --set parallel.pp=2 --set parallel.spare=1
same_as plastic plastic-spare
linear='--set freeze.policy=linear --set freeze.every=3'
expect 0 0 linear $linear
expect 0 4 linear-zbv $linear --set parallel.pp=2 --set parallel.schedule=zb-v
same_as linear linear-zbv
freezes 2 linear

# Layout policies move the trained layers without changing a bit; the paper's rule packs the rest of
# a pipeline into one rank once it is small enough, and turns the other rank into a replica.
expect 0 2 packs --set freeze.policy=pipetransformer --set elastic.policy=pipetransformer \
  --set parallel.pp=2 --set parallel.schedule=gpipe
same_as pipe packs
grep -q '"event":"layout","from":"pp2xdp1 gpipe.*"to":"pp1xdp2 gpipe.*"predicted_move_s".*"seconds"' \
  runs/packs/events.jsonl || fail 'no rank becomes a replica'
grep -q '"event":"layout outcome","predicted_step_s":.*"measured_step_s":.*"forecast_of":"another layout"' \
  runs/packs/events.jsonl || fail 'no prediction is compared with the outcome'
expect 0 4 foreseen --set freeze.policy=pipetransformer --set elastic.policy=predicted \
  --set elastic.every=5 --set elastic.least_gain=0 --set parallel.pp=4
same_as pipe foreseen
expect 0 3 narrow --set freeze.policy=pipetransformer --set elastic.policy=predicted \
  --set elastic.every=5 --set elastic.replicas=false --set parallel.pp=3
same_as pipe narrow
if grep '"event":"layout"' runs/narrow/events.jsonl | grep -q '"to":"[^"]*xdp[23]'; then
  fail 'there are replicas despite elastic.replicas = false'
fi

# A rank that is repeatedly stopped for a while is slow: it is reported and gets less work, and no
# bit changes. This cannot be detected if ranks share cores.
if [ "$(nproc)" -ge 2 ]; then
  large='--set parallel.pp=2 --set run.steps=48 --set model.width=128 --set model.context=64
    --set model.layers=6'
  expect 0 2 even $large
  launch_until 0 2 slow $large --set elastic.policy=predicted --set elastic.every=12
  for child in $(children_of "$launcher"); do [ "$(rank_of "$child")" = 1 ] && slow=$child; done
  while kill -STOP "$slow" && sleep 0.006; kill -CONT "$slow" && sleep 0.003; do :; done 2> /dev/null
  wait $process || fail 'a run with a slow rank failed'
  same_as even slow
  grep -q 'rank 1 takes [0-9.]* times as long as the others' err || fail 'a slow rank is not named'
  grep '"rank_factors":\[1.0,[1-9]' runs/slow/events.jsonl | grep -q '"seconds"' ||
    fail 'a slow rank does not get less work'
fi

# Measurements of a run that froze layers predict one that does not.
exits 0 'plan from the costs of a run that froze layers' "$binary" plan @base.toml parallel.pp=2 --world 2 \
  --costs runs/pipe-pp2 --json
exits 0 'plan freeze' "$binary" plan freeze @base.toml parallel.pp=2 --world 2 --costs runs/pipe-pp2 \
  --policy pipetransformer --epochs 4 --json
tail -n 1 out | grep -q '"ladder":\[{"rung":"static".*"rung":"cache"' || fail 'plan freeze does not print the ladder'
exits 2 'plan freeze of what depends on the run' "$binary" plan freeze @base.toml --rate 50 --policy autofreeze
exits 2 'plan freeze within epochs' "$binary" plan freeze @base.toml --rate 50 --policy pipetransformer \
  freeze.every=3

# All layers train again when the loss rises, with their previous optimizer state.
rises="--set freeze.policy=linear --set freeze.every=3 --set freeze.unfreeze=loss
  --set freeze.unfreeze_rise=1e-9 --set optimizer.lr=0.05"
rises="$rises --set run.steps=200"
expect 0 0 rises $rises
grep -q 'all layers train again' runs/rises/events.jsonl || fail 'no layer trains again'
expect 0 4 rises-zbv $rises --set parallel.pp=2 --set parallel.schedule=zb-v
same_as rises rises-zbv

# Likewise if the learning rate restarts, but not for a warm-up or a schedule that only falls.
restarts='--set freeze.policy=linear --set freeze.every=3 --set freeze.unfreeze=lr'
expect 0 0 falls $restarts
grep -q 'all layers train again' runs/falls/events.jsonl && fail 'a falling rate unfreezes layers'
restarts="$restarts --set lr.schedule=cosine-restarts"
expect 0 0 restarts $restarts
grep -q '"why":"the learning rate rose from .*: all layers train again"' runs/restarts/events.jsonl ||
  fail 'no layer trains again when the learning rate rises'
freezes 4 restarts
expect 0 3 restarts-spare $restarts --set parallel.dp=2 --set parallel.spare=1
same_as restarts restarts-spare

# interrupted SIGNAL LINES WANTED NAME RANKS [--set ...]: sends SIGNAL to rank 0 of the run, or to
# rank RANK, once metrics.jsonl has LINES lines. Expects exit code WANTED.
interrupted() {
  signal=$1 lines=$2 wanted=$3 name=$4 ranks=$5; shift 5
  launch_until "$lines" "$ranks" "$name" "$@"
  for child in $(children_of "$launcher"); do
    [ "$(rank_of "$child")" = "${rank:-0}" ] && kill -s "$signal" "$child"
  done
  wait $process
  got=$?
  [ "$got" = "$wanted" ] || fail "SIG$signal after $lines lines of $name: exit code $got, wanted $wanted"
  [ ! -e "runs/$name/result.json" ] || fail "SIG$signal came after the end of $name"
}
steps_once() {
  sed 's/^{"step":\([0-9]*\),.*/\1/' "runs/$1/metrics.jsonl" > got
  seq "$2" > wanted
  cmp -s got wanted || fail "metrics.jsonl of $1 does not have every step once"
}

# Killed or told to stop before and after a freeze, and resumed at another layout each time.
long="--set run.steps=300 --set freeze.policy=pipetransformer --set checkpoint.every=10
  --set freeze.every=75"
expect 0 0 whole $long
interrupted KILL 25 137 parts 2 $long --set parallel.pp=2
interrupted TERM 90 75 parts 4 $long --set parallel.pp=2 --set parallel.schedule=zb-v
interrupted KILL 170 137 parts 3 $long --set parallel.dp=2 --set parallel.spare=1
expect 0 1 parts $long
same_as whole parts
steps_once parts 300
freezes 3 whole
interrupted TERM 60 75 rises-parts 2 $rises --set parallel.dp=2
expect 0 3 rises-parts $rises --set parallel.pp=2 --set parallel.spare=1
same_as rises rises-parts

# Weight gradients that are skipped alternately: planned for the run's first layout, the same at any other.
turns='--set run.steps=300 --set freeze.policy=weights-only --set freeze.every=50'
expect 0 2 turns $turns --set parallel.pp=2
grep -q '"event":"freeze","layers":0,.*"skipped_by_stage":\[0\.[1-9].*"predicted_step_ratio":0\.[0-9]' \
  runs/turns/events.jsonl || fail 'no event reports what is skipped'
interrupted KILL 25 137 turns-parts 2 $turns --set parallel.pp=2 --set checkpoint.every=2
interrupted TERM 90 75 turns-parts 3 $turns --set parallel.dp=2 --set parallel.spare=1
interrupted KILL 170 137 turns-parts 4 $turns --set parallel.pp=2 --set parallel.schedule=zb-v \
  --set checkpoint.every=2
expect 0 0 turns-parts $turns
same_as turns turns-parts
steps_once turns-parts 300
expect 0 2 turns-packs $turns --set elastic.policy=predicted --set elastic.every=40 \
  --set elastic.least_gain=0 --set parallel.pp=2
same_as turns turns-packs
expect 0 0 none --set run.steps=300
[ "$(hash_of turns)" != "$(hash_of none)" ] || fail 'nothing is skipped'
exits 2 'plan freeze weights-only' "$binary" plan freeze @base.toml --policy weights-only
one_message 'skips weight gradients and freezes no layer' 'plan freeze weights-only'

# A run whose layout has changed continues with it if there are as many ranks.
packs="$long --set elastic.policy=pipetransformer --set parallel.pp=2 --set parallel.schedule=gpipe"
interrupted KILL 240 137 packs-parts 2 $packs
expect 0 2 packs-parts $packs
grep -q 'restored pp1xdp2 gpipe' err || fail 'the layout is not restored'
same_as whole packs-parts

# With a batch that grows, two replicas do two steps at once, with the samples of both: the run ends
# at the same step. Stopped and resumed, it has the same bits at any layout, also on fewer ranks.
grows="$packs --set elastic.batch=grows --set freeze.every=60 --set eval.every=25"
expect 0 2 grows $grows --set 'log.trace_at=[101]' --set log.trace=5
grep -q 'may give different weights' err && fail 'pipetransformer does not depend on times'
grep -q 'pp2xdp1 gpipe (6|4 units) -> pp1xdp2 gpipe, batch 8 -> 16: ' err || fail 'the batch does not grow'
grep -q 'step 300/300 .*%  pp1xdp2, 4 of 4 layers frozen, batch 16  ETA' err ||
  fail "the progress of grows: $(grep 'step 300/300' err)"
interrupted TERM 90 75 grows-parts 2 $grows
expect 2 2 grows-parts $grows --set elastic.batch=constant
one_message 'elastic.batch was "grows", now it is "constant"' 'a batch that grows no more'
interrupted KILL 110 137 grows-parts 1 $grows --set parallel.pp=1
grep -q 'restored pp1xdp1 gpipe, batch 16' err || fail 'the batch is not restored on one rank'
expect 0 4 grows-parts $grows --set elastic.policy=none --set parallel.pp=2 --set parallel.schedule=zb-v
same_as grows grows-parts
[ "$(hash_of grows)" != "$(hash_of packs-parts)" ] || fail 'a larger batch has the same bits as a smaller one'
# Decided by measured times: on a busy machine, a run may see no gain in a change.
for _ in 1 2 3 4 5; do
  rm -rf runs/grows-foreseen
  expect 0 2 grows-foreseen $grows --set elastic.policy=predicted --set elastic.every=5 \
    --set elastic.least_gain=0 --set parallel.schedule=1f1b --set checkpoint.every=0
  grep -q '"batch_before".*"seconds"' runs/grows-foreseen/events.jsonl && break
done
grep -q 'warning.*elastic.policy = "predicted" decides based on measured times, .*may give different weights' err ||
  fail 'no warning about weights that depend on times'
# A run that continues for an odd number of steps does them one by one.
expect 0 2 grows-odd $grows --set run.steps=63
grep -q 'pp1xdp2 gpipe, batch 8 (not 16: 3 steps left do not divide evenly): ' err ||
  fail 'no warning about a batch that cannot grow'
expect 0 2 grows $grows --set run.steps=303
grep -q 'restored pp2xdp1 gpipe' err && fail 'a layout with another batch is restored'
exits 0 'report grows' "$binary" report runs/grows --json
exits 0 'eval grows' "$binary" eval runs/grows-parts --json parallel.pp=0 parallel.schedule=1f1b
tail -n 1 out > evaluated
python3 - << 'PY' || fail 'the logs of runs whose batch grows'
import glob, json
def lines(run, name): return [json.loads(line) for line in open(f'runs/{run}/{name}.jsonl')]
for run, steps in ('grows', 303), ('grows-parts', 300), ('grows-foreseen', 300):
    at = updates = 0
    for line in lines(run, 'metrics'):
        assert line['step'] == at + line.get('batches', 1), (run, line)
        at, updates = line['step'], updates + 1
    assert at == steps and (updates < 0.7 * steps or run == 'grows-foreseen'), (run, at, updates)
    newest = json.load(open(sorted(glob.glob(f'runs/{run}/checkpoints/*/manifest.json'))[-1]))
    assert newest['metadata']['progress']['updates'] == updates, (run, updates, newest['metadata'])
events = lines('grows', 'events')
change = [e for e in events if 'batch' in e]
assert [(e['step'], e['batch_before'], e['batch']) for e in change] == [(60, 8, 16)], change
# Decisions that depend on times are made once.
timed = lines('grows-foreseen', 'events')
saved = {e['step'] for e in timed if e['event'] == 'checkpoint'}
sizes = {e['step']: e['batch'] // 8 for e in timed if 'batch' in e and 'seconds' in e}
assert sizes and sizes.keys() <= saved, (sizes, saved)
at, batches = 0, 1
for line in lines('grows-foreseen', 'metrics'):
    batches = sizes.get(at, batches)
    assert line.get('batches', 1) == batches, (line, sizes)
    at = line['step']
at = sorted({e['step'] for e in events if e['event'] == 'validation'})
assert at == [25, 50, 76, 100, 126, 150, 176, 200, 226, 250, 276, 300, 303], at
at = [e['step'] for e in events if e['event'] == 'checkpoint']
assert at == list(range(10, 301, 10)) + [303], at
rates = [line['tokens_per_s'] * line['step_ms'] for line in lines('grows', 'metrics')]
assert all(abs(rate / (8 * 16 * 1e3) - 1) < 1e-9 for rate in rates), rates[-1]
result = json.load(open('runs/grows-parts/result.json'))
# Evaluates two batches at once on four ranks, and one by one on one rank.
assert result['validation_loss'] == json.load(open('evaluated'))['loss'], result
assert result['steps'] == 300 and result['batch'] == 16 and result['microbatches'] == 4, result
assert result['tokens_per_s'] * result['steps_s'] / (8 * 16) - result['launch_steps'] < 1e-6, result
trace = json.load(open('runs/grows/trace-00000101.json'))['traceEvents']
# Five steps are three steps, of up to two at once, on two ranks.
assert sum(e.get('cat') == 'step' for e in trace) == 6, trace
PY

# A checkpoint from before decisions during runs existed has no such progress: it starts there.
expect 0 0 before --set run.steps=20 --set lr.steps=80
python3 - << 'PY' || fail 'the checkpoint without progress is not resumed correctly'
import hashlib, json
folder = 'runs/before/checkpoints/step-00000020/'
manifest = json.load(open(folder + 'manifest.json'))
del manifest['metadata']['progress']
text = json.dumps(manifest)
open(folder + 'manifest.json', 'w').write(text)
line = open(folder + 'manifest.sha256').read().split('  ')
open(folder + 'manifest.sha256', 'w').write(hashlib.sha256(text.encode()).hexdigest() + '  ' + line[1])
PY
expect 0 2 before --set parallel.pp=2 --set lr.steps=80
expect 0 0 straight --set lr.steps=80
same_as straight before
steps_once before 80

# Outputs of frozen units are read instead of computed: the same decisions and bits, with a tier for
# all samples or for some, also if another layout continues after a kill with new files.
fixed="$long --set data.windows=fixed"
kept="$fixed --set cache.use=always"
expect 0 0 fixed $fixed
expect 0 0 kept-memory $kept --set cache.memory=1MiB
expect 0 4 kept-both $kept --set cache.memory=200KiB --set cache.disk=200KiB --set parallel.pp=2
expect 0 3 kept-disk $kept --set cache.disk=1MiB --set parallel.dp=2 --set parallel.spare=1
interrupted KILL 170 137 kept-parts 2 $kept --set cache.memory=1MiB --set parallel.pp=2
expect 0 3 kept-parts $kept --set cache.disk=1MiB --set parallel.dp=2 --set parallel.spare=1
expect 0 4 kept-packs $kept --set cache.memory=1MiB --set elastic.policy=pipetransformer \
  --set parallel.pp=4 --set parallel.schedule=gpipe
grep -q '"event":"layout".*"moved_bytes"' runs/kept-packs/events.jsonl || fail 'no layout has changed'
for run in kept-memory kept-both kept-disk kept-parts kept-packs; do same_as fixed $run; done
freezes 3 fixed
grep -q 'cached activations: .* samples with frozen units were read (.* 0 from disk), ' out ||
  fail 'the summary does not report what was read'
python3 - << 'PY' || fail 'the events of the cache'
import json
def read(run):
    result = json.load(open(f'runs/{run}/result.json'))['cache']
    events = [json.loads(line) for line in open(f'runs/{run}/events.jsonl')]
    return result, [e for e in events if e['event'] == 'cache']
for run, memory, disk in ('kept-memory', 1, 0), ('kept-both', 1, 1), ('kept-disk', 0, 1), ('kept-packs', 1, 0):
    use, events = read(run)
    assert (use['memory_hits'] > 0, use['disk_hits'] > 0) == (memory, disk), use
    assert use['faults'] == 0 and use['moved'] > 0 and events[0]['on'], (use, events)
use, events = read('kept-memory')
# Each sample is computed once and moves to each later frontier, except in a microbatch with both
# moved and unmoved samples: here, the frontier moves during epochs.
samples = events[0]['samples']
assert samples == events[0]['memory_slots'] <= use['misses'] < 2 * samples, (use, events[0])
assert use['writes'] <= samples * len({e['units'] for e in events}), use
PY

# A spare rank that is told to stop stops the run with a checkpoint; one that is killed ends it.
rank=2 interrupted TERM 40 75 told 3 $long --set parallel.dp=2 --set parallel.spare=1
rank=2 interrupted USR1 120 75 told 3 $long --set parallel.dp=2 --set parallel.spare=1
rank=2 interrupted KILL 180 137 told 3 $long --set parallel.dp=2 --set parallel.spare=1
expect 0 2 told $long --set parallel.pp=2
same_as whole told

# Commands that read such a run.
for ranks in 0 3; do
  [ $ranks = 0 ] && launcher= || launcher="$mpirun -n $ranks"
  exits 0 "eval on $ranks" $launcher "$binary" eval runs/pipe-zbv --json parallel.pp=0 parallel.schedule=1f1b
  tail -n 1 out | sed 's/.*\("loss":[^,]*\),.*/\1/' > "loss.$ranks"
  exits 0 "generate on $ranks" $launcher "$binary" generate runs/pipe-zbv generate.tokens=20 \
    parallel.pp=0 parallel.schedule=1f1b
  cp out "text.$ranks"
done
cmp -s loss.0 loss.3 && [ -s loss.0 ] || fail 'eval differs at another world size'
cmp -s text.0 text.3 && [ -s text.0 ] || fail 'generate differs at another world size'
# A recorded window ends when the layers change; a spare rank is not in the trace.
expect 0 3 traced --set freeze.policy=linear --set freeze.every=2 --set log.trace=6 \
  --set 'log.trace_at=[13]' --set run.steps=40 --set parallel.pp=2 --set parallel.spare=1
# Rank 0, which writes the trace, has no stage: it learns the sizes from the other ranks.
expect 0 3 first-spare --set run.steps=4 --set log.trace=1 --set parallel.spare=1 --set 'parallel.layout=[
  {stages = [{rank = 1, units = [0, 5]}, {rank = 2, units = [5, 10]}], microbatches = [0, 4]}]'
for run in traced pipe-zbv pipe-spare first-spare; do
  exits 0 "report $run" "$binary" report "runs/$run" --json
  cp out "report.$run"
done
python3 - << 'PY' || fail 'the traces of a run that freezes layers'
import json
def steps(run):
    return sum(e.get('cat') == 'step' for e in json.load(open(f'runs/{run}/trace.json'))['traceEvents'])
assert steps('pipe-zbv') == 4 * 4 and steps('pipe-spare') == 4 * 2, (steps('pipe-zbv'), steps('pipe-spare'))
events = [json.loads(line) for line in open('runs/traced/events.jsonl')]
change = [e['step'] for e in events if 'units_before' in e and 13 <= e['step'] < 18]
course = json.load(open('report.traced'))['course']
frozen = [e for e in events if 'units_before' in e]
assert [c['step'] for c in course['changes']] == [e['step'] for e in frozen], course
assert [c['frozen_layers'] for c in course['changes']] == [e['layers'] for e in frozen], course
assert sum(s['steps'] for s in course['segments']) == 40 and course['speed_up'] > 0, course
trace = json.load(open('runs/first-spare/trace.json'))
sends = [e['args']['bytes'] for e in trace['traceEvents']
         if e.get('cat') == 'action' and e['name'].startswith('SEND')]
assert sends == 8 * [2 * 16 * 32 * 4], sends  # samples of a microbatch, tokens, width, fp32
assert min(trace['otherData']['saved_bytes']) > 0, trace['otherData']
assert change and steps('traced') == 2 * (change[0] - 12), (change, steps('traced'))
PY

# verify reports in text and in JSON that all bits are the same; a model that does not fit is rejected.
exits 0 'verify' $mpirun -n 3 "$binary" verify @base.toml --layouts pp3xdp1,2+1,pp1xdp2 --steps 3 --json
tail -n 1 out | grep -q '^{"reference":"pp1xdp3 1f1b","steps":3,"same":true,' || fail 'the JSON of verify'
exits 0 'verify alone' "$binary" verify @base.toml --steps 2
grep -q 'all weights, optimizer states, losses and gradient norms are bit-identical' out ||
  fail 'verify does not report equal bits'
exits 2 'verify of a large model' "$binary" verify model.width=65536 model.layers=400 model.heads=64
one_message 'memory' 'verify of a large model'
exits 2 'verify without a valid layout' "$binary" verify @base.toml --layouts pp7xdp1
one_message "no layout '" 'verify without a valid layout'

# refused TEXT RANKS [--set ...]
refused() {
  text=$1 ranks=$2; shift 2
  expect 2 "$ranks" bad "$@"
  one_message "$text" "train $ranks $*"
}
refused 'pipetransformer' 0 --set freeze.policy=pipetransformr
refused 'elastic.batch = "grows" has no effect: elastic.policy is not set' 0 --set elastic.batch=grows
refused 'no sample is ever repeated' 0 --set freeze.units=3 --set 'cache.memory=1 MiB'
refused 'cache.disk = "5 KiB" is too small' 0 --set data.windows=fixed --set freeze.units=3 \
  --set 'cache.disk=5 KiB'
refused 'cache.use = "sometimes"' 0 --set cache.use=sometimes
expect 0 0 dry --dry-run --set data.windows=fixed --set freeze.units=3 --set 'cache.memory=20 KiB' \
  --set 'cache.disk=1 MiB'
grep -q '^activations   of the 172 samples in an epoch, each host keeps 7 in shared memory (0.0 MiB) and 165 on disk (0.3 MiB), 2.0 KiB each' \
  out || fail 'a dry run does not report what would be cached'
expect 0 0 idle --set data.windows=fixed --set 'cache.memory=1 MiB' --set run.steps=2
[ "$(grep -c 'warning' err)" = 1 ] && grep -q 'cache.memory is set, but nothing is ever frozen' err ||
  fail 'no warning about a budget without effect'
idle_policy() {
  name=$1; shift
  expect 0 0 "$name" --set run.steps=2 "$@"
  [ "$(grep -c 'warning nothing will ever be frozen' err)" = 1 ] || fail "$* gives no warning"
}
idle_policy idle-linear --set freeze.policy=linear
idle_policy idle-list --set freeze.policy=list --set 'freeze.at=["step 1: 2"]'
idle_policy idle-pace --set freeze.policy=pipetransformer --set freeze.every=1 --set freeze.alpha=0
refused 'freeze.max' 0 --set freeze.policy=linear --set freeze.max=-1
refused 'freeze.max = 2 has no effect: freeze.policy is "weights-only"' 0 \
  --set freeze.policy=weights-only --set freeze.max=2
refused 'freeze.unfreeze = "loss" has no effect' 0 --set freeze.policy=weights-only \
  --set freeze.unfreeze=loss
refused 'parallel.spare = 2 of 2 ranks leaves no working rank' 2 --set parallel.spare=2
refused 'freeze.at contains "step 2: 5", but the model has 4 layers' 0 --set freeze.policy=list \
  --set freeze.every=1 --set 'freeze.at=["step 2: 5"]'
refused 'no layout with pp = 2 fits 1 rank' 2 --set parallel.pp=2 --set parallel.spare=1
refused 'should be spare' 2 --set parallel.spare=1 --set 'parallel.layout=[
  {stages = [{rank = 0, units = [0, 5]}, {rank = 1, units = [5, 10]}], microbatches = [0, 4]}]'
expect 1 3 diverges --set parallel.dp=2 --set parallel.spare=1 --set optimizer.lr=1e18 --set lr.warmup=0
one_message 'step 2' 'a spare rank where training diverges'
exit $bad
