#!/bin/sh
# Bad input under mpirun: exit code 2 and exactly one message, without delay.
# usage: bad_launch_test.sh MPIRUN CONCERTINA
set -u
mpirun=$1 binary=$(realpath -- "$2")
. "$(dirname -- "$0")/../shell_checks.sh"

# refused TEXT COMMAND...: runs with 4 ranks, and expects one error with TEXT.
refused() {
  text=$1; shift
  exits 2 "$*" "$mpirun" -n 4 --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 "$@"
  one_message "$text" "$*"
  [ "$(grep -c 'concertina: error' err)" = 1 ] || fail "$*: the message is repeated"
  last_is_ours "$*"
}

refused 'unknown key batch.globl' "$binary" doctor --set batch.globl=3
refused 'subcommand is required' "$binary"
refused 'missing.toml' "$binary" doctor @missing.toml
# Only rank 2's input is wrong, and MPI has not started: rank 0 is silent, so rank 2 must report it.
refused 'error on rank 2: unknown key batch.globl' sh -c '
  if [ "$OMPI_COMM_WORLD_RANK" = 2 ]; then set -- --set batch.globl=3; else set --; fi
  exec '"'$binary'"' doctor "$@"'

# Help is printed once.
exits 0 'help' "$mpirun" -n 3 --oversubscribe "$binary" --help
[ "$(cat out err | grep -c '^Usage')" = 1 ] || fail 'help not printed once'
exit $bad
