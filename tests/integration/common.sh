# Shared by tests of whole launches, which source it: . common.sh PROGRAM MPIRUN OPTIONS... Creates
# a scratch folder, removed at the end, and changes to it. The first failure ends the test.
set -euo pipefail
program=$(realpath -- "$1") mpirun=$2 options=("${@:3}")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

# The packages in packages-python.txt belong to the system's Python, which need not be the first on PATH.
if ! python3 -c 'import numpy' 2>/dev/null && /usr/bin/python3 -c 'import numpy' 2>/dev/null; then
  mkdir .python && ln -s /usr/bin/python3 .python/python3
  PATH=$folder/.python:$PATH
fi

die() { # what
  echo "FAILED: $*" >&2
  exit 1
}

# With FIRST_CASES set, the test ends here: the quick suite runs only the first cases of some slow tests.
end_of_first_cases() { [ -z "${FIRST_CASES-}" ] || exit 0; }

# Writes the launch's output to `out`, and prints it if the launch fails.
run() { # ranks, arguments
  local ranks=$1
  shift
  "$mpirun" -n "$ranks" "${options[@]}" "$program" "$@" >out 2>&1 || { cat out; die "$ranks ranks: $*"; }
}

# Runs without mpirun: expects exit code 2 and one error with the text.
refused() { # text, arguments
  local text=$1 code=0
  shift
  "$program" "$@" >out 2>&1 || code=$?
  [ "$code" = 2 ] || die "exit code $code: $* $(cat out)"
  [ "$(grep -c error: out)" = 1 ] || die "not one error: $(cat out)"
  grep -qF -- "$text" out || die "no '$text' in: $(cat out)"
}

# Prints the hash of all weights and states at the end of a run.
hash_of() { # run directory
  local hash
  hash=$(sed -n 's/.*"state_sha256": *"\([0-9a-f]*\)".*/\1/p' "$1/result.json")
  [ -n "$hash" ] || die "no hash in $1"
  echo "$hash"
}
