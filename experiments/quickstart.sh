#!/usr/bin/env bash
# Sets up a fresh Debian or Ubuntu machine and trains a small GPT on the King James Bible with two
# pipeline stages x two replicas on the CPU. Arguments go to `concertina train`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. experiments/setup.sh
install_packages
say 'building into build/'
build experiments/concertina

text=build/data/bible.txt
if [ ! -s "$text" ]; then
  mkdir -p "$(dirname "$text")"
  # Debian puts the program where root's PATH may not look.
  PATH="$PATH:/usr/games" bible -f Gen1:1-Rev22:21 >"$text.part"
  mv "$text.part" "$text"
fi

mpi_environment
command=(mpirun -n 4 --oversubscribe build/experiments/concertina train
  @experiments/quickstart.toml --set "data.text=$text" "$@")
say "training: ${command[*]}"
exec "${command[@]}"
