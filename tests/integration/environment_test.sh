#!/bin/sh
# Config keys from environment variables: ranked between files and command line, recorded, equal on all ranks.
# usage: environment_test.sh CONCERTINA MPIRUN [MPIRUN_ARGS...]
set -u
binary=$(realpath -- "$1"); shift
mpirun=$*
. "$(dirname -- "$0")/training_checks.sh"
tiny_run 4

export CONCERTINA__RUN__STEPS=3 CONCERTINA__model__vocab=300
exits 0 'a dry run' "$binary" train @base.toml run.name=dry --dry-run
grep -q '^environment *CONCERTINA__RUN__STEPS = 3$' out || fail "the dry run does not show the variable: $(cat out)"
grep -q '^steps *1 to 3,' out || fail 'the variable does not override the file'
expect 0 2 both
expect 0 1 said --set run.steps=2
for pair in both:3 said:2; do
  python3 - "${pair%:*}" "${pair#*:}" << 'END' || fail "$pair"
import json, sys
name, steps = sys.argv[1], int(sys.argv[2])
launch = json.loads(open(f'runs/{name}/launches.jsonl').readline())
wanted = {'CONCERTINA__model__vocab': '300', 'CONCERTINA__RUN__STEPS': '3'}
if steps == 2: del wanted['CONCERTINA__RUN__STEPS']
assert launch['environment'] == wanted, launch['environment']
assert launch['to'] == steps, launch
assert 'vocab = 300\n' in open(f'runs/{name}/config.toml').read()
END
done

# A study's trials use the keys of its file.
printf '[grid]\n"run.seed" = [1, 2]\n' > study.toml
exits 2 'a study' "$binary" study run study.toml
one_message 'cannot set keys of a study' 'a study'
unset CONCERTINA__RUN__STEPS CONCERTINA__model__vocab
expect 0 1 plain
grep -q '"environment"' runs/plain/launches.jsonl && fail 'an environment is recorded although there is none'

# Variables of only some ranks are rejected, even if ranks may differ in the key.
for variable in CONCERTINA__RUN__STEPS CONCERTINA__RUN__THREADS; do
  exits 2 "$variable on a rank" $mpirun -n 3 sh -c '
    if [ "$OMPI_COMM_WORLD_RANK" = 1 ]; then export '$variable'=2; fi
    exec "$0" train @base.toml run.name=some' "$binary"
  one_message "do not agree on $variable: nothing on ranks 0,2, 2 on rank 1" "$variable"
  grep -q "mpirun -x $variable" err || fail "-x is not suggested: $(cat err)"
done
CONCERTINA__RUN__STEPZ=2 exits 2 'no key' $mpirun -n 2 "$binary" train @base.toml run.name=some
one_message "there is no config key 'run.stepz'" 'no key'
grep -q 'at: environment variable CONCERTINA__RUN__STEPZ' err || fail 'the variable is not named'
grep -q 'CONCERTINA__RUN__STEPS (for run.steps)' err || fail 'the nearest variable is not named'
[ ! -e runs/some ] || fail 'a rejected launch left a run'

exit $bad
