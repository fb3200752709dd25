#!/bin/sh
# The command line as a user meets it: help on every level, one clear message for bad input.
# usage: cli_test.sh CONCERTINA
set -u
export LC_ALL=C  # bytes of a broken input may be no text in other locales
binary=$(realpath -- "$1")
bad=0
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
unset OMPI_COMM_WORLD_SIZE SLURM_STEP_NUM_TASKS PMI_SIZE

fail() { echo "FAIL: $*"; sed 's/^/    /' out err; bad=1; }

# ok TEXT ARGUMENTS...: exit code 0, TEXT in stdout.
ok() {
  text=$1; shift
  "$binary" "$@" >out 2>err </dev/null; code=$?
  [ $code = 0 ] || fail "concertina $*: exit code $code"
  grep -qF -e "$text" out || fail "concertina $*: no '$text'"
}

# refused TEXT ARGUMENTS...: exit code 2, one message of three parts with TEXT, nothing on stdout.
refused() {
  text=$1; shift
  "$binary" "$@" >out 2>err </dev/null; code=$?
  [ $code = 2 ] || fail "concertina $*: exit code $code, not 2"
  [ ! -s out ] || fail "concertina $*: something on stdout"
  [ "$(grep -c '^concertina: error: ' err)" = 1 ] || fail "concertina $*: not one message"
  grep -q '^  at: .' err || fail "concertina $*: does not say where"
  grep -q '^  try: .' err || fail "concertina $*: does not say what to try"
  grep -qaF -e "$text" err || fail "concertina $*: no '$text'"
}

# json ARGUMENTS...: stdout is one line, one JSON object.
json() {
  "$binary" "$@" >out 2>err </dev/null || fail "concertina $*: exit code $?"
  [ "$(wc -l <out)" = 1 ] || fail "concertina $*: more than one line"
  python3 -c 'import json, sys; assert isinstance(json.load(sys.stdin), dict)' <out ||
    fail "concertina $*: no JSON object"
}

ok 'Usage: concertina' --help
for command in $("$binary" --help | sed '1,/^Subcommands:/d' | awk 'NF { print $1 }'); do
  ok "Usage: concertina $command" "$command" --help
  "$binary" "$command" --help | grep -q -e --help-config && ok '[batch]' "$command" --help-config
  for sub in $("$binary" "$command" --help | sed '1,/^Subcommands:/d' | awk 'NF { print $1 }'); do
    ok "Usage: concertina $command $sub" "$command" "$sub" --help
  done
done
# Both words that have to be there for the loops above to have tested anything.
ok 'Usage: concertina doctor' doctor --help
ok 'Usage: concertina schedule simulate' schedule simulate --help

refused 'subcommand is required'
refused "unknown subcommand 'trian'" trian
refused 'train' trian
refused 'one of: list, show, check, simulate' schedule
refused 'frobnicate' doctor --frobnicate
refused 'required' schedule show

printf '[batch]\nglobl = 3\n' >typo.toml
printf '[batch]\nglobal = "many"\n' >type.toml
printf '[model]\nwidth = 64\nheads = 8\n' >base.toml
refused 'typo.toml:2:1: batch.globl' doctor @typo.toml
refused 'try: batch.global' doctor @typo.toml
refused 'type.toml:2:10: batch.global' doctor @base.toml @type.toml
refused 'base.toml:3:9: model.heads' doctor @base.toml --set model.width=60
refused 'missing.toml' doctor @missing.toml
refused 'try: @base.toml' doctor base.toml
refused 'cannot read' doctor @.
refused '--set nothing' doctor --set nothing
refused 'from 1 to' doctor --set batch.global=0
refused 'one of 1, 2, 4, 8, 16, 32' doctor --set batch.microbatches=5
refused '1f2b' doctor --set parallel.schedule=1f2b
refused 'fp32, bf16' doctor --set numerics.compute=fp8
ok 'mpi ' doctor @base.toml --set model.heads=4 --set run.threads=1
json doctor --json

ok 1f1b schedule list
ok 'bubble (p-1)/m' schedule list --long
refused 'a multiple of 2' schedule check dualpipe --ranks 3
refused 'chunks a rank: 2' schedule show zb-v --chunks 3
json schedule list --json
for schedule in $("$binary" schedule list); do
  ok ok: schedule check "$schedule" --ranks 4 --microbatches 6
  json schedule simulate "$schedule" --json
  "$binary" schedule show "$schedule" --ranks 2 --microbatches 4 >plan.csv
  case $schedule in
    chimera | dualpipe) ;;  # rows alone do not say where one of two pipelines ends
    *) ok 'ok: 2 ranks' schedule check plan.csv ;;
  esac
done
"$binary" schedule show 1f1b --ranks 2 --microbatches 4 >plan.csv
refused 'gpipe' schedule check nothing-like-it
refused 'not in range 1 to 4096' schedule show 1f1b --ranks 0
refused 'At least 3' schedule simulate 1f1b --costs 1,2
: >empty.csv
refused 'empty.csv' schedule check empty.csv
sed 's/0F1/0F0/' plan.csv >twice.csv
refused 'twice.csv' schedule check twice.csv
printf '0F0,\000\033[2J\377\n\n,,\001' >noise.csv
refused 'noise.csv' schedule show noise.csv

refused 'no such directory' checkpoint inspect nowhere
refused 'no checkpoint here' checkpoint verify .
mkdir -p step-00000001
refused 'step-00000001' checkpoint inspect step-00000001

OMPI_COMM_WORLD_SIZE=4 && export OMPI_COMM_WORLD_SIZE
refused 'alone, but the launcher asked for 4 ranks' doctor
unset OMPI_COMM_WORLD_SIZE

exit $bad
