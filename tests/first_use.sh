#!/usr/bin/env bash
# Follows the documents as a newcomer would: runs each command of README.md and then of the other documents (the lines of
# their ```bash blocks, then their ```python blocks), in the order of the guide's site, in a fresh shell on a tree where only
# the quick start has run, as this user and, if that is root, as another user too. A ```toml block is saved first, under the
# name in its first line. A ```python block that begins with "# needs: pip install MODULE..." runs if these modules are
# installed. Commands of ```sh blocks are tried as far as possible here.
# Usage: tests/first_use.sh [--build DIR] [--readme]
# Without an option, it clones the checkout and runs the real quick start, which takes minutes. With
# --build, it uses the programs in DIR and shortens the quick start's training to a few steps.
# With --readme, only the commands of README.md run, as one user.
set -euo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build='' readme=''
while [ $# -gt 0 ]; do
  case $1 in
    --build) build=$(cd "$2" && pwd) && shift 2 ;;
    --readme) readme=1 && shift ;;
    *) echo "unknown option $1; usage: tests/first_use.sh [--build DIR] [--readme]" >&2 && exit 2 ;;
  esac
done

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
chmod 755 "$scratch"

# commands FILE: prints the commands that a reader would copy.
commands() { awk '/^```bash$/ { on = 1; next } /^```/ { on = 0 } on' "$1"; }

# python_blocks FILE NAME: writes its ```python blocks to NAME.py, and prints the command that runs them.
python_blocks() {
  awk -v file="$2.py" '/^```python$/ { on = 1; next } /^```/ { on = 0 } on { print > file }' "$1"
  [ -f "$2.py" ] || return 0
  local modules
  modules=$(sed -n 's/^# needs: pip install //p' "$2.py")
  [ -z "$modules" ] || printf '! /usr/bin/python3 -c "import %s" || ' "${modules// /, }"
  echo "MPLBACKEND=Agg PYTHONPATH=experiments/python /usr/bin/python3 $2.py"
}

# as_user COMMAND...: runs the command as nobody, with a separate home directory.
as_user() {
  env -i PATH="$PATH" HOME="$scratch/user" TMPDIR="$scratch/user" setpriv --reuid 65534 --regid 65534 --clear-groups "$@"
}

# Prepares a tree as the quick start leaves it: text, program and run.
prepare() {
  local tree=$1
  if [ -z "$build" ]; then
    git clone -q "$top" "$tree"
    (cd "$tree" && bash experiments/quickstart.sh)
    return
  fi
  mkdir -p "$tree/build/experiments" "$tree/build/data"
  cp -r "$top/experiments" "$top/README.md" "$tree"
  for folder in core parallel models io tests .github; do
    mkdir -p "$tree/$folder" && cp "$top/$folder"/*.md "$tree/$folder/"
  done
  cp "$build/experiments/concertina" "$tree/build/experiments/"
  for _ in $(seq 4000); do echo 'In the beginning God created the heaven and the earth.'; done \
    >"$tree/build/data/bible.txt"
  (cd "$tree" && . experiments/env.sh && concertina quickstart data.text=build/data/bible.txt run.steps=4 \
    generate.tokens=0)
}

# save_files FILE: saves its ```toml blocks that begin with "# NAME.toml".
save_files() {
  awk '/^```toml$/ { on = 1; name = ""; next } /^```/ { on = 0 }
    on && name == "" { name = /^# [a-z]+\.toml/ ? $2 : "/dev/null"; sub(/:$/, "", name) }
    on { print > name }' "$1"
}

# follow TREE RUNNER...: runs every command of the documents in one shell, which stops at the first
# failure.
follow() {
  local tree=$1
  shift
  # The quick start has already run; tests and builds run elsewhere.
  local documents least=$((readme ? 2 : 12))
  documents=README.md
  [ -n "$readme" ] || documents=$(sed -n 's/^ *- .*: \(.*\.md\)$/\1/p' "$tree/experiments/guide/mkdocs.yml" | sed 's|^github/|.github/|')
  : >"$scratch/commands"
  for document in $documents; do
    (cd "$tree" && save_files "$document")
    commands "$tree/$document" | grep -vE '^(bash (experiments/quickstart|tests/run)\.sh|meson|ninja)' \
      >>"$scratch/commands" || true
    python_blocks "$tree/$document" "$scratch/${document//\//-}" >>"$scratch/commands"
  done
  [ "$(grep -c concertina "$scratch/commands")" -ge "$least" ] || { echo 'too few commands were found' >&2 && exit 1; }
  find "$scratch" -maxdepth 1 -type f -exec chmod 644 {} +
  (cd "$tree" && "$@" timeout 1200 bash -e -o pipefail -x "$scratch/commands" </dev/null) ||
    { echo "a command of the documents failed (as $(id -un), by '$*')" >&2 && exit 1; }
}

# other_commands FILE: prints the program's commands in its ```sh blocks, one per line, without comments.
other_commands() {
  awk '/^```sh$/ { on = 1; next } /^```/ { on = 0 }
    on { sub(/ +#.*/, ""); sub(/ & .*/, ""); line = line $0; if (sub(/\\$/, "", line)) next
         if (line ~ /^(mpirun |\/usr\/bin\/time -v )?(-n [0-9]+ )?concertina /) print line; line = "" }' "$1"
}

# try_others TREE: commands of ```sh blocks need other files, a cluster or more time. Each must run, or fail
# only because a file is missing; wrong keys, options, values and layouts are reported before that.
try_others() {
  local tried=0 command
  cd "$1" && . experiments/env.sh
  for document in *.md */*.md */*/*.md; do other_commands "$document"; done >"$scratch/others"
  while read -r command; do
    case $command in
      *--dry-run*) ;;
      *'concertina train '* | *'study run '* | *'study submit '*) command="$command --dry-run" ;;
    esac
    if eval "timeout 60 $command" >"$scratch/out" 2>&1 </dev/null ||
      grep -qE '[Nn]o such file|no file matches|is not a folder|not a run directory|is neither @FILE.toml nor|has no study.toml|study.toml is missing|error: data.tokenizer = .* is not a valid value' "$scratch/out"; then
      tried=$((tried + 1))
    else
      cat "$scratch/out" >&2 && echo "a command of a \`\`\`sh block failed: $command" >&2 && exit 1
    fi
  done <"$scratch/others"
  [ "$tried" -ge 20 ] || { echo "only $tried commands of \`\`\`sh blocks were found" >&2 && exit 1; }
}

prepare "$scratch/tree"
if [ "$(id -u)" = 0 ]; then
  mkdir "$scratch/user"
  cp -r "$scratch/tree" "$scratch/user/tree"
  chown -R 65534:65534 "$scratch/user"
  follow "$scratch/user/tree" as_user
fi
[ -n "$readme" ] && [ "$(id -u)" = 0 ] || follow "$scratch/tree" env
[ -n "$readme" ] || (try_others "$scratch/tree")
echo 'every command of the documents works'
