#!/bin/bash
# PBS Pro or OpenPBS, in Concertina's source folder: qsub -v ARGS="@run.toml run.name=long" experiments/clusters/pbs.sh
# Tried: on one machine with a synthetic node file; PBS was not available.
#PBS -l select=2:ncpus=4:mpiprocs=4 -l walltime=04:00:00
cd "$PBS_O_WORKDIR" && . experiments/env.sh || exit
hosts=$(sort "$PBS_NODEFILE" | uniq -c | awk '{ print $2 ":" $1 }' | paste -sd,)
mpirun -H "$hosts" concertina doctor --cluster $ARGS || exit
exec concertina run --hosts "$hosts" --ranks "$(wc -l <"$PBS_NODEFILE")" -- train $ARGS
