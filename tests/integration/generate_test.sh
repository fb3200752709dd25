#!/usr/bin/env bash
# `generate`: generate_test.sh PROGRAM MPIRUN OPTIONS... Prompts, seeds and ends of texts; the same text at any layout and with
# any prompts beside it.
. "$(dirname -- "$0")/common.sh" "$@"

awk 'BEGIN { srand(1); for (i = 0; i < 4000; ++i) printf "%s ", substr("the cat sat on a mat and saw it", 1 + 4 * int(8 * rand()), 3); print "" }' >text
run 2 train data.text=text run.dir=runs run.name=one run.steps=12 model.layers=2 model.width=32 model.heads=4 model.context=48 \
  model.family=llama batch.global=8 batch.microbatches=4 numerics.leaves=4 run.threads=1 eval.batches=1 generate.tokens=4
from=(generate runs/one run.threads=1 generate.tokens=30)

texts() { # of the JSON lines in `out`
  sed -n 's/.*"text":\("[^"\\]*\(\\.[^"\\]*\)*"\).*/\1/p' out
}

# The same text at any layout; another one with another seed.
run 1 "${from[@]}" generate.prompt='the cat' --json
texts >alone
[ "$(wc -c <alone)" -gt 25 ] || die "no text: $(cat out)"
grep -q '"tokens":30,"end":"length"}' out || die "no end: $(cat out)"
for layout in '2 parallel.pp=2' '3 parallel.pp=3' '2 parallel.dp=2'; do
  read -r ranks key <<<"$layout"
  run "$ranks" "${from[@]}" "$key" generate.prompt='the cat' --json
  texts >other
  cmp -s alone other || die "another text: $layout: $(cat alone other)"
done
run 1 "${from[@]}" generate.prompt='the cat' run.seed=5 --json
texts >other
! cmp -s alone other || die "the seed has no effect"

# Prompts of a file: each as alone, in any number at once.
printf 'the cat\n\na\nand saw it sat on a mat the cat sat on\n' >prompts.txt
printf '{"prompt": "a", "seed": 2}\n{"seed": 1, "prompt": "the cat"}\n' >prompts.jsonl
run 1 "${from[@]}" --prompts prompts.txt --json
texts >three
[ "$(head -1 three)" = "$(cat alone)" ] && [ "$(wc -l <three)" = 3 ] || die "not as alone: $(cat three alone)"
for batch in 1 2; do
  run 2 "${from[@]}" --prompts prompts.txt --json generate.batch=$batch
  texts >other
  cmp -s three other || die "another text with $batch at once"
done
run 1 "${from[@]}" --prompts prompts.jsonl --json
[ "$(texts | tail -1)" = "$(cat alone)" ] && [ "$(texts | head -1)" = "$(sed -n 2p three)" ] || die "other seeds: $(cat out)"
run 1 "${from[@]}" --prompts prompts.txt
grep -q '^the cat' out || die "no prompt before the text: $(cat out)"

# A greedy text has the largest log-probabilities; a stop string ends it.
run 1 "${from[@]}" generate.prompt='the cat' generate.temperature=0 --json --logprobs
[ "$(grep -o '"log_probabilities":\[[^]]*' out | tr -cd , | wc -c)" = 29 ] || die "not 30 log-probabilities: $(cat out)"
texts >greedy
run 1 "${from[@]}" generate.prompt='the cat' generate.top_k=1 --json
texts >other
cmp -s greedy other || die "top_k = 1 is not greedy"
stop=$(cut -c5-7 greedy)
run 1 "${from[@]}" generate.prompt='the cat' generate.temperature=0 "generate.stop=[\"none\", \"$stop\"]" --json
grep -q '"end":"stop"' out || die "no stop at '$stop': $(cat out)"
[[ $(cat greedy) == "$(texts | sed 's/"$//')$stop"* ]] || die "the text does not end before '$stop': $(cat out)"
# Texts may be longer than the context.
run 1 "${from[@]}" generate.tokens=100 generate.prompt='the cat' --json
grep -q '"tokens":100' out || die "not 100 tokens: $(cat out)"

# Files of other programs: a byte order mark, carriage returns, blank lines.
printf '\357\273\277the cat\r\n\r\na\r\n' >windows.txt
run 1 "${from[@]}" --prompts windows.txt --json
[ "$(texts)" = "$(head -2 three)" ] || die "another text: $(cat out)"
printf '{"prompt": "the cat", "seed": 1}\r\n  \r\n' >windows.JSONL
run 1 "${from[@]}" --prompts windows.JSONL --json
[ "$(texts)" = "$(cat alone)" ] || die "another text: $(cat out)"

# Bad input.
printf '{"prompt": ""}\n' >none.jsonl
printf '{"prompt": "a", "seed": 18446744073709551615}\n' >seed.jsonl
refused 'none.jsonl:1' generate runs/one --prompts none.jsonl
refused 'unexpected "seed": 18446744073709551615' generate runs/one --prompts seed.jsonl
refused 'a stop string is empty' generate runs/one 'generate.stop=[""]'
printf '{"prompt": "a", "sed": 2}\n' >bad.jsonl
printf 'a\n\377\n' >bad.txt
: >empty.txt
refused 'bad.jsonl:1' generate runs/one --prompts bad.jsonl
refused 'unexpected "sed": 2' generate runs/one --prompts bad.jsonl
refused 'bad.txt:2' generate runs/one --prompts bad.txt
refused 'no prompts' generate runs/one --prompts empty.txt
refused 'missing.txt' generate runs/one --prompts missing.txt
refused -- '--logprobs' generate runs/one --logprobs
refused 'top_p' generate runs/one generate.top_p=0
refused 'the prompt is empty' generate runs/one generate.prompt=
echo "1 passed, 0 failed"
