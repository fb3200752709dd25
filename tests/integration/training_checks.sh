# Shared by tests of `concertina train`, in addition to tests/shell_checks.sh. A test sources this file
# after setting `binary` and, if it launches ranks, `mpirun` (with its arguments).
. "$(dirname -- "$0")/../shell_checks.sh"

# With FIRST_CASES set, the test ends here: the quick suite runs only the first cases of some slow tests.
end_of_first_cases() { [ -z "${FIRST_CASES-}" ] || exit "$bad"; }

# tiny_run STEPS [LINE]: writes `text` and base.toml, a model that trains in milliseconds; LINE is
# added to its table [run].
tiny_run() {
  awk 'BEGIN { for (i = 0; i < 900; ++i) printf "%d ship under far stars %d\n", i % 7, i * i % 31 }' > text
  cat > base.toml << END
[run]
steps = $1
threads = 1
${2:-}
[model]
layers = 2
width = 32
heads = 2
context = 16
[data]
text = "text"
[batch]
global = 8
microbatches = 4
[generate]
tokens = 0
[eval]
batches = 1
[lr]
warmup = 2
[log]
tensorboard = false
END
}

# expect CODE RANKS NAME [--set ...]: trains a run of base.toml, and expects exit code CODE; RANKS
# 0: without mpirun.
expect() {
  expected=$1 ranks=$2 name=$3; shift 3
  [ "$ranks" = 0 ] && launcher= || launcher="$mpirun -n $ranks"
  exits "$expected" "train $ranks $name $*" \
    $launcher "$binary" train @base.toml --set "run.name=$name" "$@"
}

# launch_until LINES RANKS NAME [--set ...]: launches a run of base.toml, and returns once its metrics.jsonl
# has LINES lines or it has ended. The caller waits for `process`; `launcher` is mpirun.
launch_until() {
  lines=$1 ranks=$2 name=$3; shift 3
  timeout -k 5 60 sh -c 'echo $$ > pid; exec "$@"' launch \
    $mpirun -n "$ranks" "$binary" train @base.toml --set "run.name=$name" "$@" > out 2> err &
  process=$!
  while kill -0 $process 2> /dev/null; do
    [ -f "runs/$name/metrics.jsonl" ] && [ "$(wc -l < "runs/$name/metrics.jsonl")" -ge "$lines" ] &&
      break
    sleep 0.01
  done
  launcher=$(cat pid)
}

# children_of PID: prints its children without procps, which a small machine may lack.
children_of() {
  cat /proc/[0-9]*/status 2> /dev/null | awk -v parent="$1" '$1 == "Pid:" { pid = $2 }
    $1 == "PPid:" && $2 == parent { print pid }'
}
# rank_of PID: prints the rank of a process started by mpirun.
rank_of() { tr '\0' '\n' < "/proc/$1/environ" | sed -n 's/^OMPI_COMM_WORLD_RANK=//p'; }
