# What tests of `concertina train` share, beside tests/shell_checks.sh; sourced by them. They set
# `binary`, and `mpirun` (with its arguments) if they launch ranks.
. "$(dirname -- "$0")/../shell_checks.sh"

# With FIRST_CASES set, the test ends here: the quick suite runs the first cases of some slow tests.
end_of_first_cases() { [ -z "${FIRST_CASES-}" ] || exit "$bad"; }

# tiny_run STEPS [LINE]: writes `text` and base.toml, a model that trains in milliseconds; LINE goes
# into its table [run].
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

# expect CODE RANKS NAME [--set ...]: trains one run of base.toml, which exits with CODE; RANKS 0:
# without a launcher.
expect() {
  expected=$1 ranks=$2 name=$3; shift 3
  [ "$ranks" = 0 ] && launcher= || launcher="$mpirun -n $ranks"
  exits "$expected" "train $ranks $name $*" \
    $launcher "$binary" train @base.toml --set "run.name=$name" "$@"
}

# launch_until LINES RANKS NAME [--set ...]: launches one run of base.toml, and returns once its
# metrics.jsonl has LINES lines or it has ended; `process` is to be waited for, `launcher` is mpirun.
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

# children_of PID: without procps, which a small machine lacks.
children_of() {
  cat /proc/[0-9]*/status 2> /dev/null | awk -v parent="$1" '$1 == "Pid:" { pid = $2 }
    $1 == "PPid:" && $2 == parent { print pid }'
}
# rank_of PID: of a process that mpirun has started.
rank_of() { tr '\0' '\n' < "/proc/$1/environ" | sed -n 's/^OMPI_COMM_WORLD_RANK=//p'; }
