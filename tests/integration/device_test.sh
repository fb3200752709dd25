#!/bin/sh
# Tests `run.device = "cuda"` on the command line. GPU_PROGRAM finds a GPU: it is CONCERTINA itself if
# there is one, else the program with CUDA's emulation instead of CUDA.
# usage: device_test.sh CONCERTINA GPU_PROGRAM MPIRUN [MPIRUN_ARGS...]
set -u
# A bundle's programs are links to one launcher, which uses their names.
concertina=$(realpath -s -- "$1") gpu_program=$(realpath -s -- "$2"); shift 2
mpirun=$*
. "$(dirname -- "$0")/training_checks.sh"

awk 'BEGIN { for (i = 0; i < 400; ++i) printf "one ship under far stars %d\n", i % 7 }' > text
cat > base.toml << 'END'
[model]
layers = 2
width = 32
heads = 2
context = 16
[data]
text = "text"
validation = 0.01
[batch]
global = 4
microbatches = 2
[run]
steps = 3
threads = 1
device = "cuda"
[generate]
tokens = 4
END

# train PROGRAM RANKS NAME [--set ...]
train() {
  binary=$1; shift
  expect "${code:-0}" "$@"
}
# refused TEXT PROGRAM RANKS NAME [--set ...]
refused() {
  text=$1; shift
  code=2 train "$@"
  one_message "$text" "$*"
  ls "runs/$3/checkpoints" | grep -q '^step-' && fail "$3 was rejected, but has a checkpoint"
}
same_hash() { [ "$(hash_of "$1")" = "$(hash_of "$2")" ] || fail "the bits of $1 and $2 differ"; }

# Several ranks share the GPU, in any precision, with the same bits.
for compute in fp32 tf32 bf16 fp8; do
  set_compute="--set numerics.compute=$compute"
  train "$gpu_program" 1 "one-$compute" $set_compute
  grep -q 'cuda: GPU 0' err || fail "the log does not name the GPU"
  train "$gpu_program" 2 "two-$compute" $set_compute --set parallel.pp=2
  same_hash "one-$compute" "two-$compute"
done
grep -q '[1-9][0-9]* of [0-9]* unit passes were launched as CUDA graphs' err ||
  fail "the log does not count passes"
train "$gpu_program" 2 plain --set numerics.compute=fp8 --set run.graphs=false
grep -q ' 0 of [0-9]* unit passes were launched as CUDA graphs' err || fail "graphs are not disabled"
same_hash two-fp8 plain
train "$gpu_program" 4 four --set parallel.pp=2 --set parallel.dp=2 --set numerics.leaves=2
train "$gpu_program" 1 whole --set numerics.leaves=2
same_hash four whole

# A run continues on the other device, and back.
train "$gpu_program" 1 moves --set run.steps=2
train "$concertina" 1 moves --set run.steps=4 --set run.device=cpu
train "$gpu_program" 2 moves --set run.steps=6
grep -q 'trained 6 steps' out || fail "the run did not continue"
for command in eval generate; do
  exits 0 "$command" "$concertina" $command runs/moves --set run.device=cpu
done
# Both devices write the same greedy text.
greedy=(generate runs/moves --set generate.temperature=0 --set generate.tokens=20 --json)
exits 0 generate "$concertina" "${greedy[@]}" --set run.device=cpu
cp out greedy
exits 0 generate "$gpu_program" "${greedy[@]}"
cmp -s greedy out || fail "the devices write different texts: $(cat greedy out)"

# A plan predicts the memory of a run, on a machine with or without a GPU.
peak() { sed -n 's/.*"peak_bytes": *\([0-9]*\).*/\1/p' "$1"; }
for program in "$gpu_program" "$concertina"; do
  for compute in fp32 fp8; do
    exits 0 "plan" "$program" plan @base.toml --rate 100 --json --set numerics.compute=$compute
    [ "$(peak out)" = "$(peak runs/one-$compute/result.json)" ] ||
      fail "the plan predicts the wrong memory for $compute"
  done
done

# A model that exceeds the device's free memory is rejected with each rank's share and what would
# fit. On a real GPU, this uses 20 TB of weights.
large="--set model.width=65536 --set model.heads=512 --set model.layers=96"
"$gpu_program" doctor | grep -q 'gpu 0 .*emulated' && large=
CONCERTINA_EMULATED_BYTES=$((256 * 1048576 + $(peak runs/one-fp32/result.json) - 1))
export CONCERTINA_EMULATED_BYTES
refused 'GiB is free' "$gpu_program" 1 large $large
refused 'rank 0 needs' "$gpu_program" 1 large $large
if [ -z "$large" ]; then  # CUDA's own memory counts for each rank
  CONCERTINA_EMULATED_BYTES=$((400 * 1048576))
  refused 'GiB is free' "$gpu_program" 2 shared --set parallel.pp=2
  train "$gpu_program" 1 shared
  CONCERTINA_EMULATED_BYTES=$((256 * 1048576 + $(peak runs/one-fp32/result.json) - 1))
fi
exits 0 'plan of too much' "$gpu_program" plan @base.toml --rate 100 $large
grep -q 'the largest rank needs' out || fail "the plan does not warn"
unset CONCERTINA_EMULATED_BYTES

# A machine without a GPU, and an unknown precision.
if "$concertina" doctor | grep -q '^gpu  *none'; then
  refused 'there is no GPU' "$concertina" 1 none
  refused 'there is no GPU' "$concertina" 2 none
  exits 2 'plan without a rate' "$concertina" plan @base.toml
  one_message 'there is no GPU' plan
  exits 2 'bench without a GPU' "$concertina" bench step --set run.device=cuda
  one_message 'there is no GPU' bench
fi
refused 'numerics.compute' "$gpu_program" 1 none --set numerics.compute=int4
exits 0 'doctor' "$gpu_program" doctor
grep -q '^  gpu 0 ' out || fail "doctor does not list the GPU"
exits 0 'bench' "$gpu_program" bench step --set run.device=cuda --set model.layers=1 \
  --set model.width=32 --set model.heads=2 --set model.context=16 --set batch.global=4 \
  --steps 1 --warmup 1
grep -q '^graph_speedup' out || fail "bench does not report the gain of graphs"
exit $bad
