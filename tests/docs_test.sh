#!/bin/sh
# Checks that what the documents name exists: config keys, options, keys of machine files and
# environment variables; that tests/first_use.sh runs every command in them, unless it is marked;
# and that every C++ file in them compiles.
# usage: docs_test.sh SOURCE_ROOT CONCERTINA COMPILER [ARGUMENT...]
set -u
top=$(realpath -- "$1") binary=$(realpath -- "$2"); shift 2
. "$top/tests/shell_checks.sh"
guide=$top/experiments/guide
docs=$(documents "$top" | sed "s|^|$top/|" | grep -v -e CHANGELOG -e /papers/ -e /tests/)
[ "$(echo "$docs" | wc -l)" -gt 30 ] || fail 'the documents were not found'

# Every config key has a type, a default and a meaning; every option has a help text.
"$binary" --help-config > help-config || fail 'no --help-config'
awk '/^\[/ { table = substr($1, 2, length($1) - 2) } /^  [a-z0-9_.-]+ = / { print table "." $1 }' \
  help-config > keys
[ "$(wc -l < keys)" -gt 50 ] || fail 'no config keys'
awk '/^  [a-z0-9_.-]+ = / { key = $1; lines = 0 } /^      [^ ]/ { if (++lines == 2) ++whole[key] }
  END { exit length(whole) == 0 }' help-config || fail 'no key has meaning and type'
[ "$(grep -c '^      [^ ]' help-config)" -ge $((2 * $(wc -l < keys))) ] ||
  fail 'a config key lacks a meaning or a type'

# The help of all subcommands.
names() { "$binary" "$@" --help | sed '1,/^Subcommands:/d' | awk '/^  [a-z]/ { print $1 }'; }
"$binary" --help > helps
for command in $(names); do
  "$binary" "$command" --help >> helps
  "$binary" "$command" --help | grep -q '^Subcommands:' || continue
  for sub in $(names "$command"); do "$binary" "$command" "$sub" --help >> helps; done
done
grep -q -e --frozen helps || fail 'helps of subcommands are missing'
# The text begins in column 31, or in the next line if the option itself is longer.
awk '/^  (-[a-z],)?--[a-z-]+/ { bad += open; open = substr($0, 30, 2) !~ /^ [^ ]/; next }
  length($0) > 30 && substr($0, 1, 30) ~ /^ *$/ { open = 0 } END { exit bad + open > 0 }' helps || fail 'an option has no text in its help'

# A word TABLE.KEY in a document must be a key, the table of a registry entry, or a file.
tables=$(cut -d. -f1 keys | sort -u | paste -sd'|')
for document in $docs; do
  case $document in */python/README.md) continue ;; esac  # there, run.metrics is Python
  grep -oE "(^|[^A-Za-z0-9_./-])($tables)\.[a-z_0-9]+" "$document" | sed 's/^[^a-z]//' | sort -u |
    grep -vE '\.(h|h5|cc|id|key|lock|toml|json|txt|md|onnx|onnx_data|safetensors)$' > named
  while read -r key; do
    grep -qE "^$key(\.|$)" keys || fail "${document#"$top"/} names $key, which is not a config key"
  done < named
done
grep -qx 'freeze.units' keys || fail 'the keys were not read'

# An option in a document belongs to the program, to a script of this repository, to mpirun or to Slurm.
find "$top/experiments" "$top/tests/peers" "$top/tests/papers" "$top"/tests/*.sh "$top"/tests/*.py -name "*.sh" -o -name "*.py" | xargs cat "$top"/tests/bench/*.cc "$top"/tests/bench/*.py "$top"/tests/bench/*.sh "$top"/tests/integration/pipetransformer_bits.py > scripts
others='--mpi --nodes --ntasks --time --requeue --no-kill --ntasks-per-node --open-mode --signal --suite --with-ft --mem'
for document in $docs; do
  for option in $(grep -oE '(^|[^A-Za-z0-9_-])--[a-z][a-z-]+' "$document" | sed 's/^[^-]*//' | sort -u); do
    grep -qE -e "(^|[^a-z-])$option([^a-z-]|\$)" helps scripts || case " $others " in
      *" $option "*) ;;
      *) fail "${document#"$top"/} names $option: no such option" ;;
    esac
  done
done

# Generated tables must equal what the program would write; a changed table must be noticed.
exits 0 'tables of the guide' python3 "$top/tests/guide_tables.py" "$binary" --check
mkdir -p copy/experiments copy/io copy/parallel copy/tests
cp -r "$guide" "$top/experiments/README.md" "$top/experiments/predict" "$top/experiments/results" copy/experiments/
cp "$top/io/step_metrics.inc" copy/io/ && cp -r "$top/README.md" "$top/.github" copy/
cp "$top/parallel/README.md" copy/parallel/ && cp "$top/tests/rooms.txt" "$top/tests/guide_tables.py" "$top/tests/results.py" copy/tests/
exits 1 'a tree without sources and history' python3 copy/tests/guide_tables.py "$binary" --check
grep -q 'skipped: the ages' out || fail 'ages of measurements are not said to be skipped'
! grep -q 'table: result' out || fail 'tables of results need the history'
sed -i 's/^| `width` .*/| `width` | `129` | columns | one |/' copy/experiments/guide/keys.md
exits 1 'a table with another default' python3 copy/tests/guide_tables.py "$binary" --check
grep -q 'keys.md: table: keys_of model: differs' out || fail 'a wrong default is not named'
sed -i '0,/"ratio": \[/s//&9/' copy/experiments/results/data/step.json
echo 'It is 4.5 times as fast.' >> copy/README.md
exits 1 'other data, and a number of its own' python3 copy/tests/guide_tables.py "$binary" --check
for fault in 'results.md: table: result step: differs' 'README.md: table: result headline: differs' "README.md: '4.5 times'"; do
  grep -qF "$fault" out || fail "not named: $fault"
done
sed -i 's/"load": null, //' copy/experiments/results/data/step.json
exits 1 'an entry without a load' python3 copy/tests/guide_tables.py "$binary" --check
grep -q 'step.json: entry 1 has the fields' out || fail 'an entry without a load is not named'

# Every page is in mkdocs.yml, no link in a document is broken, and no page is too long.
for page in "$guide"/*.md; do
  echo "$docs" | grep -qx "$page" || fail "mkdocs.yml does not list $(basename "$page")"
  [ "$(wc -l < "$page")" -le 200 ] || [ "$(basename "$page")" = keys.md ] || fail "$(basename "$page") has more than 200 lines"
done
# The files that "Where is ..." names exist.
grep -oE '`(core|parallel|models|io|experiments|tests)/[A-Za-z_/.-]+`' "$guide/inside.md" | tr -d '`' | grep -v NAME > named
[ "$(wc -l < named)" -gt 20 ] || fail 'inside.md names no files'
while read -r file; do [ -e "$top/$file" ] || fail "inside.md names $file, which does not exist"; done < named
python3 - "$top" $(documents "$top") > out 2> err << 'END' || fail 'links'
import pathlib, re, sys
top, bad, seen = pathlib.Path(sys.argv[1]), 0, 0
def anchors(path):
    text = re.sub(r"^```.*?^```", "", path.read_text(), flags=re.S | re.M)
    return {re.sub(r"[^\w\- ]", "", re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower()).strip().replace(" ", "-")
            for heading in re.findall(r"^#+ (.*)", text, re.M)}
for name in sys.argv[2:]:
    page = top / name
    for link in re.findall(r"\]\(([^)\s]+)\)|src=\"([^\"]+)\"", page.read_text()):
        target, _, anchor = "".join(link).partition("#")
        if re.match(r"[a-z]+:", target):
            continue
        seen += 1
        file = (page.parent / target).resolve() if target else page
        if not file.exists() or (anchor and file.suffix == ".md" and anchor not in anchors(file)):
            bad = 1
            print(f"{name}: {''.join(link)} is broken")
sys.exit(bad or seen < 100)
END

# Commands belong in ```bash (run by first_use.sh) or ```sh (not run), not in an indented block.
for document in $docs; do
  grep -nE '^    (concertina|mpirun|bash|meson|ninja|\.) ' "$document" > named &&
    fail "${document#"$top"/} has commands in an indented block: $(cat named)"
done

# A ```cpp block is a whole file and must compile without warnings; ```cpp fragment marks a part of one.
for document in $(ls "$top"/*.md "$top"/*/*.md "$top"/*/*/*.md | grep -v "^$top/build"); do
  awk -v name="$(basename "$(dirname "$document")")" '/^```cpp$/ { file = name "-" ++n ".cc" } /^```$/ { file = "" }
    file != "" && !/^```/ { print > file }' "$document"
done
[ "$(ls ./*.cc | wc -l)" -ge 2 ] || fail 'no C++ blocks were found'
for block in ./*.cc; do
  exits 0 "a C++ block of $block" "$@" -fsyntax-only -I "$top" "$block"
done

# Templates of launches are scripts and YAML files, and each says what was tried.
for template in "$top"/experiments/clusters/*; do
  grep -q '^# Tried: ' "$template" || fail "$(basename "$template") does not say what was tried"
  case $template in
    *.yaml) ! python3 -c 'import yaml' 2> /dev/null ||
      exits 0 "$(basename "$template")" python3 -c 'import sys, yaml; assert yaml.safe_load(open(sys.argv[1]))' "$template" ;;
    *) exits 0 "$(basename "$template")" bash -n "$template" ;;
  esac
done
exit $bad
