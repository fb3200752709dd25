# A Slurm made of files, for tests of array jobs, which source it. `fake_slurm DIR` puts stubs of
# sbatch, squeue and scontrol first on PATH; sbatch only queues, and `serve` runs the queued tasks
# one after another, again if a task requeued itself.
fake_slurm() {
  fake=$1
  export FAKE_SLURM="$fake"
  mkdir -p "$fake/bin"
  : > "$fake/queue" # JOB TASK STATE NODE, as squeue prints them
  cat > "$fake/bin/sbatch" << 'END'
#!/bin/bash
after=
case "${2:-}" in --dependency=afterany:[0-9]*) after=$2; set -- "$1" "$3" ;; esac
[ "$1" = --parsable ] && [ -f "$2" ] || { echo "sbatch: error: bad call: $*" >&2; exit 1; }
[ ! -e "$FAKE_SLURM/refuses" ] || { echo 'sbatch: error: invalid partition specified: none' >&2; exit 1; }
job=$(($(cat "$FAKE_SLURM/last" 2> /dev/null || echo 10) + 1))
echo $job > "$FAKE_SLURM/last"
echo "$job ${after#--dependency=}" >> "$FAKE_SLURM/dependencies"
cp "$2" "$FAKE_SLURM/$job.script"
array=$(sed -n 's/^#SBATCH --array=\([0-9,-]*\).*/\1/p' "$2")
for range in ${array//,/ }; do
  for ((task = ${range%-*}; task <= ${range#*-}; ++task)); do
    echo "$job $task PENDING" >> "$FAKE_SLURM/queue"
  done
done
echo $job
END
  cat > "$fake/bin/squeue" << 'END'
#!/bin/bash
case "$*" in
  *--noheader*--array*--user*"%F %K %T %N") cat "$FAKE_SLURM/queue" ;;
  *) echo "squeue: error: bad call: $*" >&2; exit 1 ;;
esac
END
  cat > "$fake/bin/scontrol" << 'END'
#!/bin/bash
case "$*" in
  'show config') [ ! -e "$FAKE_SLURM/most" ] || echo "MaxArraySize            = $(cat "$FAKE_SLURM/most")" ;;
  'show job '*) echo "JobId=$3 JobState=RUNNING" ;;
  requeue*) echo "$2" >> "$FAKE_SLURM/requeued" ;;
esac
END
  chmod +x "$fake"/bin/*
  PATH=$fake/bin:$PATH
}

# task_state JOB TASK STATE: sets the state in the queue; an empty STATE removes the task.
task_state() {
  awk -v job="$1" -v task="$2" -v state="$3" '$1 != job || $2 != task { print; next }
    state { print job, task, state, "n1" }' "$fake/queue" > "$fake/queue.new"
  mv "$fake/queue.new" "$fake/queue"
}

# serve: runs until the queue is empty. Exit codes of tasks are written to $fake/codes, as JOB_TASK CODE.
serve() {
  while read -r job task state; do
    output=$(sed -n 's/^#SBATCH --output="\(.*\)"$/\1/p' "$fake/$job.script" |
      sed "s/%a/$task/g; s/%1a/$task/g; s/%%/%/g")
    restarts=0
    while :; do
      task_state "$job" "$task" RUNNING
      : > "$fake/requeued"
      env SLURM_JOB_ID="$((job * 100 + task))" SLURM_ARRAY_JOB_ID="$job" SLURM_ARRAY_TASK_ID="$task" \
        SLURM_JOB_NUM_NODES="${nodes:-1}" SLURM_RESTART_COUNT=$restarts SLURM_NTASKS=8 SLURM_PROCID=0 \
        bash -c 'echo $$ > "$FAKE_SLURM/pid"; exec bash "$0"' "$fake/$job.script" \
        >> "$output" 2>&1 < /dev/null
      echo "${job}_$task $?" >> "$fake/codes"
      restarts=$((restarts + 1))
      grep -qx "${job}_$task" "$fake/requeued" && [ $restarts -lt 5 ] || break
    done
    task_state "$job" "$task" ''
  done << END
$(grep PENDING "$fake/queue")
END
}
