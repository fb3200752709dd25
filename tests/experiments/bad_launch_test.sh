#!/bin/sh
# Bad input under mpirun: exit code 2, exactly one message, and soon.
# usage: bad_launch_test.sh MPIRUN CONCERTINA
set -u
mpirun=$1 binary=$2
bad=0
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# refused TEXT COMMAND...: under 4 ranks.
refused() {
  text=$1; shift
  timeout 60 "$mpirun" -n 4 --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 "$@" \
    >"$scratch/out" 2>"$scratch/err"
  code=$?
  messages=$(grep -c 'concertina: error' "$scratch/err")
  if [ $code != 2 ] || [ "$messages" != 1 ] || ! grep -qF -e "$text" "$scratch/err"; then
    echo "FAIL: $*: exit code $code, $messages messages, wanted '$text'"
    sed 's/^/    /' "$scratch/out" "$scratch/err"
    bad=1
  fi
}

refused 'unknown key batch.globl' "$binary" doctor --set batch.globl=3
refused 'subcommand is required' "$binary"
refused 'missing.toml' "$binary" doctor @missing.toml
# Wrong on rank 2 alone, before MPI has started: rank 0 is silent, so rank 2 has to speak.
refused 'error on rank 2: unknown key batch.globl' sh -c '
  if [ "$OMPI_COMM_WORLD_RANK" = 2 ]; then set -- --set batch.globl=3; else set --; fi
  exec '"'$binary'"' doctor "$@"'

# Help is printed once.
"$mpirun" -n 3 --oversubscribe "$binary" --help >"$scratch/out" 2>&1 || bad=1
[ "$(grep -c '^Usage' "$scratch/out")" = 1 ] || { echo 'FAIL: help not printed once'; bad=1; }
exit $bad
