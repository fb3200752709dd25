#!/usr/bin/env bash
# Sets up a fresh Debian or Ubuntu machine and trains a small GPT on the King James Bible with two
# pipeline stages x two replicas on the CPU. Arguments go to `concertina quickstart`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. experiments/install/setup.sh
install_packages
say 'building into build/: two to five minutes'
build experiments/concertina
text=build/data/bible.txt
if [ ! -s "$text" ]; then
  mkdir -p "$(dirname "$text")"
  # Debian puts the program where root's PATH may not look.
  PATH="$PATH:/usr/games" bible -f Gen1:1-Rev22:21 >"$text.part"
  mv "$text.part" "$text"
fi

mpi_environment
concertina quickstart "data.text=$text" "$@"
echo 'Once per shell, before these: . experiments/env.sh'
