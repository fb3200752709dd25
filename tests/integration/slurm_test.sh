#!/usr/bin/env bash
# Studies as array jobs: `study submit`, `trial` and `collect`, with stubs of Slurm's commands.
# usage: slurm_test.sh CONCERTINA MPIRUN [OPTION...] CONCERTINA_SLURM=PATH adds a real Slurm cluster, which
# `PATH up 2 4 MaxArraySize=10` (nodes, cores per node, a line of slurm.conf) starts and `PATH down`
# stops; `up` prints a directory whose `env` is sourced, and which `down` finds in SLURM_HOME_DIR.
set -u
binary=$(realpath -- "$1")
mpirun=$2
. "$(dirname -- "$0")/fake_slurm.sh"
. "$(dirname -- "$0")/training_checks.sh"
study() { code=$1; shift; exits "$code" "study $*" $path "$binary" study "$@"; }
path=
refused() { text=$1; shift; study 2 "$@"; one_message "$text" "study $*"; }
hash_in() { sed -n 's/.*"state_sha256": "\([0-9a-f]*\)".*/\1/p' "$1/run/result.json"; }
has() { grep -qF -e "$1" out || fail "$2: wanted '$1'"; }

tiny_run 6
cat > four.toml << 'END'
name = "four 100%"
base = "base.toml"
seeds = [1, 2]
[grid]
optimizer.lr = [0.001, 0.003]
[launch]
command = "{program} {args}"
END
four='studies/four 100%'
# A trial that takes some time, with checkpoints.
sed 's/^steps = .*/steps = 1500/' base.toml > long-base.toml
printf '[checkpoint]\nevery = 500\n' >> long-base.toml
sed 's/four 100%/long/; s/"base.toml"/"long-base.toml"/; /grid/d; /lr =/d' four.toml > long.toml

# Without Slurm, the script can be printed, and nothing is created.
mkdir bare && ln -s "$(python3 -c 'import sys; print(sys.executable)')" bare/python3
path="env PATH=$PWD/bare"
study 0 submit four.toml --dry-run --time 4 --at-once 3 --nodes 2 --cpus-per-task 5 \
  --partition 'gpu "x"' --sbatch '--gres=gpu:4 --mem 0'
for line in '--array=1-4%3' '--ntasks=1' '--nodes=2' '--cpus-per-task=5' '--time=4' '--gres=gpu:4 --mem 0' \
  '--partition="gpu \"x\""' "--chdir=\"$PWD\"" "--output=\"$PWD/studies/four 100%%/%a/slurm.txt\"" \
  '--requeue --open-mode=append --signal=B:USR1@60'; do
  grep -qxF -e "#SBATCH $line" out || fail "the script has no line '$line'"
done
has 'export SRUN_CPUS_PER_TASK=5' 'script'
has "exec $binary study trial '$PWD/studies/four 100%' \"\$SLURM_ARRAY_TASK_ID\"" 'script'
bash -n out || fail 'the script is not valid bash'
refused 'sbatch is not on PATH' submit four.toml
path=
[ ! -e studies ] || fail 'a rejected submission created a folder'

fake_slurm "$PWD/fake"
# Studies that cannot be submitted.
printf '[search]\nmethod = "asha"\nmetric = "loss"\nmin_steps = 2\n' | cat four.toml - > search.toml
refused 'a search cannot be submitted' submit search.toml
for option in --array=1-2 -a1-2 '-a 1-2' --arr=3 '--arr 3' --sig=USR1 --outp=x --open=append -Qa1 -ox -Ho; do
  refused "${option%% *} sets --" submit four.toml --sbatch "$option"
done
SBATCH_ARRAY_INX=1-2 refused 'SBATCH_ARRAY_INX overrides --array' submit four.toml
refused 'the study defines a launcher' submit four.toml --launcher srun
refused 'not in range' submit four.toml --time 0
[ ! -e studies ] || fail 'a rejected submission created a folder'

# Trials are queued, run and collected; queued ones are not submitted twice.
study 0 submit four.toml --at-once 2
has 'submitted 4 trials of studies/four 100% as job 11: 1-4' submit
study 0 submit four.toml
has 'skipped: 1-4' 'submit again'
study 0 collect "$four"
has 'no results yet' collect
[ "$(grep -c '^queued .* job 11_[1-4], PENDING' out)" = 4 ] || fail 'collect does not list queued trials'
serve
[ "$(cat fake/codes)" = "$(printf '11_%d 0\n' 1 2 3 4)" ] || fail "exit codes: $(cat fake/codes)"
study 0 collect "$four/" --json
grep -qF '"done":[1,2,3,4],"stopped":[],"failed":[],"timed_out":[],"running":[],"queued":[],"lost":[],"left":[]' out ||
  fail 'collect --json'
[ "$(wc -l < "$four/results.csv")" = 5 ] || fail 'results.csv'
[ "$(ls "$four/base")" = 1-base.toml ] || fail 'the base config was copied again'
study 0 submit four.toml
has 'nothing left to submit' 'submit at the end'
study 0 trial "$four" 2
has 'trial 2 has already finished: done' 'a trial with a record'
refused 'no trial 5' trial "$four" 5
refused 'not the folder of a study' trial nowhere 1
refused 'not the folder of a study' collect nowhere
sed -i 's/seeds.*/seeds = [1, 2, 3]/' four.toml
study 0 submit four.toml --dry-run
has '#SBATCH --array=5-6' 'more seeds'
study 0 submit four.toml --dry-run --json
grep -qF '"job":null,"trials":[5,6],"repeated":[],"under_way":[],"script":"#!/bin/bash' out || fail '--dry-run --json'
[ "$(wc -l < out)" = 1 ] || fail '--dry-run --json prints more'
sed -i 's/0.003/0.004/' four.toml
refused 'the folder belongs to another study: [grid], [[zip]] or [[arm]] differs' submit four.toml
refused 'the folder belongs to another study: [grid], [[zip]] or [[arm]] differs' submit four.toml --dry-run

# The same trials run by the study itself give the same bits.
study 0 run long.toml --dir undisturbed
cp undisturbed/long/study.toml .
# until_steps N TRIAL: waits until its run has N lines.
until_steps() {
  for _ in $(seq 3000); do
    [ "$(cat "studies/long/$2/run/metrics.jsonl" 2> /dev/null | wc -l)" -ge "$1" ] && return
    sleep 0.02
  done
  fail "trial $2 did not reach step $1"
}

# The signal before the time limit: a checkpoint, exit code 75, requeued, resumed. At the same time,
# `study run` runs the other trial and skips the one that a task runs.
study 0 submit long.toml
serve &
server=$!
until_steps 550 1
batch=$(cat fake/pid)
train=$(children_of "$batch")
kill -STOP $train # so that it does not end before the other one
study 0 collect studies/long
grep -q '^running .* job 12_1, RUNNING on n1' out || fail 'collect does not list running trials'
refused 'is using trial 1' trial studies/long 1
study 1 run long.toml
has 'skipped because other processes run them: 1' 'study run during a task'
grep -q 'trial 2 done' err || fail 'study run during a task: trial 2'
kill -USR1 "$batch"
for _ in $(seq 500); do # until the signal waits for the stopped process: USR1 is bit 9
  grep -q '^ShdPnd:.*2..$' "/proc/$train/status" && break
  sleep 0.02
done
kill -CONT $train
wait $server
[ "$(tail -n 3 fake/codes | xargs)" = '12_1 75 12_1 0 12_2 0' ] || fail "codes: $(cat fake/codes)"
grep -q 'trial 2 has already finished: done' studies/long/2/slurm.txt || fail 'a task ran a trial again'
[ "$(wc -l < studies/long/1/run/launches.jsonl)" = 2 ] || fail 'the requeued task did not resume'
study 0 collect studies/long
for trial in 1 2; do
  [ -n "$(hash_in studies/long/$trial)" ] &&
    [ "$(hash_in studies/long/$trial)" = "$(hash_in undisturbed/long/$trial)" ] ||
    fail "the bits of trial $trial differ"
done

# A task that disappears without a trace is reported as lost, and submitted again.
rm -r studies/long
study 0 submit long.toml --json
grep -qF '"job":"13","trials":[1,2],"repeated":[],"under_way":[]' out || fail 'submit --json'
sed -i '/ 2 PENDING/d' fake/queue
serve 2> /dev/null & # bash reports killed processes
server=$!
until_steps 550 1
batch=$(cat fake/pid)
kill -KILL "$batch" $(children_of "$batch")
wait $server 2> /dev/null
study 0 collect studies/long
grep -q '^lost  *1  *1$' out || fail 'collect does not list the lost trial'
grep -q '^left  *1  *2$' out || fail 'collect does not list the remaining trials'
study 0 submit long.toml
has 'submitted 2 trials of studies/long as job 14: 1-2' 'lost'
serve
[ "$(hash_in studies/long/1)" = "$(hash_in undisturbed/long/1)" ] || fail 'the bits of a lost trial differ'

# Failed trials are repeated if requested; their records are kept if nothing can be submitted.
cat > fails.toml << 'END'
base = "base.toml"
[grid]
batch.microbatches = [4, 3]
[launch]
command = "{program} {args}"
END
study 0 submit fails.toml
serve
[ "$(tail -n 2 fake/codes | xargs)" = '15_1 0 15_2 1' ] || fail "codes: $(cat fake/codes)"
study 0 collect studies/fails
study 0 submit fails.toml
has 'nothing left to submit' 'failed trials'
touch fake/refuses
study 1 submit fails.toml --retry-failed
one_message 'sbatch failed: sbatch: error: invalid partition specified: none' 'sbatch refuses'
rm fake/refuses
study 0 collect studies/fails
grep -q '^failed  *1  *2$' out || fail 'the record of a failed trial is gone'
study 0 submit fails.toml --retry-failed
has 'as job 16: 2' 'failed trials again'
serve
study 0 collect studies/fails
grep -q '^failed  *1  *2$' out || fail 'failed again'

# More trials than an array may have indices: several arrays, each trial in its folder; with
# --at-once, one after another.
echo 10 > fake/most
seeds=$(seq -s ', ' 12)
printf 'base = "base.toml"\nseeds = [%s]\n[launch]\ncommand = "{program} {args}"\n' "$seeds" > many.toml
study 0 submit many.toml --dry-run --at-once 2
for line in '--array=1-9%2' "--output=\"$PWD/studies/many/%a/slurm.txt\"" '--array=0-2%2' \
  "--output=\"$PWD/studies/many/1%1a/slurm.txt\""; do
  grep -qxF -e "#SBATCH $line" out || fail "the scripts of two arrays have no line '$line'"
done
study 0 submit many.toml --at-once 2
has 'submitted 12 trials of studies/many as jobs 17, 18: 1-12' 'two arrays'
[ "$(tail -n 2 fake/dependencies | xargs)" = '17 18 afterany:17' ] || fail "dependencies: $(cat fake/dependencies)"
study 0 submit many.toml
has 'skipped: 1-12' 'two arrays, submitted again'
study 0 collect studies/many
grep -q '^queued  *12  *job 18_2, PENDING' out || fail 'collect does not map an index to its trial'
serve
[ "$(tail -n 12 fake/codes | grep -c ' 0$')" = 12 ] || fail "codes: $(cat fake/codes)"
study 0 collect studies/many --json
grep -qF '"done":[1,2,3,4,5,6,7,8,9,10,11,12]' out || fail 'two arrays: not all are done'
grep -q 'trial 12 done' studies/many/12/slurm.txt || fail 'the output of trial 12 is missing'
# The second array is rejected: the first one stays, and the same command submits the rest.
sed -i 's/seeds = .*/seeds = ['"$(seq -s ', ' 13 31 | sed 's/^/1, /')"']/; s/^base/name = "halves"\nbase/' many.toml
mv fake/bin/sbatch fake/bin/sbatch.good
printf '#!/bin/sh\n[ "$(wc -l < "%s/fake/dependencies")" -lt %d ] && exec "%s/fake/bin/sbatch.good" "$@"\necho no room >&2; exit 1\n' \
  "$PWD" $(($(wc -l < fake/dependencies) + 1)) "$PWD" > fake/bin/sbatch
chmod +x fake/bin/sbatch
study 1 submit many.toml
one_message 'sbatch failed: no room; trials below 10 were submitted as 19' 'half of a submission'
mv fake/bin/sbatch.good fake/bin/sbatch
study 0 submit many.toml
has 'skipped: 1-9' 'the other half'
has 'submitted 11 trials of studies/halves as jobs 20, 21: 10-20' 'the other half'
echo 0 > fake/most
: > fake/queue
refused 'this cluster does not support array jobs' submit many.toml --dry-run
rm fake/most

# Launchers: mpirun by default, srun if requested, the study's own; a lost node is not the trial's failure.
sed 's/^command = .*/ranks = 2/; s/"base.toml"/"..\/base.toml"/' fails.toml > usual.toml
mkdir other && mv usual.toml other && cp text other
PATH=$fake/bin:$(dirname "$(command -v "$mpirun")"):$PATH
(cd other && bad=0 && study 0 submit usual.toml --retry-failed && study 0 trial studies/usual 1 && exit $bad) ||
  fail 'the default launcher failed'
grep -q '"world_size": *2\|"ranks": *2' other/studies/usual/1/run/result.json other/studies/usual/1/trial.json ||
  fail 'the default launcher did not start two ranks'
printf '#!/bin/sh\necho "srun $*" >> "%s/called"\nexit "${code:-205}"\n' "$PWD" > fake/bin/srun
chmod +x fake/bin/srun
(cd other && bad=0 && study 0 submit usual.toml --dir by-srun --launcher srun && exit $bad) || fail 'srun'
: > fake/codes
nodes=2 serve
grep -q "^srun --mpi=pmix -n 2 $binary train @" called || fail "srun was not called: $(cat called)"
[ "$(grep -c '^23_1 75$' fake/codes)" = 5 ] || fail "a lost node: $(cat fake/codes)"
[ ! -e other/by-srun/usual/1/trial.json ] || fail 'a lost node became a failed trial'
SLURM_JOB_ID=9 SLURM_JOB_NUM_NODES=1 study 1 trial other/by-srun/usual 1 --launcher srun
[ -e other/by-srun/usual/1/trial.json ] || fail 'a launcher that fails on one node is treated as a lost node'

[ -n "${CONCERTINA_SLURM:-}" ] || exit $bad

# A real Slurm: six trials on two nodes, one of them told to stop, and a node that dies.
PATH=${PATH#"$fake/bin:"}
home=$("$CONCERTINA_SLURM" up 2 4 MaxArraySize=10) || { fail 'Slurm did not start'; exit $bad; }
. "$home/env"
trap '"$CONCERTINA_SLURM" down; rm -rf "$scratch"' EXIT
# More trials than an array may have indices, in a study whose name is hard for Slurm's parser.
printf 'name = "many \\"é\\" o%%a'"'"'s"\nbase = "base.toml"\nseeds = [%s]\n[launch]\ncommand = "{program} {args}"\n' \
  "$seeds" > many.toml
many="studies/many \"é\" o%a's"
study 0 submit many.toml --at-once 6
has 'as jobs ' 'two real arrays'
study 0 submit many.toml
has 'nothing left to submit' 'two real arrays, submitted again'
for _ in $(seq 120); do
  study 0 collect "$many" --json
  grep -qF '"done":[1,2,3,4,5,6,7,8,9,10,11,12]' out && break
  sleep 1
done
grep -qF '"done":[1,2,3,4,5,6,7,8,9,10,11,12]' out || fail 'two real arrays: not all are done'
for trial in 1 10 12; do
  grep -qF "trial $trial done" "$many/$trial/slurm.txt" || fail "the output of trial $trial is missing"
done
sed -i 's/^steps = .*/steps = 6000/' long-base.toml
printf 'name = "six"\nbase = "long-base.toml"\nseeds = [1, 2, 3, 4, 5, 6]\n[launch]\nranks = 2\n' > six.toml
study 0 run six.toml --dir undisturbed
study 0 submit six.toml --at-once 4
job=$(sed -n 's/.* as job \([0-9]*\):.*/\1/p' out)
# running_with_checkpoint AWK_CONDITION: prints trial and node of a running trial that has a checkpoint.
running_with_checkpoint() {
  for _ in $(seq 600); do
    while read -r trial on; do
      ls -d studies/six/$trial/run/checkpoints/step-* > /dev/null 2>&1 && echo "$trial $on" && return
    done < <(squeue -h --array -j "$job" -t RUNNING -o '%K %N' | awk "$1")
    sleep 0.1
  done
}
first=$(running_with_checkpoint 1)
[ -n "$first" ] || { fail 'no trial runs and has a checkpoint'; exit $bad; }
scancel --batch --signal USR1 "${job}_${first% *}"
node=$(running_with_checkpoint "\$1 != ${first% *}")
[ -n "$node" ] || { fail 'no second trial runs and has a checkpoint'; exit $bad; }
"$CONCERTINA_SLURM" kill "${node#* }"
until sinfo -hN -n "${node#* }" -o %T | grep -q down; do sleep 0.5; done
"$CONCERTINA_SLURM" up > /dev/null
while [ -n "$(squeue -h -j "$job" 2> /dev/null)" ]; do sleep 1; done
study 0 collect studies/six
for trial in 1 2 3 4 5 6; do
  [ -n "$(hash_in studies/six/$trial)" ] &&
    [ "$(hash_in studies/six/$trial)" = "$(hash_in undisturbed/six/$trial)" ] ||
    fail "the bits of trial $trial differ on a cluster"
done
for trial in "${first% *}" "${node% *}"; do
  [ "$(wc -l < studies/six/$trial/run/launches.jsonl)" -ge 2 ] || fail "trial $trial was not interrupted"
done
exit $bad
