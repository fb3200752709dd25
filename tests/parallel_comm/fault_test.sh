#!/bin/sh
# Programs that die, hang or are launched incorrectly end immediately with the right code and name the rank.
# usage: fault_test.sh FAULT_PROGRAM FAULT_GTEST MPIRUN [MPIRUN_ARGS...]
set -u
program=$(realpath -- "$1"); gtest=$(realpath -- "$2"); shift 2
. "$(dirname -- "$0")/../shell_checks.sh"

# expect CODE PATTERN COMMAND...: expects exit code CODE ("fail": not 0; "any") and PATTERN in the output.
expect() {
  code=$1; pattern=$2; shift 2
  timeout -k 5 60 "$@" > out 2>&1
  got=$?
  case $code:$got in
    fail:0|*:124) wrong=1 ;;
    fail:*|any:*) wrong=0 ;;
    *) [ "$code" = "$got" ]; wrong=$? ;;
  esac
  grep -Eq "$pattern" out || wrong=1
  [ "$wrong" = 0 ] || fail "$*: exit code $got, wanted $code and '$pattern'"
}

expect 0 '^3 ranks, 3 here' "$@" -n 3 "$program" world
expect 0 '^1 ranks, 1 here' env -u OMPI_COMM_WORLD_SIZE "$program" world
expect 75 '^3 ranks, 3 here' "$@" -n 3 "$program" abort
[ "$(wc -l < out)" = 1 ] || fail 'MPI_Abort prints additional lines'
expect 1 'the culprit throws' "$@" -n 3 "$program" exception
expect 1 'an uncaught exception left the MPI scope' "$@" -n 3 "$program" unwind
expect 137 'signal 9' "$@" -n 3 "$program" kill

# If MPI can report failed ranks, the others learn which one failed. (mpirun 5.0 may return 0 then.)
if "$@" -n 1 "$program" world | grep -q 'ULFM 1'; then
  expect any 'irecv failed: .*dead: rank 2' "$@" --with-ft ulfm -n 3 "$program" kill
fi

# A single process although the launcher was asked for more, and the reverse.
expect 2 'alone, but the launcher was asked for 4' env SLURM_STEP_NUM_TASKS=4 "$program" world
expect 2 'MPI has 2 ranks, but the launcher was asked for 5' \
  "$@" -n 2 env OMPI_COMM_WORLD_SIZE=5 "$program" world

# The harness: the watchdog names rank and test; a failure on any rank is reported and fails the run.
export CONCERTINA_TEST_HANG_SECONDS=2
expect fail 'rank 1: no progress for [0-9.]+ s: inside Fault.HangsOnRankOne' \
  "$@" -n 2 "$gtest" --gtest_filter=Fault.HangsOnRankOne
expect fail 'on rank 1:' "$@" -n 2 "$gtest" --gtest_filter=Fault.FailsOnRankOne
expect 0 'PASSED' "$@" -n 2 "$gtest" --gtest_filter=Fault.Passes
exit $bad
