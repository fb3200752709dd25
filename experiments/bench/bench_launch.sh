# Sourced by benches that run under a launcher.

# launch_bench NAME ARGUMENT...: `concertina bench NAME` on 2 ranks of this host, or as the arguments
# --binary FILE and --launch COMMAND say; the others go to the bench. Does not return.
launch_bench() {
  local name=$1 binary launch="mpirun -n 2 --oversubscribe --bind-to none --mca mpi_yield_when_idle 1" rest=()
  shift
  binary=$(dirname "$0")/../../build/experiments/concertina
  while (($#)); do
    case $1 in
      --binary) binary=${2:?--binary FILE}; shift 2 ;;
      --launch) launch=${2:?--launch COMMAND}; shift 2 ;;
      *) rest+=("$1"); shift ;;
    esac
  done
  [[ -x $binary ]] || { echo "${0##*/}: no binary at $binary: ninja -C build" >&2; exit 2; }
  # shellcheck disable=SC2086  # a command and its options
  exec env OMP_NUM_THREADS=1 $launch "$(realpath "$binary")" bench "$name" "${rest[@]}"
}
