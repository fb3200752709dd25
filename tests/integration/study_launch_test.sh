#!/bin/sh
# Misbehaving launchers of a study, and folders that change during it: each gives one clear message,
# no process is left, and the study continues. The launchers are scripts that train nothing.
# usage: study_launch_test.sh CONCERTINA
set -u
binary=$(realpath -- "$1")
. "$(dirname -- "$0")/training_checks.sh"
tiny_run 40

# study NAME COMMAND: writes a study of one trial, launched by COMMAND.
study() { printf 'base = "base.toml"\n[launch]\nranks = 1\ncommand = "%s"\n' "$2" > "$1.toml"; }
# runs CODE NAME [OPTION...]: runs `study run` of NAME.toml.
runs() {
  code=$1 name=$2; shift 2
  exits "$code" "study run $name $*" "$binary" study run "$name.toml" "$@"
}
# says FILE TEXT
says() { grep -qF -e "$2" "$1" || fail "no '$2' in $1"; }
# finished.sh ARGUMENT...: leaves what a run of 40 steps leaves.
cat > finished.sh << 'END'
for word; do case $word in @*/overrides.toml) trial=${word#@}; trial=${trial%/*} ;; esac; done
mkdir -p "$trial/run"
echo "$*" >> "$trial/arguments"
echo '{"steps": 40, "loss": 2.5}' > "$trial/run/result.json"
echo '{"exit": 0}' > "$trial/run/launches.jsonl"
END

# A trial killed while it wrote its first checkpoint has none, so it starts over.
study partial 'sh finished.sh {args}'
mkdir -p studies/partial/1/run/checkpoints/step-00000005.partial
: > studies/partial/study.lock
echo '{"step": 5}' > studies/partial/1/run/metrics.jsonl
runs 0 partial
says studies/partial/1/arguments --from-scratch
rm -r studies/partial/1/trial.json studies/partial/1/run/result.json studies/partial/1/arguments
mv studies/partial/1/run/checkpoints/step-00000005.partial studies/partial/1/run/checkpoints/step-00000005
runs 0 partial
grep -q -e --from-scratch studies/partial/1/arguments && fail 'a checkpoint is not used'

# A killed launcher is reported, with what helps; an earlier launch is not mentioned.
study killed "sh -c 'echo concertina: error: an old one; exit 3; : {args}'"
runs 1 killed
says err 'an old one (exit code 3)'
study killed "sh -c 'kill -9 \$\$; : {args}'"
runs 1 killed --retry-failed
says err 'killed by signal 9 (exit code 137); try: study run with --retry-failed'
grep -q 'an old one' err && fail 'the error of an earlier launch is shown'
says out 'rerun with --retry-failed'

# A trial fails if it is preempted repeatedly without a new checkpoint.
study stuck "sh -c 'exit 75; : {args}'"
for launch in 1 2; do runs 75 stuck; done
runs 1 stuck
says err 'interrupted 3 times in a row without a later checkpoint'
study stuck "sh -c 'd=studies/stuck/1/run/checkpoints; mkdir -p \$d; mkdir \$d/step-0000000\$(ls \$d | wc -l); exit 75; : {args}'"
runs 75 stuck --retry-failed
for launch in 2 3 4; do runs 75 stuck; done

# A launcher dies of the signal that makes its ranks write a checkpoint: they get time to finish.
study slow "sh -c 'sh slow.sh; : {args}'"
cat > slow.sh << 'END'
trap 'sleep 0.7; echo > saved; exit 75' USR1
echo > ready
for i in $(seq 600); do sleep 0.1; done
END
"$binary" study run slow.toml > out 2> err & process=$!
while [ ! -e ready ] && kill -0 $process 2> /dev/null; do sleep 0.02; done
kill -TERM $process
wait $process
[ $? = 75 ] || fail 'a stopped study did not exit with 75'
[ -e saved ] || fail 'a trial was abandoned or killed while it saved'

# A process that clears its environment is ended with its launcher.
study cleared "sh -c 'env -i sleep 65 & : {args}'"
runs 1 cleared
grep -lsaE '^sleep.65' /proc/[0-9]*/cmdline > /dev/null && fail 'the process that cleared its environment is left'

# A folder that is removed while the study runs is not recreated as a partial study.
study removed "sh -c 'rm -rf studies/removed; : {args}'"
runs 1 removed
one_message "the study's folder was removed or moved" 'a removed folder'
[ -e studies/removed ] && fail 'a removed folder was recreated'

# A directory in place of a file.
study place 'sh finished.sh {args}'
runs 0 place
for file in results.csv 1/trial.json; do
  mv studies/place/$file kept && mkdir studies/place/$file
  runs 2 place
  one_message 'it is a directory' "a directory $file"
  rmdir studies/place/$file && mv kept studies/place/$file
done

# Invalid launcher commands are rejected, and nothing is created.
study wrong 'mpirun -n {rank} {program} {args}'
runs 2 wrong
one_message 'unknown placeholder {rank} in the launcher command' 'a wrong placeholder'
grep -q '{ranks}, {program} and {args}' err || fail 'the known placeholders are not listed'
study wrong ''
runs 2 wrong
one_message 'the command is empty' 'an empty launcher'
[ -e studies/wrong ] && fail 'a rejected study created a folder'
exit $bad
