#!/usr/bin/env bash
# `concertina run` in a Slurm job, with stubs for Slurm's commands: slurm_run_test.sh PROGRAM MPIRUN OPTIONS...
# CONCERTINA_SLURM=PATH adds a real Slurm cluster, as for slurm_test.sh.
here=$(realpath -- "$(dirname -- "$0")")
. "$here/common.sh" "$@"
seq -s ' ' 4000 >text.txt
train=(train data.text="$folder/text.txt" model.layers=2 model.width=64 model.heads=4 model.context=64 batch.global=16
  batch.microbatches=4 run.threads=1 checkpoint.every=20 run.dir="$folder/runs" parallel.pp=2)
step_of() { tail -n 1 "runs/$1/metrics.jsonl" 2>/dev/null | sed -n 's/.*"step":\([0-9]*\),.*/\1/p'; }
reached() { [ "$(step_of "$1")" -ge "$2" ] 2>/dev/null; }
until_true() { # what, seconds, command
  local end=$((SECONDS + $2))
  until "${@:3}"; do
    [ $SECONDS -lt $end ] || { tail -n 40 said* out* 2>/dev/null; die "$1"; }
    sleep 0.1
  done
}

# ---- Stubs ------------------------------------------------------------------------
mkdir bin
cat >bin/scontrol <<'END'
#!/bin/bash
echo "$*" >>"$STUB/calls"
case "$1 $2" in
  'show hostnames') [ "$3" = 'n[1-2]' ] && printf 'n1\nn2\n' ;;
  'show job') echo "JobId=7 JobName=x JobState=$(cat "$STUB/state") Reason=None" ;;
  requeue*) ;;
  *) exit 1 ;;
esac
END
# Runs on this host, whatever hosts are given.
cat >bin/launch <<END
#!/bin/bash
echo "\$1" >>"$folder/launches"
exec $mpirun "\${@:2}"
END
printf '#!/bin/bash\nexit 1\n' >bin/srun
chmod +x bin/*
export STUB=$folder
job=(env PATH="$folder/bin:$PATH" SLURM_JOB_ID=7 SLURM_JOB_NUM_NODES=2 "SLURM_JOB_NODELIST=n[1-2]"
  "SLURM_TASKS_PER_NODE=2(x2)" "$program" run)
# signalled STATE SIGNAL RUN: the calls of scontrol after a signal in a job in this state.
signalled() {
  echo "$1" >state
  : >calls
  : >launches
  "${job[@]}" --ranks 2 --launcher 'launch {hosts} -n {ranks} {program} {args}' -- \
    "${train[@]}" run.steps=100000 run.name="$3" >said 2>&1 &
  local pid=$! code=0
  until_true "no step 20 of $3" 60 reached "$3" 20
  kill "-$2" $pid
  wait $pid || code=$?
  [ $code = 75 ] || { cat said; die "exit code $code after $2"; }
}
signalled RUNNING USR1 warned
grep -qx 'requeue 7' calls || die "a job warned by a signal is not requeued: $(cat calls)"
grep -qx 'n1:2' launches || die "not on the first node: $(cat launches)"
signalled RUNNING TERM preempted
grep -qx 'requeue 7' calls || die "a pre-empted job is not requeued: $(cat calls)"
signalled CANCELLED TERM cancelled
! grep -q '^requeue' calls || die "a cancelled job is requeued"
(
  export PATH="$folder/bin:$PATH" SLURM_JOB_ID=7 SLURM_JOB_NUM_NODES=2 SLURM_JOB_NODELIST='n[1-2]' \
    SLURM_TASKS_PER_NODE='2(x2)'
  refused '5 ranks but only 4 slots' run --ranks 5 -- "${train[@]}" run.name=many
)
SLURM_ARRAY_JOB_ID=6 SLURM_ARRAY_TASK_ID=3 signalled RUNNING USR1 task
grep -qx 'requeue 6_3' calls || die "a task of an array is not requeued: $(cat calls)"
[ -n "${CONCERTINA_SLURM:-}" ] || exit 0

# ---- A real Slurm: three nodes, one of them a spare --------------------------------
home=$("$CONCERTINA_SLURM" up 3 4) || die 'Slurm did not start'
. "$home/env"
trap '"$CONCERTINA_SLURM" down; rm -rf "$folder"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
real_steps=1500
run 2 "${train[@]}" run.name=clean run.steps=$real_steps
# submit RUN SBATCH_OPTIONS: submits as described in the guide.
submit() {
  printf '#!/bin/bash\n#SBATCH --requeue --open-mode=append --output=%s\nexec %s run --ranks 4 %s -- %s\n' \
    "$folder/out-$1" "$program" "${launcher:-}" "${train[*]} parallel.dp=2 run.steps=$real_steps run.name=$1" >"$1.sbatch"
  job_id=$(sbatch --parsable --nodes=3 --ntasks-per-node=2 "${@:2}" "$1.sbatch")
}
state_is() { [ "$(scontrol show job "$job_id" | grep -oE 'JobState=[A-Z]+')" = "JobState=$1" ]; }
node_is() { sinfo -hN -n "$1" -o %T | grep -q "$2"; }
nodes_of() { tail -n 1 "runs/$1/launches.jsonl" | grep -oE '"host":"n[0-9]"' | cut -d'"' -f4 | xargs; }
launches() { [ "$(wc -l <"runs/$1/launches.jsonl")" -ge "$2" ]; }
finished() { # run, least launches, least requeues
  until_true "$1 does not end" 180 state_is COMPLETED
  [ "$(hash_of "runs/$1")" = "$(hash_of runs/clean)" ] || die "the bits of $1 differ"
  launches "$1" "$2" || die "$1 was not interrupted: $(cat "runs/$1/launches.jsonl")"
  local restarts
  restarts=$(scontrol show job "$job_id" | grep -oE 'Restarts=[0-9]+')
  [ "${restarts#*=}" -ge "$3" ] || die "$1: $restarts"
  echo "$1: same bits; $(wc -l <"runs/$1/launches.jsonl") launches, $restarts"
}

# Tests the cluster through srun, and the template.
srun --nodes=3 --ntasks-per-node=2 --mpi=pmix "$program" doctor --cluster --json run.dir="$folder/runs" >doctor ||
  die "the cluster has errors: $(cat doctor)"
grep -q '^{"hosts":3,"ranks":6,' doctor || die "this is not the cluster: $(cat doctor)"
mkdir -p tree/experiments tree/build/experiments
cp "$here/../../experiments/env.sh" tree/experiments/ && ln -s "$program" tree/build/experiments/
job_id=$(cd tree && sbatch --parsable --nodes=2 --ntasks-per-node=2 --output="$folder/out-template" \
  "$here/../../experiments/clusters/slurm.sbatch" "${train[@]:1}" parallel.dp=2 run.steps=$real_steps run.name=template)
finished template 1 0

submit warned-job --signal=B:USR1@60 --time=10
until_true 'no step 100' 60 reached warned-job 100
scancel --batch --signal USR1 "$job_id"
finished warned-job 2 1

launcher="--launcher 'srun --mpi=pmix -n {ranks} {program} {args}'" submit srun-job --nodes=1 --ntasks-per-node=4
until_true 'no step 100' 60 reached srun-job 100
pkill -9 -n -f "^$program train .*run.name=srun-job" || die 'no rank to kill'
until_true 'no launch after a killed rank' 60 launches srun-job 2
scancel --batch --signal USR1 "$job_id"
finished srun-job 3 1

submit requeued-job
until_true 'no step 100' 60 reached requeued-job 100
scontrol requeue "$job_id"
finished requeued-job 2 1

# A node with ranks dies: the job continues with the spare node.
submit kept-job --no-kill
until_true 'no step 100' 60 reached kept-job 100
"$CONCERTINA_SLURM" kill n2
until_true 'the spare node is not used' 60 launches kept-job 2
[ "$(nodes_of kept-job)" = 'n1 n3' ] || die "on $(nodes_of kept-job)"
finished kept-job 2 0
node_is n2 down || until_true 'n2 is not down' 60 node_is n2 down
"$CONCERTINA_SLURM" up >/dev/null

# The node of the batch script dies: Slurm restarts the job.
until_true 'n2 is not back' 60 node_is n2 idle
submit lost-job
until_true 'no step 100' 60 reached lost-job 100
"$CONCERTINA_SLURM" kill n1
until_true 'n1 is not down' 60 node_is n1 down
"$CONCERTINA_SLURM" up >/dev/null
finished lost-job 2 1

# A drained node: its tasks end, and the next start uses another node.
submit drained-job --nodes=2
until_true 'no step 100' 60 reached drained-job 100
scontrol update NodeName=n1 State=DRAIN Reason=test
scancel --batch --signal USR1 "$job_id"
finished drained-job 2 1
[ "$(nodes_of drained-job)" = 'n2 n3' ] || die "on $(nodes_of drained-job)"
scontrol update NodeName=n1 State=RESUME

# A job with higher priority takes the nodes.
submit pushed-job --partition=main --signal=B:USR1@60
until_true 'no step 100' 60 reached pushed-job 100
sbatch --partition=urgent --nodes=3 --exclusive --output=/dev/null --wrap 'sleep 2' >/dev/null
finished pushed-job 2 1

# A job that the user cancels stays cancelled, with a complete checkpoint.
submit cancelled-job
until_true 'no step 100' 60 reached cancelled-job 100
scancel "$job_id"
until_true 'a cancelled job continues' 60 state_is CANCELLED
sleep 8
state_is CANCELLED || die "a cancelled job is restarted: $(scontrol show job "$job_id")"
"$program" checkpoint verify "$(ls -d runs/cancelled-job/checkpoints/step-* | tail -n 1)" || die 'a cancelled job left a bad checkpoint'
