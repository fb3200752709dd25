#!/bin/bash
# Tests `data inspect --quality` and `data clean` on the command line.
# usage: clean_test.sh CONCERTINA
set -u
binary=$(realpath -- "$1")
. "$(dirname -- "$0")/../shell_checks.sh"

refused() { # TEXT ARGUMENTS...
  local text=$1; shift
  exits 2 "$*" "$binary" "$@"
  one_message "$text" "$*"
}
holds() { # WHAT PYTHON: an expression of r, the JSON in out
  python3 -c "import json, sys; r = json.load(open('out')); sys.exit(not ($2))" || fail "$1: not $2"
}

printf 'sentence\tlabel\r\nA good film\t1\r\na  GOOD film\t1\nbad film\t0\nbad film\t1\n\t1\nx\xff\t0\nonly one column\nheld out row\t0\nquite another sentence about a film\t1\nquite another sentence about a films\t0\n"quoted"\t1' >dirty.tsv
printf 'sentence\tlabel\nHeld out  row\t0\nfine\t1\n' >held.tsv
look=(--format tsv --set data.validation_files=held.tsv)

exits 0 quality "$binary" data inspect --quality dirty.tsv "${look[@]}" --json --report page.html
holds counts '{f: v and v["rows"] for f, v in r["faults"].items()} == dict(broken=1, undecodable=1, empty=1, conflict=2, overlap=1, duplicate=2, near=1, cut=None)'
holds places 'r["faults"]["near"]["first"][0]["at"] == "dirty.tsv:11" and r["faults"]["overlap"]["first"][0]["other"] == "held.tsv:2"'
grep -q '<html' page.html || fail 'no page'
! grep -qE '(src|href)="(http|/)' page.html || fail 'the page links to another site'
exits 0 'quality as text' "$binary" data inspect --quality dirty.tsv "${look[@]}" --context 16
grep -q '^duplicate  *2  *15.4%  has the text of an earlier row$' out || fail 'no line of duplicates'
grep -q '^cut  *[1-9]' out || fail 'no row is too long'

exits 0 clean "$binary" data clean dirty.tsv "${look[@]}" --out clean.tsv --json
holds 'what was dropped' '(r["kept"], r["dropped"], r["because"]) == (4, 7, dict(broken=1, undecodable=1, empty=1, conflict=2, overlap=1, duplicate=1))'
printf 'sentence\tlabel\r\nA good film\t1\r\nquite another sentence about a film\t1\nquite another sentence about a films\t0\n"quoted"\t1\n' |
  cmp - clean.tsv || fail 'the wrong rows are kept, or bytes differ'
python3 - <<'EOF' || fail 'the list of dropped rows is wrong'
import json
rows = [json.loads(line) for line in open("clean.tsv.dropped.jsonl", encoding="utf-8")]
assert [(row["line"], row["fault"]) for row in rows] == [
    (3, "duplicate"), (4, "conflict"), (5, "conflict"), (6, "empty"), (7, "undecodable"), (8, "broken"), (9, "overlap")], rows
assert rows[0]["why"] == "the same text as dirty.tsv:2" and rows[0]["row"] == "a  GOOD film\t1", rows[0]
EOF
exits 0 'a clean table' "$binary" data inspect --quality clean.tsv "${look[@]}" --json
holds 'it is sound' 'all(r["faults"][f]["rows"] == 0 for f in ("broken", "undecodable", "empty", "conflict", "overlap", "duplicate"))'

cp clean.tsv before.tsv
refused 'the file already exists' data clean dirty.tsv "${look[@]}" --out clean.tsv
cmp -s before.tsv clean.tsv || fail 'a file was replaced'
refused 'the file already exists' data clean dirty.tsv "${look[@]}" --out other.tsv --dropped clean.tsv
[ ! -e other.tsv ] || fail 'a partial file was written'
refused 'several files cannot be written to one' data clean dirty.tsv clean.tsv "${look[@]}" --out other.tsv
refused 'no rows are left' data clean held.tsv --format tsv --set data.validation_files=held.tsv --out other.tsv
refused 'is not a table format' data inspect --quality dirty.tsv --format text
refused 'has no effect without --quality' data inspect dirty.tsv --format tsv --near 0.5

# Quotes, line breaks in cells and further columns are preserved; texts without labels have no conflicts.
printf '\xef\xbb\xbfid,text\r\n1,"two\nlines, ""so"""\r\n2,"two  LINES, ""SO"""\r\n3,"open\r\n' >dirty.csv
exits 0 'clean csv' "$binary" data clean dirty.csv --format csv --out clean.csv
printf 'id,text\r\n1,"two\nlines, ""so"""\r\n' | cmp - clean.csv || fail 'the csv differs'
printf '{"text": "a", "more": [1]}\n\n{"text": "A"}\n{"text": ""}\n' >dirty.jsonl
exits 0 'clean jsonl' "$binary" data clean dirty.jsonl --format jsonl --out clean.jsonl
printf '{"text": "a", "more": [1]}\n' | cmp - clean.jsonl || fail 'the JSON lines differ'
exit $bad
