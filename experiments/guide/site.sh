#!/usr/bin/env bash
# Builds the documents as a site with search. Neither the build nor the site fetches anything.
# Requires mkdocs with the material theme: apt-get install mkdocs-material, or pip install mkdocs-material.
# If doxygen is installed, api/ on the site documents the C++ interfaces.
# usage: bash experiments/guide/site.sh [--out DIR] [--serve]
# --out: default build/site; --serve: serves it at http://localhost:8000 (search needs a server)
# Exit code 77 (to Meson, a skipped test): mkdocs or the theme is missing.
set -euo pipefail
out=build/site serve=
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
while [ $# -gt 0 ]; do
  case $1 in
    --out) out=$2 && shift 2 ;;
    --serve) serve=yes && shift ;;
    *) echo "unknown option $1; usage: site.sh [--out DIR] [--serve]" >&2 && exit 2 ;;
  esac
done
missing='is missing: apt-get install mkdocs-material, or pip install mkdocs-material'
command -v mkdocs >/dev/null || { echo "mkdocs $missing" >&2 && exit 77; }
mkdocs build --help | grep -q '[^a-z]material' || { echo "the theme material $missing" >&2 && exit 77; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp experiments/guide/mkdocs.yml "$work"
pages=$work/docs

# The documents, and what they link to. mkdocs skips hidden folders, so .github/ becomes github/.
documents=$(sed -n 's/^ *- .*: \(.*\.md\)$/\1/p' experiments/guide/mkdocs.yml | sed 's|^github/|.github/|')
for document in $documents; do
  for file in "$(basename "$document")" $(grep -oE '(\]\(|src=")[^)":#]+' "$document" | sed -E 's/^(\]\(|src=")//'); do
    path=$(realpath -m --relative-to=. "$(dirname "$document")/$file")
    to=$pages/${path/#.github/github}
    if [ -f "$path" ] && [ ! -e "$to" ]; then
      mkdir -p "$(dirname "$to")" && cp "$path" "$to"
    fi
  done
done
find "$pages" -name '*.md' -exec sed -i -E 's#(\]\(|src=")((\.\./)*)\.github/#\1\2github/#g' {} +
echo '.md-typeset code { word-break: normal }' >"$pages/site.css"

mkdir -p "$out"
mkdocs build --quiet --clean --strict --config-file "$work/mkdocs.yml" --site-dir "$(realpath "$out")"
grep -q 'freeze.policy' "$out/search/search_index.json"
if command -v doxygen >/dev/null; then
  { cat experiments/guide/Doxyfile && echo "OUTPUT_DIRECTORY = \"$work\"" && echo 'HTML_OUTPUT = api'; } | doxygen -
  cp -r "$work/api" "$out"
fi
echo "$out/index.html"
[ -z "$serve" ] || python3 -m http.server --directory "$out" 8000
