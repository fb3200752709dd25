#!/bin/sh
# Studies of real runs: whatever is killed, hangs or fails, the rest continues, nothing is lost, and
# the results are the same.
# usage: study_test.sh CONCERTINA MPIRUN [ARGUMENT...]
set -u
binary=$(realpath -- "$1"); shift
mpirun=$*
. "$(dirname -- "$0")/training_checks.sh"

tiny_run 40
PATH=$(dirname -- "$binary"):$PATH
launcher="$mpirun -n {ranks} {program} {args}"

# study NAME: writes NAME.toml from stdin, after the part common to all studies here.
study() { { echo 'base = "base.toml"'; cat; } > "$1.toml"; }
# runs CODE NAME [OPTION...]: runs `study run` of NAME.toml.
runs() {
  code=$1 name=$2; shift 2
  exits "$code" "study run $name $*" "$binary" study run "$name.toml" "$@"
}
# column DIR NAME: prints the values of a column of results.csv, one per line.
column() {
  awk -F, -v name="$2" 'NR == 1 { for (i = 1; i <= NF; ++i) if ($i == name) at = i; next } { print $at }' "$1/results.csv"
}
same() { [ "$(column "$1" "$3")" = "$(column "$2" "$3")" ] || fail "$3 of $1 and $2 differ"; }

# Killed three times, it ends with the results of an uninterrupted study.
study grid << END
seeds = [1, 2]
[set]
checkpoint.every = 5
[grid]
parallel.schedule = ["1f1b", "zb-v"]
[[zip]]
parallel.pp = [2, 1]
parallel.dp = [1, 2]
[launch]
command = "$launcher"
END
runs 0 grid --dry-run
grep -qx '8 trials to run' out || fail 'a dry run does not count the trials'
runs 0 grid
[ "$(column studies/grid state | sort | uniq -c | awk '{ print $1 $2 }')" = 8done ] || fail 'not 8 trials done'
[ "$(column studies/grid state_sha256 | sort -u | wc -l)" = 2 ] || fail 'the bits of each seed are not the same'
for ended in 1 3 5; do
  "$binary" study run grid.toml --dir killed > out 2> err & process=$!
  while kill -0 $process 2> /dev/null && [ "$(ls killed/grid/*/trial.json 2> /dev/null | wc -l)" -lt $ended ]; do sleep 0.02; done
  sleep 0.4  # in the middle of the next trial
  kill -KILL $process 2> /dev/null
  wait $process 2> /dev/null
done
exits 0 'continuing by the folder' "$binary" study run killed/grid
rm -r killed/grid/3 killed/grid/results.csv*
runs 0 grid --dir killed --dry-run
grep -qE '^1 trial to run; skipped as finished: 1-2,4-8; expected to take [0-9:]+ \([0-9.]+ s per trial so far\)$' out ||
  fail 'a dry run does not tell what is skipped and how long the rest takes'
exits 0 'the trial that is left' "$binary" study run killed/grid
for name in trial state parallel.schedule parallel.pp run.seed loss validation_loss grad_norm state_sha256 layout config_sha256; do
  same studies/grid killed/grid $name
done
cp killed/grid/results.csv before
runs 0 grid --dir killed
cmp -s before killed/grid/results.csv || fail 'a finished study changed its results'

end_of_first_cases
# A trial that hangs is ended by its time limit and reported, with all processes that it started;
# one that cannot run is recorded with its error; the others run. Both are repeated if requested.
study faulty << END
[grid]
model.heads = [2, 3, 4]
[launch]
ranks = 1
time_limit = 2
command = "sh -c 'if grep -q \"^heads = 4\" studies/faulty/3/overrides.toml && [ ! -e again ] && [ -e studies/faulty/2 -o -e studies/faulty/3/overrides.toml ]; then sleep 61 & exec sleep 62; fi; exec {program} {args}'"
END
runs 1 faulty
[ "$(column studies/faulty state | tr '\n' ' ')" = 'done failed timeout ' ] || fail "states: $(column studies/faulty state)"
grep -q 'trial 3 timeout' err && grep -q 'it did not finish within 2 s (launch.time_limit)' err || fail 'the hanging trial is not reported'
grep -q '^  *error: model.heads = 3 does not divide model.width' err || fail 'the failing trial has no error'
grep -lsaE '^sleep.6[12]' /proc/[0-9]*/cmdline > /dev/null && fail 'a hanging process is left'
touch again
runs 1 faulty --retry-failed
[ "$(column studies/faulty state | tr '\n' ' ')" = 'done failed done ' ] || fail "states: $(column studies/faulty state)"

# So is a launcher that does not exit after its ranks: mpirun does this occasionally if one is killed.
study stays << END
[grid]
run.steps = [20, 4000000]
[launch]
ranks = 1
time_limit = 100
launcher_limit = 1
command = "sh -c 'timeout -s KILL 8 {program} {args}; sleep 63 & exec sleep 64'"
END
runs 1 stays
[ "$(column studies/stays state | tr '\n' ' ')" = 'done failed ' ] || fail "states: $(column studies/stays state)"
grep -q 'trial 1: the launcher did not exit within 1 s' err || fail 'the launcher that does not exit is not reported'
grep -q 'the launcher did not exit within 1 s after its ranks' studies/stays/2/trial.json ||
  fail "the trial that was killed does not say why it failed: $(cat studies/stays/2/trial.json)"
grep -lsaE '^sleep.6[34]' /proc/[0-9]*/cmdline > /dev/null && fail 'the launcher that does not exit is left'

# Parallel trials have separate cores.
study beside << END
[grid]
run.seed = [1, 2, 3, 4]
[launch]
ranks = 1
jobs = 2
command = "sh -c 'echo begin \$(date +%s%N) \$(grep Cpus_allowed_list /proc/self/status | cut -f2); {program} {args}; code=\$?; echo end \$(date +%s%N); exit \$code'"
END
runs 0 beside
for trial in 1 2 3 4; do
  awk '/^begin/ { from = $2; cpus = $3 } /^end/ { print from, $2, cpus }' studies/beside/$trial/log.txt
done > spans
cores=$(sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status)
awk -v cores="$cores" '{ from[NR] = $1; to[NR] = $2; cpus[NR] = $3 }
  END { for (i = 1; i <= NR; ++i) for (j = i + 1; j <= NR; ++j)
          if (from[i] < to[j] && from[j] < to[i]) { both = 1; if (cpus[i] == cpus[j]) shared = 1 }
        if (NR != 4 || shared || (cores ~ /[-,]/ && !both)) exit 1 }' spans || fail "cores: $(cat spans)"

# A signal ends it with 75; the same command continues.
study told << END
[set]
run.steps = 4000
checkpoint.every = 1000
[grid]
run.seed = [1, 2]
[launch]
command = "$launcher"
ranks = 2
END
"$binary" study run told.toml > out 2> err & process=$!
while kill -0 $process 2> /dev/null && [ ! -s studies/told/1/run/metrics.jsonl ]; do sleep 0.02; done
kill -TERM $process
wait $process
[ $? = 75 ] || fail 'a stopped study did not exit with 75'
grep -q 'rerun the same command to continue' out || fail 'it does not say how to continue'
[ -e studies/told/1/trial.json ] && fail 'a stopped trial has a record'
[ -n "$(ls -d studies/told/1/run/checkpoints/step-*)" ] || fail 'the trial wrote no checkpoint'
sed -i 's/run.steps = 4000/run.steps = 4001/' told.toml
runs 2 told
one_message 'the folder belongs to another study: [set] differs' 'another study'

# Keys of the command line replace the file's, and belong to the study from then on.
study set << END
[set]
run.steps = 6
[grid]
run.seed = [1, 2]
[launch]
command = "$launcher"
ranks = 1
END
runs 0 set run.steps=4 --set optimizer.lr=0.002
[ "$(column studies/set steps | sort -u)" = 4 ] || fail 'a key of the command line was not used'
grep -q '^lr = 0.002' studies/set/1/overrides.toml || fail 'a key of --set was not used'
runs 2 set
one_message 'the folder belongs to another study: [set] differs' 'without its keys'
cp studies/set/results.csv before
runs 0 set optimizer.lr=0.002 run.steps=4
exits 0 'by the folder' "$binary" study run studies/set
cmp -s before studies/set/results.csv || fail 'a finished study ran again'
exits 2 'other keys of a folder' "$binary" study run studies/set run.steps=5
one_message 'the keys of a started study cannot be changed' 'keys of a folder'
exits 2 'a key that varies' "$binary" study run set.toml run.seed=3
one_message 'run.seed is set for all trials and is also an axis' 'a key that varies'

# Successive halving continues from checkpoints: each rung's steps are trained once.
study rungs << END
[grid]
optimizer.lr = [1e-6, 1e-3, 1e-5]
[search]
method = "asha"
metric = "validation_loss"
min_steps = 10
[stop]
metric = "loss"
above = 1e9
[launch]
command = "$launcher"
ranks = 1
END
runs 0 rungs --json
grep -q '"best":{"trial":2,' out || fail 'successive halving did not find the best'
[ "$(column studies/rungs steps | tr '\n' ' ')" = '10 40 10 ' ] || fail "steps: $(column studies/rungs steps)"
grep -q '"step":11,' studies/rungs/2/run/metrics.jsonl || fail 'the best trial did not continue'
[ "$(wc -l < studies/rungs/2/run/launches.jsonl)" = 3 ] || fail 'not three launches: 10, 30 and 40 steps'
# A trial is stopped because of its metrics.
study stopped << END
[set]
run.steps = 3000
[stop]
metric = "loss"
below = 100.0
after = 5
[launch]
command = "$launcher"
ranks = 1
END
runs 0 stopped
grep -q 'trial 1 stopped' err && grep -q 'below 100' err || fail 'the trial was not stopped'

# Scaling: measured as requested, predicted everywhere, with one command that can be repeated.
scaling() { exits "$1" "scaling $*" "$binary" study scaling @base.toml --launcher "$launcher" --rounds 1 --ranks 1,2,4 "$2" "$3"; }
scaling 0 --measure 2
[ "$(grep -cE '^ +[124] pp1xdp[124] ' out)" = 3 ] || fail 'scaling does not print three lines'
grep -qE '^ +4 pp1xdp4 +8 +4 +[0-9.]+ +predicted +[0-9.]+ ' out || fail '4 ranks are not only predicted'
for figure in speedup efficiency parts; do [ -s "studies/scaling/$figure.svg" ] || fail "scaling drew no $figure"; done
scaling 0 --measure 2
grep -q started err && fail 'scaling repeated measurements'
# One rank would use all cores, two ranks half of them each: no speed-up.
exits 0 'scaling with threads left open' "$binary" study scaling @base.toml run.threads=0 --launcher "$launcher" --rounds 1 --ranks 1,2 --measure 2 --name even
[ "$(grep -oh '"threads": *\[[^]]*' studies/even/[12]/run/launches.jsonl | tr -dc '0-9,\n' | tr , '\n' | sort -u | wc -l)" = 1 ] ||
  fail "the points of scaling have different threads: $(cat studies/even/[12]/run/launches.jsonl)"
grep -qE '^each rank has [0-9]+ threads?; up to 2 ranks' out || fail 'scaling does not report the number of threads'
exits 2 'scaling to odd ranks' "$binary" study scaling @base.toml --ranks 1,3 --set parallel.dp=1 --grow pp --set parallel.pp=2 --set model.layers=1
exits 2 'scaling to nothing' "$binary" study scaling @base.toml --ranks 1,x
one_message "expected a decimal integer, got 'x'" 'wrong ranks'

# Bad input: one message, and nothing is created.
study bad << END
[launch]
command = "nowhere-to-be-found {args}"
END
runs 2 bad
one_message "the launcher 'nowhere-to-be-found' does not exist or is not executable" launcher
[ -e studies/bad ] && fail 'a rejected study created a folder'
study dry < /dev/null
runs 0 dry --dry-run
[ -e studies/dry ] && fail 'a dry run created a folder'
grep -q 'train @studies/dry/base/1-base.toml @studies/dry/1/overrides.toml' out || fail 'a dry run does not show its commands'
sed -i 's/done/failed/' studies/beside/results.csv
runs 2 beside
one_message 'results.csv was edited' edited
# A table never replaces a record, a device or a directory.
mkfifo pipe
for out in pipe studies studies/told/study.toml killed/grid/results.csv; do
  exits 2 "a table in $out" "$binary" study table killed/grid --out $out
  one_message 'cannot write this file' "a table in $out"
done
[ -p pipe ] || fail 'a pipe was replaced'
# Records of another study, and trials of another text, are not averaged.
cp -r studies/grid other && cp killed/grid/1/trial.json other/1/ && rm other/results.csv
exits 0 'a record of the same study' "$binary" study table other --metric loss
cp studies/stopped/1/trial.json other/1/
exits 2 'a record of another study' "$binary" study table other
one_message 'belongs to another study' 'another study'
study text << END
[grid]
run.seed = [1, 2]
[launch]
ranks = 1
command = "sh -c '{program} {args}; code=\$?; echo more words >> text; exit \$code'"
END
runs 0 text
grep -q 'trials 2 and 1 were trained on different texts' err || fail 'a changed text is not reported'
exits 2 'two texts' "$binary" study table studies/text
one_message text 'two texts'
# A silent sampler neither delays a signal nor leaves processes.
study silent << END
[search]
method = "sampler"
metric = "loss"
[launch]
ranks = 1
END
printf 'trap "" TERM\nsleep 63 & sleep 64\n' > silent.sh
"$binary" study run silent.toml --sampler 'sh silent.sh' > out 2> err & process=$!
sleep 0.7
kill -TERM $process
wait $process
[ $? = 75 ] || fail 'a silent sampler delayed a signal'
grep -lsaE '^sleep.6[34]' /proc/[0-9]*/cmdline > /dev/null && fail 'a process started by the sampler is left'
exits 2 'a missing file' "$binary" study run nothing.toml
one_message 'cannot read this file' missing
exit $bad
