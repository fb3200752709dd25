# Shared by the shell tests, which source it after `set -u`. Creates a scratch directory, removed at
# the end, and changes to it; a failed check sets `bad` to 1, so a test ends with `exit $bad`. A
# command under test writes `out` and `err` in the scratch directory.
bad=0
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
: > out
: > err

# documents ROOT: prints the documents in the order of the guide's site, with paths relative to ROOT.
documents() { sed -n 's/^ *- .*: \(.*\.md\)$/\1/p' "$1/experiments/guide/mkdocs.yml" | sed 's|^github/|.github/|'; }

# fail WHAT...: reports a failure, with the output of the last command.
fail() {
  echo "FAILED: $*"
  sed 's/^/  | /' out err
  bad=1
}

# exits CODE WHAT COMMAND...: runs the command for at most a minute; it must exit with CODE.
exits() {
  wanted_code=$1 what=$2; shift 2
  timeout -k 5 60 "$@" > out 2> err < /dev/null
  got_code=$?
  [ "$got_code" = "$wanted_code" ] || fail "$what: exit code $got_code, wanted $wanted_code"
}

# one_message TEXT WHAT: err must have one error message of three parts that contains TEXT.
one_message() {
  # Rank 0 reports for all ranks; another may repeat it if mpirun loses rank 0's MPI_Abort (seen in 4.1).
  [ "$(grep -a '^concertina: error' err | sed 's/ on rank [0-9]*:/:/' | sort -u | wc -l)" = 1 ] ||
    fail "$2: not one message"
  # A refused schedule is shown before "at:".
  grep -a -A20 '^concertina: error' err > message
  grep -aq '^  at: .' message || fail "$2: the message does not say where"
  grep -aq '^  try: .' message || fail "$2: the message does not say what to try"
  grep -aqF -e "$1" message || fail "$2: wanted '$1'"
}

# last_is_ours WHAT: nothing follows our message in err, such as text from mpirun.
last_is_ours() {
  tail -n 1 err | grep -aq '^  try: ' || fail "$1: the last line is not what to try"
}

# hash_of NAME: state_sha256 of runs/NAME.
hash_of() { sed -n 's/.*"state_sha256": "\([0-9a-f]*\)".*/\1/p' "runs/$1/result.json"; }
