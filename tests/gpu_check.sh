#!/bin/sh
# Runs every check and measurement that needs a GPU, in at most 9 minutes: kernels against the
# oracle, bits at every layout, checkpoints, the sanitizer, rates, and a comparison with PyTorch if
# python3 has it. Works from a bundle (bundle.sh) or a build directory.
# Finally prints a table; the exit code is 0 if every row is "ok" or "skipped".
# usage: gpu_check.sh [--build DIR] [--out DIR] [--seconds N]   (logs go to --out, default gpu-check)
set -u
here=$(cd "$(dirname "$0")" && pwd)
build= out=gpu-check seconds=540
while [ $# -gt 0 ]; do
  case $1 in
    --build) build=$(cd "$2" && pwd) || exit 2; shift 2 ;;
    --out) out=$2; shift 2 ;;
    --seconds) seconds=$2; shift 2 ;;
    *) sed -n '2,7s/^# //p' "$0"; [ "$1" = --help ]; exit ;;
  esac
done
mkdir -p "$out" && out=$(cd "$out" && pwd) || exit 2
begin=$(date +%s)
table=$out/table.txt
: > "$table"

# The programs come from the bundle or from a build directory.
if [ -n "$build" ]; then
  source=$(cd "$here/.." && pwd)
  concertina=$build/experiments/concertina
  core_tests=$build/tests/core training_test=$build/tests/integration/cuda_training_test
  mpirun="mpirun --oversubscribe --bind-to none" peers=$here/peers tests=$here
else
  concertina=$here/bin/concertina core_tests=$here/bin training_test=$here/bin/cuda_training_test
  mpirun="$here/bin/mpirun --oversubscribe --bind-to none" peers=$here/peers tests=$here/tests
fi
[ -x "$concertina" ] || { echo "gpu_check.sh: $concertina does not exist (try --build DIR)" >&2; exit 2; }

left() { echo $((seconds - ($(date +%s) - begin))); }
# row CHECK RESULT VALUE...
row() {
  check=$1 result=$2; shift 2
  printf '| %-44s | %-8s | %s |\n' "$check" "$result" "$*" | tee -a "$table"
}
# limited SECONDS LOG COMMAND...: runs the command within the time left; output goes to LOG.
limited() {
  limit=$1 log=$out/$2; shift 2
  [ "$limit" -le "$(left)" ] || limit=$(left)
  [ "$limit" -gt 5 ] || return 125
  timeout -k 5 "$limit" "$@" > "$log" 2>&1 < /dev/null
}
# verdict CHECK STATUS VALUE...: adds the row of the last command; without values, its last output
# if it failed.
verdict() {
  check=$1 status=$2; shift 2
  case $status in
    0 | 125) ;;
    *) case $* in *[!\ ]*) ;; *) set -- "$(grep . "$log" | tail -n 1 | cut -c 1-160)" ;; esac ;;
  esac
  case $status in
    0) row "$check" ok "$@" ;;
    125) row "$check" skipped 'no time left' ;;
    124 | 137) row "$check" FAILED "timed out; $*" ;;
    *) row "$check" FAILED "exit code $status; $*" ;;
  esac
}
passed_tests() {
  sed -n 's/.*\[  PASSED  \] //p; s/.*\[  FAILED  \] \([^ ,]*\).* (.*/failed: \1/p' "$1" |
    tr '\n' ' '
}

echo "gpu_check: $(date -u +%Y-%m-%dT%H:%MZ), at most $seconds s, logs in $out"
limited 60 doctor.log "$concertina" doctor
status=$?
sed -n '/^gpu/,/^[a-z]/p' "$out/doctor.log" | grep gpu
if ! grep -q '^  gpu' "$out/doctor.log"; then
  row 'a GPU is found' FAILED "$(sed -n 's/^gpu  *//p' "$out/doctor.log")"
  exit 1
fi
verdict 'a GPU is found' $status "$(sed -n 's/^  gpu [0-9]*  *//p' "$out/doctor.log" | head -n 1)"

# NVIDIA's libraries: where the loader finds them, or inside a Python with PyTorch.
known=$({ ldconfig -p || /sbin/ldconfig -p; } 2> /dev/null)
for library in libcublasLt.so.13 libcudnn.so.9 libnccl.so.2; do
  case $known in *"$library"*) continue ;; esac
  [ -n "${files+set}" ] || files=$(timeout 60 find / \( -path /proc -o -path /sys \) -prune -o \
    \( -name 'libcublasLt.so.*' -o -name 'libcudnn.so.*' -o -name 'libnccl.so.*' \) -print \
    2> /dev/null)
  found=$(echo "$files" | grep "/$library\$" | head -n 1)
  [ -z "$found" ] || folders=${folders:+$folders:}${found%/*}
done
if [ -n "${folders:-}" ]; then
  export CONCERTINA_LIBRARY_PATH="$folders"
  [ -z "$build" ] || export LD_LIBRARY_PATH="$CONCERTINA_LIBRARY_PATH:${LD_LIBRARY_PATH:-}"
fi

limited 150 kernels.log "$core_tests/cuda_backend_test"
status=$?
verdict 'kernels against the fp64 oracle' $status "$(passed_tests "$out/kernels.log")"
# After a fault, a process cannot use the GPU, so later results of that process mean nothing.
case $status in
  0 | 125) ;;
  *)
    for kernel in $("$core_tests/cuda_backend_test" --gtest_list_tests |
      sed -n 's|^  MatchesTheOracle/\([a-z_]*\).*|\1|p'); do
      limited 30 "kernel-$kernel.log" "$core_tests/cuda_backend_test" --gtest_filter="*/$kernel"
      verdict "  $kernel by itself" $? "$(passed_tests "$out/kernel-$kernel.log")"
    done ;;
esac
limited 120 training.log "$training_test"
verdict 'bits, loss curve, checkpoints (threads)' $? "$(passed_tests "$out/training.log")"
limited 150 device.log sh "$tests/integration/device_test.sh" "$concertina" "$concertina" $mpirun
status=$?
verdict 'run.device = "cuda" at 1, 2, 4 ranks' $status \
  "$(sed -n 's/^FAILED: //p' "$out/device.log" | head -n 3 | tr '\n' ';')"

limited 90 rates.log "$core_tests/cuda_kernel_bench"
status=$?
verdict 'rates; fused kernels >= 85 % of a copy' $status "$(awk '
  /^copy/ { printf "copy %s GB/s; ", $(NF - 3) } /^GEMM/ { printf "GEMM %s TFLOP/s; ", $(NF - 1) }
  /slow:/ { sub(/^ *slow: /, ""); printf "%s; ", $0 }' "$out/rates.log")"

limited 60 graphs.log "$concertina" bench step --set run.device=cuda --set numerics.compute=bf16
status=$?
verdict 'CUDA graphs: a small step with and without' $status "$(awk '
  /^step_ms/ { printf "%s ms; ", $2 } /^issued_ms/ { printf "without %s ms; ", $2 }
  /^graph_speedup/ { printf "%s x", $2; found = 1 } END { if (!found) printf "no graphs" }' \
  "$out/graphs.log")"

if timeout 60 python3 -c 'import torch; assert torch.cuda.is_available()' 2> /dev/null; then
  for model in 124M 1.5B; do
    limited 200 "peers-$model.log" python3 "$peers/compare.py" --binary "$concertina" \
      --device cuda --compute bf16 --rounds 1 --steps 10 --only "$model"
    status=$?
    figures=$(sed -n 's/^| GPT-2 [^|]*| //p' "$out/peers-$model.log")
    case $figures in *missed*) status=1 ;; esac
    verdict "GPT-2 $model compared with PyTorch, bf16" $status "$figures"
  done
else
  row 'comparison with PyTorch' skipped 'python3 has no torch that sees the GPU'
fi

sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2> /dev/null)
for tool in memcheck racecheck; do
  if [ -z "$sanitizer" ]; then
    row "compute-sanitizer $tool" skipped 'not installed'
    continue
  fi
  # The sanitizer starts programs itself, so put the bundle's loader first.
  limited 60 "$tool.log" "$sanitizer" --tool "$tool" --target-processes all --error-exitcode 9 \
    "$core_tests/cuda_backend_test" --gtest_filter='*OneBackend*-*/linear'  # our kernels alone
  verdict "compute-sanitizer $tool" $? "$(sed -n 's/^=* ERROR SUMMARY: //p' "$out/$tool.log")"
done

echo
echo "| check                                        | result   | figures |"
echo "|----------------------------------------------|----------|---------|"
cat "$table"
! grep -q '| FAILED' "$table"
