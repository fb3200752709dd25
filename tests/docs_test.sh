#!/bin/sh
# What documents say exists: config keys, options, machine-file keys, environment variables; and
# every command in them is one that tests/first_use.sh runs, or is marked as one that it does not.
# usage: docs_test.sh SOURCE_ROOT CONCERTINA
set -u
top=$(realpath -- "$1") binary=$(realpath -- "$2")
. "$top/tests/shell_checks.sh"
docs="$top/README.md $top/experiments/README.md $top/experiments/STUDIES.md $top/experiments/RESULTS.md $top/parallel/README.md
  $top/models/README.md $top/core/README.md $top/io/README.md $top/.github/CONTRIBUTING.md"
guide=$top/experiments/README.md

# Every config key has a type, a default and a meaning; every option has a text.
"$binary" --help-config > help-config || fail 'no --help-config'
awk '/^\[/ { table = substr($1, 2, length($1) - 2) } /^  [a-z0-9_.-]+ = / { print table "." $1 }' \
  help-config > keys
[ "$(wc -l < keys)" -gt 50 ] || fail 'no config keys'
awk '/^  [a-z0-9_.-]+ = / { key = $1; lines = 0 } /^      [^ ]/ { if (++lines == 2) ++whole[key] }
  END { exit length(whole) == 0 }' help-config || fail 'no key has meaning and type'
[ "$(grep -c '^      [^ ]' help-config)" -ge $((2 * $(wc -l < keys))) ] ||
  fail 'a config key has no meaning or no type'

# The helps of all subcommands.
names() { "$binary" "$@" --help | sed '1,/^Subcommands:/d' | awk '/^  [a-z]/ { print $1 }'; }
"$binary" --help > helps
for command in $(names); do
  "$binary" "$command" --help >> helps
  "$binary" "$command" --help | grep -q '^Subcommands:' || continue
  for sub in $(names "$command"); do "$binary" "$command" "$sub" --help >> helps; done
done
grep -q -e --frozen helps || fail 'helps of subcommands are missing'
# Its text begins in column 31, in the next line where the option itself is longer.
awk '/^  (-[a-z],)?--[a-z-]+/ { bad += open; open = substr($0, 30, 2) !~ /^ [^ ]/; next }
  length($0) > 30 && substr($0, 1, 30) ~ /^ *$/ { open = 0 } END { exit bad + open > 0 }' helps || fail 'an option has no text in its help'

# A word TABLE.KEY of a document is a key, the table of an entry of a registry, or a file.
tables=$(cut -d. -f1 keys | sort -u | paste -sd'|')
for document in $docs; do
  grep -oE "(^|[^A-Za-z0-9_./-])($tables)\.[a-z_0-9]+" "$document" | sed 's/^[^a-z]//' | sort -u |
    grep -vE '\.(h|h5|cc|id|lock|toml|json|txt|onnx|onnx_data)$' > named
  while read -r key; do
    grep -qE "^$key(\.|$)" keys || fail "${document#"$top"/} names $key: there is no such config key"
  done < named
done
grep -qx 'freeze.units' keys || fail 'the keys were not read'

# An option of a document is one of the program, of a script here, of the launcher or of Slurm.
find "$top/experiments" "$top"/tests/*.sh -name "*.sh" -o -name "*.py" | xargs cat > scripts
others='--mpi --nodes --ntasks --time --requeue --open-mode --signal --suite'
for document in $docs; do
  for option in $(grep -oE '(^|[^A-Za-z0-9_-])--[a-z][a-z-]+' "$document" | sed 's/^[^-]*//' | sort -u); do
    grep -qE -e "(^|[^a-z-])$option([^a-z-]|\$)" helps scripts || case " $others " in
      *" $option "*) ;;
      *) fail "${document#"$top"/} names $option: no such option" ;;
    esac
  done
done

# The guide lists every key of a machine file and every variable that the program reads.
keys=$(sed -n 's/.*{"\([a-z_]*\)", &[A-Za-z]*::.*/\1/p' "$top/experiments/costs/machine_model.cc")
[ "$(echo "$keys" | wc -w)" -ge 11 ] || fail 'the keys of machine files were not found'
for key in $keys ranks_per_host nics_per_host; do
  grep -q "^|.*\`$key\`" "$guide" || fail "the guide does not list the machine-file key $key"
done
variables=$(cd "$top" && grep -rhoE 'getenv\("[A-Z_]+"\)' core parallel models io experiments |
  grep -oE '[A-Z][A-Z_]+' | sort -u)
[ -n "$variables" ] || fail 'no environment variables were found'
for variable in $variables; do
  grep -q "^|.*$variable" "$guide" || fail "the guide does not list the variable $variable"
done

# Commands stand in ```bash (run by first_use.sh) or ```sh (not run), never in an indented block.
for document in $docs; do
  grep -nE '^    (concertina|mpirun|bash|meson|ninja|\.) ' "$document" > named &&
    fail "${document#"$top"/} has commands in an indented block: $(cat named)"
done
exit $bad
