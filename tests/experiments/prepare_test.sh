#!/bin/bash
# Tests `data prepare` on the command line: the same bytes for any number of ranks and after any kill,
# the same training as on the text itself, and one clear error for bad input.
# usage: prepare_test.sh MPIRUN CONCERTINA
set -u
mpirun=$1 binary=$(realpath -- "$2")
. "$(dirname -- "$0")/../shell_checks.sh"

# ./ranks N ARGUMENTS...: launches N ranks. LIMIT: the maximum size of their files in KiB.
cat > ranks <<END
#!/bin/bash
n=\$1; shift
exec "$mpirun" -n \$n --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 \\
  bash -c '[ -z "\$LIMIT" ] || ulimit -f \$LIMIT; exec "\$0" "\$@"' "$binary" "\$@"
END
chmod +x ranks

# refused TEXT N ARGUMENTS...: expects exit code 2 and one message with TEXT.
refused() {
  local text=$1; shift
  exits 2 "$*" ./ranks "$@"
  one_message "$text" "$*"
}

python3 - <<'PYTHON'
import random
random.seed(1)
words = ["the", "whale", "sea", "captain", "harpoon", "über", "漢字", "don't", "1851", "...", "ship's"]
with open("text.txt", "w", encoding="utf-8") as out:
    for _ in range(30000):
        out.write(" ".join(random.choices(words, k=random.randint(1, 12))) + "\n")
        if random.random() < 0.1:
            out.write("\n")
PYTHON
exits 0 'a tokenizer' "$binary" data train-tokenizer text.txt --vocabulary 400 --out bpe

# The same bytes for any number of ranks, chunks and earlier kills.
prepare=(data prepare data.text=text.txt data.tokenizer=bpe/tokenizer.json --documents blank-line --append-end)
exits 0 'one rank' ./ranks 1 "${prepare[@]}" --out one.tok
for n in 2 3 4; do
  exits 0 "$n ranks" ./ranks $n "${prepare[@]}" --chunk $((n * 7)) --out $n.tok
  cmp one.tok $n.tok || fail "$n ranks: the bytes differ"
done
grep -q 'tokens' out || fail 'no result is printed'
[ -z "$(ls -d ./*.parts 2> /dev/null)" ] || fail 'parts are left'
exits 0 'inspect' "$binary" data inspect one.tok --verify --tokenizer bpe/tokenizer.json --json
python3 - <<'PYTHON' || fail 'the output of inspect'
import json
out = json.load(open("out"))
blank = sum(1 for text in open("text.txt", encoding="utf-8").read().split("\n\n") if text)
assert out["documents"] == blank, (out["documents"], blank)
assert out["verified"] and out["token_bytes"] == 2 and 256 < out["vocabulary"] <= 400, out
text = out["text"].replace("<|endoftext|>", "\n\n")
assert text and open("text.txt", encoding="utf-8").read().startswith(text), text
PYTHON

# Killed at random times within the measured duration, and restarted until it is done.
begin=$(date +%s%N)
./ranks 2 "${prepare[@]}" --chunk 20 --out timed.tok > out 2> err || fail 'the timed start'
took=$((($(date +%s%N) - begin) / 1000000))
RANDOM=5 kills=0
for turn in 1 2 3; do
  rm -rf killed.tok killed.tok.parts
  for try in 1 2 3 4 5 6 7 8 9 10 11 12; do
    n=$((1 + RANDOM % 3))
    # A separate session allows killing mpirun and all ranks at once.
    setsid ./ranks $n "${prepare[@]}" --chunk 20 --out killed.tok > out 2> err < /dev/null &
    leader=$!
    if ((try < 9)); then
      after=$((took / 8 + RANDOM % took))
      sleep "$(printf '%d.%03d' $((after / 1000)) $((after % 1000)))"
      if kill -0 $leader 2> /dev/null; then
        kill -KILL -- $(ps -o pid= -s $leader) 2> /dev/null && kills=$((kills + 1))
      fi
      wait $leader 2> /dev/null
    else
      wait $leader || fail "the last start of turn $turn"
    fi
    [ -e killed.tok ] && break
  done
  cmp one.tok killed.tok || fail "turn $turn: the bytes differ after kills"
  [ ! -e killed.tok.parts ] || { ./ranks 1 "${prepare[@]}" --out killed.tok > /dev/null 2>&1; }
done
((kills > 0)) || fail 'nothing was killed'
echo "killed $kills times"

# Chunks of an earlier start are used if they are of the same text, and only then.
cp text.txt same.txt
exits 1 'a full disk' env LIMIT=300 ./ranks 2 "${prepare[@]}" --chunk 20 --out again.tok
one_message 'File too large' 'a full disk'
[ ! -e again.tok ] || fail 'a partial file has the final name'
exits 0 'after a full disk' ./ranks 3 "${prepare[@]}" --chunk 20 --out again.tok --json
grep -q '"chunks_kept":[1-9]' out || fail 'no chunk was kept'
cmp one.tok again.tok || fail 'the bytes differ after a full disk'
exits 1 'a full disk' env LIMIT=300 ./ranks 1 "${prepare[@]}" --chunk 20 --out other.tok
sed -i 's/whale/seal/' text.txt
exits 0 'another text' ./ranks 2 "${prepare[@]}" --chunk 20 --out other.tok --json
grep -q 'were re-encoded' err || fail 'chunks of another text: no warning'
exits 0 'another text, alone' ./ranks 1 "${prepare[@]}" --out alone.tok
cmp other.tok alone.tok || fail 'chunks of another text were used'
mv same.txt text.txt

# Bytes: training on the file equals training on the text.
exits 0 'bytes' ./ranks 3 data prepare data.text=text.txt --out bytes.tok
small='model.layers=1 model.width=16 model.heads=2 model.context=16 batch.global=4 batch.microbatches=2'
exits 0 'train on text' ./ranks 2 train $small run.steps=4 run.name=text data.text=text.txt
exits 0 'train on tokens' ./ranks 2 train $small run.steps=4 run.name=tokens data.format=tokens data.files=bytes.tok
[ -n "$(hash_of text)" ] && [ "$(hash_of text)" = "$(hash_of tokens)" ] || fail 'the bits differ from those on the text'

# A rank dies: one error, and no file with the final name.
"$mpirun" -n 2 --oversubscribe --bind-to none sh -c '
  if [ "$OMPI_COMM_WORLD_RANK" = 1 ]; then (sleep 0.6; kill -KILL $$) & fi
  exec "$0" "$@"' "$binary" "${prepare[@]}" --chunk 1 --out dead.tok > out 2> err
[ $? -ne 0 ] || [ -e dead.tok ] || fail 'a dead rank was not noticed'
[ -e dead.tok ] || grep -q 'rank 1 has died\|signal 9' err || fail 'the death of a rank is not reported'

# Bad input.
refused 'the file already exists' 2 "${prepare[@]}" --out one.tok
refused 'no file matches' 2 data prepare data.text=missing.txt --out a.tok
refused 'no end-of-text token' 2 data prepare data.text=text.txt --append-end --out a.tok
refused 'cannot be prepared' 1 data prepare data.format=mnist data.files=text.txt --out a.tok
refused 'no text to prepare' 1 data prepare --out a.tok
printf 'good\nbad \377\n' > bad.txt
refused 'invalid UTF-8' 3 data prepare data.text=bad.txt data.tokenizer=bpe/tokenizer.json --out a.tok
refused 'different tokenizer' 1 train $small model.vocab=400 data.format=tokens data.files=bytes.tok data.tokenizer=bpe/tokenizer.json
refused 'data.tokenizer is "bytes"' 1 train $small model.vocab=400 data.format=tokens data.files=one.tok
refused 'not a Concertina token file' 1 data inspect text.txt
head -c 1000 one.tok > cut.tok
refused 'do not match a file of 1000 bytes' 1 data inspect cut.tok
cp one.tok damaged.tok
printf 'x' | dd of=damaged.tok bs=1 seek=500 conv=notrunc 2> /dev/null
refused 'the file is damaged' 1 data inspect damaged.tok --verify
[ ! -e a.tok ] || fail 'bad input created a file'
exits 0 'inspect text' "$binary" data inspect --format text text.txt
grep -q '^training ' out || fail 'no summary of a text'
exit $bad
