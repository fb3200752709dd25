#!/usr/bin/env bash
# Sets up a fresh Debian or Ubuntu machine and trains a small GPT on the King James Bible with two
# pipeline stages x two replicas on the CPU. Arguments go to `concertina train`.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
. experiments/setup.sh
install_packages
build experiments/concertina
mpi_environment

text=build/data/bible.txt
if [ ! -s "$text" ]; then
  mkdir -p "$(dirname "$text")"
  PATH="$PATH:/usr/games" bible -f Gen1:1-Rev22:21 > "$text.part"
  mv "$text.part" "$text"
fi
exec mpirun -n 4 --oversubscribe build/experiments/concertina train \
  @experiments/quickstart.toml --set data.text="$text" "$@"
