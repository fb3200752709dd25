#!/bin/bash
# Flux with flux-pmix, in Concertina's source folder: flux batch experiments/clusters/flux.sh @run.toml run.name=long
# Tried: syntax check only; Flux was not available.
# flux: --nodes=2 --nslots=8 --time-limit=4h
. experiments/env.sh
flux run --ntasks=8 -o pmi=pmix concertina doctor --cluster "$@" || exit
exec concertina run --ranks 8 --launcher 'flux run --ntasks={ranks} -o pmi=pmix {program} {args}' -- train "$@"
