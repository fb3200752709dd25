#!/usr/bin/env bash
# Sets up a fresh Debian or Ubuntu machine and trains a small GPT on the King James Bible with two
# pipeline stages x two replicas on the CPU. Arguments go to `concertina train`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. experiments/install/setup.sh
install_packages
say 'building into build/: one to five minutes'
build experiments/concertina

text=build/data/bible.txt
if [ ! -s "$text" ]; then
  mkdir -p "$(dirname "$text")"
  # Debian puts the program where root's PATH may not look.
  PATH="$PATH:/usr/games" bible -f Gen1:1-Rev22:21 >"$text.part"
  mv "$text.part" "$text"
fi

mpi_environment
command=(mpirun -n 4 concertina train @experiments/recipes/quickstart.toml "data.text=$text" "$@")
say "training: ${command[*]}"
echo 'Under a minute on two fast cores, three minutes at 8,000 tokens/s; each line below has the time left.'
"${command[@]}"

say 'To go on, in this directory:'
cat <<'EOF'
. experiments/env.sh      # once per shell: concertina on PATH, and what mpirun wants
concertina report runs/quickstart                                       # where the time went
mpirun -n 2 concertina train runs/quickstart run.steps=1300 parallel.dp=1    # on, at another layout
concertina generate runs/quickstart generate.prompt='In the beginning '
EOF
