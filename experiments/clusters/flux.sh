#!/bin/bash
# Flux with flux-pmix, in the folder of Concertina: flux batch experiments/clusters/flux.sh @run.toml run.name=long
# Tried: its syntax alone; no Flux was at hand.
# flux: --nodes=2 --nslots=8 --time-limit=4h
. experiments/env.sh
flux run --ntasks=8 -o pmi=pmix concertina doctor --cluster "$@" || exit
exec concertina run --ranks 8 --launcher 'flux run --ntasks={ranks} -o pmi=pmix {program} {args}' -- train "$@"
