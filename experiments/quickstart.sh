#!/usr/bin/env bash
# Sets up a fresh Debian or Ubuntu machine and trains a small GPT on the King James Bible with two
# pipeline stages x two replicas on the CPU. Passes its arguments to `concertina quickstart`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. experiments/install/setup.sh
install_packages
say 'building in build/, which takes two to five minutes'
build experiments/concertina
text=build/data/bible.txt
if [ ! -s "$text" ]; then
  mkdir -p "$(dirname "$text")"
  # Debian installs `bible` in a folder that root's PATH may lack.
  PATH="$PATH:/usr/games" bible -f Gen1:1-Rev22:21 >"$text.part"
  mv "$text.part" "$text"
fi

mpi_environment
concertina quickstart "data.text=$text" "$@"
echo 'Run this once per shell, before these commands: . experiments/env.sh'
