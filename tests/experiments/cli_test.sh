#!/bin/sh
# Tests the command line: help on every level, and one clear message for bad input.
# usage: cli_test.sh CONCERTINA
set -u
export LC_ALL=C  # bytes of broken input may be invalid text in other locales
binary=$(realpath -- "$1")
. "$(dirname -- "$0")/../shell_checks.sh"
unset OMPI_COMM_WORLD_SIZE SLURM_STEP_NUM_TASKS PMI_SIZE

# ok TEXT ARGUMENTS...: expects exit code 0 and TEXT in stdout.
ok() {
  text=$1; shift
  exits 0 "concertina $*" "$binary" "$@"
  grep -qF -e "$text" out || fail "concertina $*: no '$text'"
}

# refused TEXT ARGUMENTS...: expects exit code 2, one message of three parts with TEXT, and empty stdout.
refused() {
  text=$1; shift
  exits 2 "concertina $*" "$binary" "$@"
  [ ! -s out ] || fail "concertina $*: something on stdout"
  one_message "$text" "concertina $*"
}

# json ARGUMENTS...: expects stdout to be one line with one JSON object.
json() {
  exits 0 "concertina $*" "$binary" "$@"
  [ "$(wc -l <out)" = 1 ] || fail "concertina $*: more than one line"
  python3 -c 'import json, sys; assert isinstance(json.load(sys.stdin), dict)' <out ||
    fail "concertina $*: not a JSON object"
}

ok 'Usage: concertina' --help
for command in $("$binary" --help | sed '1,/^Subcommands:/d' | awk 'NF { print $1 }'); do
  ok "Usage: concertina $command" "$command" --help
  "$binary" "$command" --help | grep -q -e --help-config && ok '[batch]' "$command" --help-config
  for sub in $("$binary" "$command" --help | sed '1,/^Subcommands:/d' | awk '/^  [a-z]/ { print $1 }'); do
    ok "Usage: concertina $command $sub" "$command" "$sub" --help
  done
done
# If one of these failed, the loops above would have tested nothing.
ok 'Usage: concertina doctor' doctor --help
ok 'Usage: concertina schedule simulate' schedule simulate --help

# Help texts never split a word, whatever the terminal's width.
for columns in 40 100; do
  COLUMNS= script -qec "stty cols $columns; '$binary' --help" /dev/null < /dev/null | tr -d '\r' > help
  [ "$(wc -L < help)" -le $columns ] || fail "help is wider than $columns columns"
  "$binary" --help | tr -s ' \n' '\n' > whole
  tr -s ' \n' '\n' < help | cmp -s - whole || fail "the words of the help differ in $columns columns"
done
ok 'layers can be frozen' --help

# A mistyped run or run name.
mkdir -p runs/bible && : > runs/bible/config.toml
refused 'try: runs/bible' eval runs/bibel
refused 'try: runs/bible' eval bibles
refused 'one of: runs/bible' eval nothing
# A link to itself is an input error, wherever it occurs.
mkdir runs/looped && : > runs/looped/config.toml && ln -s checkpoints runs/looped/checkpoints && ln -s self.toml self.toml
refused 'at: self.toml' study run self.toml
refused 'at: runs/looped/checkpoints' generate runs/looped
rm -r runs self.toml

# A machine without mpirun, a home directory or Slurm's programs: our own messages.
mkdir none
env PATH="$PWD/none" "$binary" doctor > out 2> err || fail 'doctor without mpirun'
grep -q 'warning: mpirun is not on PATH' out && [ ! -s err ] || fail 'doctor without mpirun'
env -u HOME "$binary" doctor > out 2> err || fail 'doctor without HOME'
grep -q 'warning: HOME is not set' out && [ ! -s err ] || fail 'doctor without HOME'
env SLURM_JOB_ID=7 SLURM_NODELIST=n1 "$binary" doctor > out 2> err && [ ! -s err ] || fail "doctor in a Slurm job"
for given in '' /usr/bin/true; do
  [ -z "$given" ] || ln -sf "$given" none/scontrol
  SLURM_JOB_ID=7 SLURM_JOB_NUM_NODES=2 SLURM_JOB_NODELIST='n[1-2]' PATH="$PWD/none" \
    "$binary" run --ranks 2 -- train data.text=none > out 2> err && fail 'a Slurm job without the programs of Slurm'
  one_message "but ${given:+srun}" 'a job of Slurm without its programs'
done

# In a source build: uses the text that quickstart.sh creates, or the guide.
mkdir -p build/experiments build/data
cp "$binary" build/experiments/concertina
exits 2 'quickstart without a text' env PATH="$PWD/none" build/experiments/concertina quickstart
one_message "the launcher 'mpirun' does not exist" 'quickstart without a text'
grep -q 'training on the guide, .*build/data/bible.txt' err || fail 'quickstart without a text does not say what it trains on'
echo text > build/data/bible.txt
exits 2 'quickstart with a text' env PATH="$PWD/none" build/experiments/concertina quickstart
one_message "the launcher 'mpirun' does not exist" 'quickstart with a text'
grep -q 'training on the guide' err && fail 'quickstart with a text trains on the guide'

refused 'subcommand is required'
refused "unknown subcommand 'trian'" trian
refused 'try: --help-config; or concertina --help' --help-confg
refused 'try: --from-scratch; or concertina train --help' train --from-scrach=1
refused 'try: concertina train --help' train --nothing-like-it
refused 'train' trian
refused 'one of: list, show, check, simulate' schedule
refused 'frobnicate' doctor --frobnicate
refused 'required' schedule show

printf '[batch]\nglobl = 3\n' >typo.toml
printf '[batch]\nglobal = "many"\n' >type.toml
printf '[model]\nwidth = 64\nheads = 8\n' >base.toml
refused 'typo.toml:2:1: batch.globl' doctor @typo.toml
refused 'try: batch.global' doctor @typo.toml
refused 'type.toml:2:10: batch.global' doctor @base.toml @type.toml
refused 'base.toml:3:9: model.heads' doctor @base.toml --set model.width=60
refused 'missing.toml' doctor @missing.toml
refused 'try: @base.toml' doctor base.toml
refused 'cannot read' doctor @.
refused 'command line: nothing' doctor --set nothing
refused 'from 1 to' doctor --set batch.global=0
refused 'one of 1, 2, 4, 8, 16, 32' doctor --set batch.microbatches=5
refused 'no prefix space' data train-tokenizer base.toml --out x --prefix-space --pattern llama3
refused '1f2b' doctor --set parallel.schedule=1f2b
refused 'fp32, tf32, bf16, fp8' doctor --set numerics.compute=fp64
ok 'hdf5 ' doctor
ok 'OpenSSL' doctor
ok 'mpi ' doctor @base.toml --set model.heads=4 --set run.threads=1
json doctor --json
refused 'one of: fp32, bf16, or a GPU: run.device = "cuda"' plan --world 2 --set numerics.compute=fp8
refused 'the CPU backend does not support tf32' plan --world 2 --set numerics.compute=tf32
refused 'cuDNN is for GPUs' plan --world 2 --set numerics.attention=cudnn
refused 'heads of 32 columns in fp32' plan --world 2 --set run.device=cuda --set numerics.attention=cudnn
refused 'auto, own, cudnn' plan --world 2 --set numerics.attention=flash

# If the processor has no bf16 products, they are emulated, and users who select them are warned.
DNNL_MAX_CPU_ISA=AVX2; export DNNL_MAX_CPU_ISA
ok 'bf16 emulated by fp32' doctor
ok 'warning: numerics.compute = "bf16" is emulated' doctor --set numerics.compute=bf16
unset DNNL_MAX_CPU_ISA

ok 1f1b schedule list
ok 'bubble (p-1)/m' schedule list --long
ok 'no closed form' schedule list --long
refused 'a multiple of 2' schedule check dualpipe --ranks 3
refused 'chunks per rank: 2' schedule show zb-v --chunks 3
json schedule list --json
for schedule in $("$binary" schedule list); do
  ok ok: schedule check "$schedule" --ranks 4 --microbatches 6
  json schedule simulate "$schedule" --json
  "$binary" schedule show "$schedule" --ranks 2 --microbatches 4 >plan.csv
  ok 'ok: 2 ranks' schedule check plan.csv
done
"$binary" schedule show 1f1b --ranks 2 --microbatches 4 >plan.csv
refused 'gpipe' schedule check nothing-like-it
refused 'not in range 1 to 4096' schedule show 1f1b --ranks 0
refused 'expected three costs, got 2' schedule simulate 1f1b --costs 1,2
printf 'ranks_per_host = 1\n[remote]\nlatency_s = 1.0\nbytes_per_s = 10.0\n' >machine.toml
links='--costs 1,1,1 --links machine.toml --boundary-bytes'
# F, a message of 2 s with 1 s latency, F and B, the same back, B, and a joint STEP: 1 s more.
ok 'makespan 13 ' schedule simulate 1f1b --ranks 2 --microbatches 1 $links 20
ok 'links: from machine.toml, all ranks on 2 hosts' schedule simulate 1f1b --ranks 2 $links 20
ok 'links: none given: transfers are free' schedule simulate 1f1b
ok 'links: from machine.toml' schedule search --ranks 2 --microbatches 2 --max-chunks 2 $links 20
refused '--costs F,I,W --links machine.toml' schedule simulate 1f1b --costs machine.toml
refused '--boundary-bytes N: samples' schedule simulate 1f1b --links machine.toml
refused '--links machine.toml as well' schedule simulate 1f1b --boundary-bytes 20
refused 'not in range' schedule simulate 1f1b --links machine.toml --boundary-bytes -1
# Costs per stage; a latency instead of links, and the definitions of the bubble in papers.
printf 'F,I,W\n1,2,3\n4,5,6\n' >stages.csv
ok 'makespan 36 ' schedule simulate gpipe --ranks 2 --microbatches 2 --costs stages.csv
refused 'costs for 2 stages, but a pipeline has 4 stages' schedule simulate gpipe --costs stages.csv
published='--ranks 8 --microbatches 24 --costs 18.522,18.086,9.337 --latency 0.601'
ok 'zero_bubble   0.2431' schedule simulate 1f1b $published
ok 'zero_bubble   0.1585' schedule simulate zb-h1 $published
ok 'links: each message between ranks takes 0.601' schedule simulate 1f1b $published
"$binary" schedule simulate 1f1b --json | python3 -c 'import json, sys
definitions = json.load(sys.stdin)["bubble"]["definitions"]
assert list(definitions) == ["zero_bubble", "megatron", "idle_share"], definitions
assert abs(definitions["megatron"]["value"] - 3 / 8) < 1e-12
assert all(one["formula"] and one["source"] for one in definitions.values())' ||
  fail 'definitions of the bubble in JSON'
refused '--latency cannot be combined with --links' schedule simulate 1f1b --latency 1 $links 20
for figure in nan inf -1 1e308 1e-308 x ''; do
  refused --latency schedule simulate 1f1b --latency="$figure"
  refused --latency schedule search --latency="$figure"
done
small='schedule search --ranks 4 --microbatches 8 --max-chunks 1'
ok 'bubble zero_bubble ' $small --objective span --memory 4 --kept-for-w 0.4
ok 'keeps weights twice: omitted without --opposite' $small
ok 'found (search)            1         13 ' schedule search --microbatches 4 --max-chunks 1 --opposite
ok 'found (zb-h1) ' schedule search --microbatches 4 --max-chunks 1
refused 'not in {step,span}' $small --objective steps
refused 'not in range 0 to 1' $small --kept-for-w 1.5
refused --kept-for-w $small --kept-for-w nan
refused 'the file gives costs for 2 stages on 4 ranks' $small --costs stages.csv
# Invalid and absurd numbers are rejected everywhere; nothing hangs.
for figure in nan inf -1 1e308 1e-308 '' x; do
  refused "'$figure' is not a number of seconds" schedule simulate 1f1b --costs "1,$figure,1"
  refused "'$figure' is not a number of seconds" schedule search --costs "1,$figure,1"
done
for figure in nan inf -1 1e308 x; do
  refused --boundary-bytes schedule simulate 1f1b --links machine.toml --boundary-bytes=$figure
  refused --memory schedule search --memory=$figure
  refused --rate plan --rate=$figure
done
for key in latency_s bytes_per_s send_cpu_s_per_byte eager_bytes; do
  for figure in inf nan 1e308 1e-308; do
    printf '[local]\n%s = %s\n' $key $figure >bad.toml
    refused "local.$key = " schedule simulate 1f1b --links bad.toml --boundary-bytes 1
    refused "local.$key = " plan --rate 1 --world 2 --costs bad.toml
  done
done
refused "expected a decimal integer, got '010'" schedule check 1f1b --ranks 010
refused "expected a decimal integer, got '0x10'" schedule check 1f1b --microbatches 0x10
refused 'not in range 1 to 4096' schedule check 1f1b --ranks 99999999999999999999
refused 'expected three costs, got 2' schedule simulate 1f1b --costs ,, --json
printf '[[pair]]\nfrom = 1\nlatency_s = 1\n' >bad.toml
refused "a pair has no 'to'" schedule simulate 1f1b --links bad.toml --boundary-bytes 1
printf '[local]\nlatency_s = 1\n[[pair]]\nfrom = 1\nto = 4\nlatency_s = 1\n' >bad.toml
ok '1 of 1 pairs have ranks other than 0 to 3 and are not used' \
  schedule simulate 1f1b --ranks 4 --links bad.toml --boundary-bytes 1
# Pipes and devices, which have no end, are not accepted as files.
mkfifo pipe.csv pipe.toml || fail 'no mkfifo'
refused 'it is a pipe or a device' schedule check pipe.csv
refused 'it is a pipe or a device' schedule check /dev/zero
refused 'it is a pipe or a device' plan @pipe.toml
refused 'it is a pipe or a device' schedule simulate 1f1b --costs pipe.toml
refused 'it is a pipe or a device' schedule simulate 1f1b --links pipe.toml --boundary-bytes 1
refused 'its directory does not exist' schedule search --ranks 64 --microbatches 256 --write no/such.csv
refused 'it is not a regular file' schedule search --ranks 64 --microbatches 256 --write /dev/null
echo mine >mine.txt
refused 'the file already exists' schedule search --ranks 1 --microbatches 1 --write mine.txt
grep -qx mine mine.txt || fail 'schedule search --write replaced a file'
ok found schedule search --ranks 1 --microbatches 1 --write mine.txt --force
grep -q 0B0 mine.txt || fail 'schedule search --write --force wrote no schedule'
refused '234881024 actions' schedule check 1f1b --ranks 512 --microbatches 65536
python3 -c 'print("," * 20000000)' >commas.csv
(
  [ -n "${ASAN_OPTIONS-}" ] || ulimit -v 1000000 # the address sanitizer reserves more
  refused 'no actions' schedule check commas.csv
  exit $bad
) || bad=1
rm commas.csv
# A name need not be valid UTF-8.
odd=$(printf 'odd\377.toml')
cp machine.toml "$odd"
json schedule simulate 1f1b --links "$odd" --boundary-bytes 20 --json
# Options for a schedule file may only repeat what the file says.
printf '0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n' >two.csv
ok 'ok: 2 ranks' schedule check two.csv --ranks 2 --microbatches 2 --chunks 1
refused 'contradicts the file, which has 2' schedule check two.csv --ranks 4
refused 'contradicts the file, which has 2' schedule check two.csv --microbatches 8
refused 'contradicts the file, which has 1' schedule check two.csv --chunks 2
# LoopedBFS of 20 microbatches adds them in descending order; with 20 leaves, every order is valid.
python3 -c 'm = 20
for r in (0, 1):
    f = [f"{s}F{i}" for s in (r, r + 2) for i in range(m)]
    b = [f"{s}B{i}" for s in (r + 2, r) for i in reversed(range(m))]
    print(",".join(f + b))' >looped.csv
refused 'leaves of `schedule`' schedule check looped.csv
ok 'ok: 2 ranks' schedule check looped.csv --leaves 20
ok makespan schedule simulate looped.csv --leaves 20
ok 0F0 schedule show looped.csv --leaves 20
refused '3 leaves do not evenly divide 20' schedule check looped.csv --leaves 3
refused '3 leaves do not evenly divide 8' schedule search --ranks 2 --leaves 3
ok found schedule search --ranks 1 --leaves 4
# Pictures of predicted steps, by name and from files, with one time scale; a file that cannot be
# written is reported before the work.
for kind in svg tex html; do
  ok "wrote drawn.$kind" schedule draw 1f1b zb-v two.csv --out drawn.$kind
  [ -s drawn.$kind ] || fail "drawn.$kind is empty"
done
"$binary" schedule draw 1f1b zb-v two.csv --out again.svg >printed && cmp drawn.svg again.svg || fail 'pictures differ'
python3 -c 'import xml.dom.minidom as xml
xml.parse("drawn.svg")
text = open("drawn.svg").read()
assert text.count("2 ranks x 2 microbatches") == 3' || fail 'drawn.svg'
json schedule draw 1f1b --ranks 4 $links 20 --width 3.25 --out links.svg --json
"$binary" schedule draw 1f1b $links 20 --out links.svg --json | python3 -c 'import json, sys
one = json.load(sys.stdin)["schedules"][0]
assert one["by_cause"]["transfer"] > 0.1
assert abs(sum(one["by_cause"].values()) - one["bubble"]) < 1e-9' || fail 'the causes in JSON'
ok 'wrote drawn.svg' schedule draw 1f1b interleaved-1f1b:4 --out drawn.svg
refused 'chunks per rank: 2' schedule draw zb-v:3 --out drawn.svg
refused "expected a number of chunks, got 'two'" schedule draw zb-v:two --out drawn.svg
ok 'rank 1  .  F0 B0--- F1 B1---' schedule show two.csv --grid
ok 'rank 1  .  F0 B0--- F1 B1---' schedule draw two.csv --grid
NO_COLOR=1 ok 'rank 0  0F0 0F1' schedule draw zb-v --ranks 2 --grid
refused "'.gif' is not a picture format" schedule draw 1f1b --out drawn.gif
refused 'an extension' schedule draw 1f1b --out drawn
refused 'its directory does not exist' schedule draw 1f1b --ranks 512 --microbatches 16384 --out no/drawn.svg
mkdir folder.svg
refused 'it is not a regular file' schedule draw 1f1b --out folder.svg
refused '--out FILE.svg' schedule draw 1f1b
refused 'one of them' schedule draw 1f1b --grid --out drawn.svg
refused 'neither a schedule nor a file' schedule draw 1f1b 1f2b --out drawn.svg
refused 'try: zb-v (one of: ' schedule draw zbv --out drawn.svg
printf '0F0,0B0\n1F0,1B0\n2F0,2B0\n' >three.csv
refused 'two.csv has 2 ranks, but three.csv has 3 ranks' schedule draw two.csv three.csv --out drawn.svg
refused 'contradicts the file, which has 2' schedule draw two.csv --ranks 3 --out drawn.svg
# Equal ranks share a line; the timeline has the start and end of each action.
ok '0-10  ' schedule simulate 1f1b --ranks 12 --microbatches 2
"$binary" schedule simulate 1f1b --ranks 2 --microbatches 1 --json | python3 -c 'import json, sys
timeline = json.load(sys.stdin)["timeline"]
assert len(timeline) == 2 and ["0F0", 0, 1] in timeline[0] and ["0B0", 4, 6] in timeline[0]
assert ["1F0", 1, 2] in timeline[1] and ["STEP", 6, 6] in timeline[1]' || fail 'the timeline in JSON'
for wrong in nothing-like-it pipe.csv machine.toml; do
  exits 2 "schedule check $wrong --json" "$binary" schedule check "$wrong" --json
  python3 -c 'import json, sys
report = json.load(sys.stdin)
assert report["ok"] is False and report["rule"] is None and report["why"] and report["try"]' <out ||
    fail "schedule check $wrong --json: no JSON"
done
# An error about a key, found by a layout or a model, says where the key is.
printf '[parallel]\npp = 99\n' >deep.toml
printf 'model = {layers = 8, width = 512, heads = 8, context = 512}\n' >search.toml
ok 'largest gain' plan search @search.toml --world 8 --machine laptop --device-memory 4GiB
json plan search @search.toml --world 8 --machine laptop --top 2 --json
refused 'a search needs a machine' plan search @search.toml --world 8
refused 'try: a100-80gb (one of' plan search @search.toml --world 8 --machine a100-80gib
refused 'try: a100-40gb (one of' plan search @search.toml --world 8 --machine a100
refused 'fits into 1 MiB per device; the nearest, tp1' plan search @search.toml --world 8 --machine laptop --device-memory 1MiB
for size in -1GiB nan 0 '' 40; do refused --device-memory plan search @search.toml --world 8 --machine laptop "--device-memory=$size"; done
refused 'at: --schedules' plan search @search.toml --machine laptop --schedules nonsense
ok "B in the zero-bubble paper" schedule search --help
# A signal ends a search, which then prints the best schedule so far.
code=0; timeout -s INT --preserve-status 3 "$binary" schedule search --ranks 16 --microbatches 64 --memory 12 >out 2>err || code=$?
[ "$code" = 75 ] && grep -q 'best schedule so far' out || fail "schedule search at SIGINT: exit $code"
refused 'one of: concertina, megatron, deepspeed' plan search @search.toml --machine h100 --software x
for rate in 0 -1 nan inf; do refused --rate plan search @search.toml --machine laptop --rate=$rate; done
for list in --tp --pp --microbatch --chunks; do
  for value in 0 -1 1.5 x; do refused $list plan search @search.toml --machine laptop $list=$value; done
done
ok laptop plan @search.toml --world 2 --machine laptop
ok laptop plan show --world 2 --machine laptop @search.toml
# Each command of `plan` has its own options; the old options name the new ones.
ok 'sent between ranks' plan move --world 4 --from parallel.pp=4 --to parallel.pp=2
ok ceiling plan freeze --world 2 parallel.pp=2 --policy pipetransformer --epochs 3 --samples 64 --rate 50
ok ceiling plan freeze --world 2 parallel.pp=2 --policy pipetransformer freeze.alpha=0.5 --samples 64 --rate 50
refused 'no freeze policy' plan freeze --samples 64
refused 'no layouts to move between' plan move
refused 'no such file' plan move --world 2 --to parallel.pp=2 --costs nowhere
refused "unknown subcommand 'serach'" plan serach @search.toml
refused 'try: search (one of: show, search, move, freeze)' plan serach
refused 'neither @FILE.toml nor a run directory' plan missing.toml
refused 'try: parallel.pp=VALUE' plan parallel.pp 2 0
refused 'at: command line: parallel.pp' plan parallel.pp=0.5
while IFS='|' read -r text arguments; do refused "$text" plan $arguments; done << 'END'
concertina plan search @FILE|@search.toml --search --world 8 --machine laptop
concertina plan freeze @FILE|@search.toml --freeze linear --epochs 7
concertina plan move @FILE|--world 8 --from parallel.pp=4 --to parallel.pp=2
concertina plan move @FILE|--to=parallel.pp=2
--top is an option of `concertina plan search`|--world 2 --top 3 --tp 4 --epochs 7
--epochs is an option of `concertina plan freeze`|search @search.toml --machine laptop --epochs 7
--rate is an option of `concertina plan|move --to parallel.pp=2 --rate 50
--device-memory is an option of `concertina plan search`|--device-memory 4GiB
END
# An option without effect is an error, like a key of a config.
python3 -c 'import sys; sys.stdout.buffer.write(bytes(2 * 3073))' > images.bin
mkdir -p folder
while IFS='|' read -r option other command; do
  refused "$option has no effect with" $command
  one_message "$other" "$command"
  one_message "at: $option" "$command"
done << 'END'
--split|with --files|eval --files two.csv --split test
--text|with --files|eval --files two.csv --text two.csv
--text|with --split test|eval --split test --text two.csv
--shard-size|with --onnx|checkpoint export nowhere --out here --onnx --shard-size 2GB
--inline-limit|without --onnx|checkpoint export nowhere --out here --inline-limit 0
--context|without --format|data inspect two.csv --context 5
--context|with --format cifar10|data inspect images.bin --format cifar10 --context 5
--tokenizer|with --format cifar10|data inspect images.bin --format cifar10 --tokenizer bytes
--costs|with --machine|plan --costs machine.toml --machine laptop
--costs|with --machine|plan move --to parallel.pp=2 --costs machine.toml --machine laptop
--rate|with the costs of a run|plan freeze --costs runs/done --policy linear --samples 64 --rate 3
--rate|with the costs of a run|plan show --rate 3 --costs runs/done
--long|with --json|schedule list --json --long
--compute-only|with --grid|schedule show two.csv --grid --compute-only
--width|with --grid|schedule draw two.csv --grid --width 3
--json|with --grid|schedule draw two.csv --grid --json
--chunks|with chunks in every name|schedule draw interleaved-1f1b:4 --chunks 2 --out drawn.svg
--json|with --dry-run|study run nothing.toml --dry-run --json
--dir|with the folder of a study|study run folder --dir elsewhere
--dir|with the folder of a study|study submit folder --dir elsewhere
--format|with --json without --out|study table folder --json --format latex
--cells|with --json without --out|study table folder --json --cells mean-sd
line|with bash|completion bash words
END
ok '2 images' data inspect images.bin --format cifar10
refused 'run.name is determined by' checkpoint import nowhere --out here --set run.name=there
refused 'deep.toml:2:6: parallel.pp' plan @deep.toml --world 99 --rate 1
"$binary" schedule show 1f1b --ranks 2 --microbatches 4 --compute-only >compute.csv
"$binary" schedule show compute.csv >again.csv
"$binary" schedule show 1f1b --ranks 2 --microbatches 4 | cmp -s - again.csv ||
  fail 'a compute-only file gets different transfers'
"$binary" schedule show again.csv --compute-only | cmp -s - compute.csv ||
  fail 'show --compute-only of a file'
printf '0F0,(0F1;0B0)OVERLAP_F_B,0B1,0REDUCE_GRAD,0WAIT_REDUCE_GRAD\n' >overlap.csv
ok '0F0,(0F1;0B0)OVERLAP_F_B,0B1,0REDUCE_GRAD,STEP' schedule show overlap.csv
printf '0F0,(0F1;0B1)OVERLAP_F_B,0B0\n' >overlap.csv
refused 'overlaps with' schedule check overlap.csv
# A frozen prefix of stages has no training actions, generated or read, with or without transfers.
ok '--frozen' schedule simulate --help
"$binary" schedule show 1f1b --ranks 2 --microbatches 2 --frozen 1 >frozen.csv
printf '0F0,0SEND_F0,0F1,0SEND_F1,STEP\n1RECV_F0,1F0,1RECV_F1,1B0,1F1,1B1,1REDUCE_GRAD,STEP\n' |
  cmp -s - frozen.csv || fail "schedule show --frozen: $(cat frozen.csv)"
"$binary" schedule show 1f1b --ranks 2 --microbatches 2 >whole.csv
"$binary" schedule show whole.csv --frozen 1 | cmp -s - frozen.csv || fail 'show FILE --frozen'
"$binary" schedule show frozen.csv --frozen 1 | cmp -s - frozen.csv || fail 'show of a frozen file'
"$binary" schedule show 1f1b --ranks 2 --microbatches 2 --frozen 1 --compute-only >compute.csv
printf '0F0,0F1\n1F0,1B0,1F1,1B1\n' | cmp -s - compute.csv || fail 'show --frozen --compute-only'
refused 'frozen.csv' schedule check frozen.csv
ok 'ok: 2 ranks, 13 actions' schedule check 1f1b --ranks 2 --microbatches 2 --frozen 1
ok 'makespan 7 ' schedule simulate 1f1b --ranks 2 --microbatches 2 --frozen 1
for schedule in $("$binary" schedule list); do
  ok ok: schedule check "$schedule" --microbatches 6 --frozen 3
  refused 'leaves nothing to train' schedule check "$schedule" --frozen 64
done
# Idle time in its three measures, each with its name, so the table of schedules can be checked by hand.
ok 'bubble 27.27% of it' schedule simulate gpipe
ok '37.50% over the step, 37.50% over its span' schedule simulate gpipe
ok 'free transfers: (p-1)/m = 37.50%' schedule simulate gpipe
ok 'peak activations, microbatch-stages' schedule simulate gpipe
ok '6.25% over the step, 0.00% over its span' schedule simulate zb-v
"$binary" schedule simulate zb-v --json | python3 -c 'import json, sys
bubble = json.load(sys.stdin)["bubble"]
assert abs(bubble["mean"] - 3 / 51) < 1e-12 and bubble["idle_over_ideal"] == {"step": 0.0625, "span": 0}
assert bubble["closed_form"]["idle_over_ideal"] == 0 and bubble["closed_form"]["exact"]
assert bubble["closed_form"]["measure"].startswith("span")' || fail 'the measures of idle time in JSON'
for plain in '1f1b --frozen 1' plan.csv 'dualpipe --microbatches 18' 'interleaved-1f1b --microbatches 6'; do
  "$binary" schedule simulate $plain --json | grep -qF '"closed_form":null' ||
    fail "simulate $plain: an unexpected closed form"
done
ok 'pipelines have 8 and 10 microbatches; --leaves 6 ' schedule simulate chimera --microbatches 18
ok 'm/2 go each way = 7.41%' schedule simulate chimera --microbatches 18 --leaves 6
refused 'try: --frozen from 0 to 3' schedule simulate 1f1b --frozen 4
refused 'try: --frozen from 0 to 1' schedule show whole.csv --frozen 2
refused 'not in range 0 to' schedule check 1f1b --frozen -1
: >empty.csv
refused 'empty.csv' schedule check empty.csv
sed 's/0F1/0F0/' plan.csv >twice.csv
refused 'twice.csv' schedule check twice.csv
refused '[0F0]' schedule check twice.csv
exits 2 'schedule check --json of a wrong plan' "$binary" schedule check twice.csv --json
[ ! -s err ] || fail 'schedule check --json of a wrong plan: something on stderr'
python3 -c 'import json, sys
report = json.load(sys.stdin)
assert report["ok"] is False and report["rule"] == "cover" and "repeats" in report["why"]
assert [p["rank"] for p in report["places"]] == [0, 0] and "[0F0]" in report["grid"]' <out ||
  fail 'schedule check --json of a wrong plan: not as documented'
ok 'ok: 4 ranks' schedule check gpipe --activations 8
refused 'but the limit is 3' schedule check gpipe --activations 3
refused 'try: that F after a B or W' schedule check gpipe --activations 3
printf '0F0,0F1,0B0,0B1,0F7\n1F0,1B0,1F1,1B1\n' >extra.csv
refused '[0F7]' schedule check extra.csv
printf '0F1,0B0,0B1\n\n\n' >first.csv
refused '[+0F0]' schedule check first.csv
printf '0F0,0B0\n\n1F0,1B0\n' >blank.csv
refused 'blank.csv:2' schedule check blank.csv
printf '0F999999999,0B0\n' >huge.csv
refused 'microbatch 1 has no forward' schedule check huge.csv
printf '0F0,\000\033[2J\377\n\n,,\001' >noise.csv
refused 'noise.csv' schedule show noise.csv

# Completion in bash itself: prints COMPREPLY for a line that ends where TAB is pressed.
"$binary" completion bash > completion.bash
cat > complete.sh << 'END'
source completion.bash
COMP_LINE=$1 COMP_POINT=${#1}
_concertina
printf '%s\n' "${COMPREPLY[@]}"
END
mkdir -p runs/done runs/empty && : > runs/done/config.toml && mkdir -p bin && ln -sf "$binary" bin/concertina
# completes LINE WORDS: expects exactly these words.
completes() {
  PATH="$scratch/bin:$PATH" bash complete.sh "$1" > out 2> err
  [ "$(tr '\n' ' ' < out)" = "$2 " ] || fail "completion of '$1': wanted '$2'"
}
completes 'concertina sch' 'schedule'
completes 'concertina schedule s' 'search show simulate'
completes 'concertina schedule show zb-' 'zb-h1 zb-h2 zb-v'
completes 'concertina schedule simulate 1f1b --lea' '--leaves'
completes 'concertina train --from' '--from-scratch'
completes 'concertina plan s' 'search show'
completes 'concertina plan --wor' '--world'
completes 'concertina plan @deep.toml --wor' '--world'
completes 'concertina plan search --dev' '--device-memory'
completes 'concertina data ' 'clean inspect prepare train-tokenizer'
completes 'concertina data prepare --app' '--append-end'
completes 'concertina data prepare data.tok' 'data.tokenizer='
completes 'concertina train parallel.pp' 'parallel.pp='
completes 'concertina train --set optimizer.beta' 'optimizer.betas='
completes 'concertina train --set parallel.schedule=zb-' 'zb-h1 zb-h2 zb-v'
completes 'concertina train run.device=' 'cpu cuda'
completes 'concertina train parallel.overlap=t' 'true'
completes 'concertina eval runs/d' 'runs/done'
completes 'concertina report ' 'runs/done'
completes 'concertina train @two' ''
completes 'concertina train @deep' '@deep.toml'
completes 'concertina schedule check compu' 'compute.csv'
completes 'mpirun -n 4 bin/concertina train data.tok' 'data.tokenizer='
completes 'mpirun -n 4 something els' ''
ok '#compdef concertina' completion zsh
refused 'shell' completion fish
ok 'one of: cpu, cuda' --help-config
# Every subcommand and every option in its help is completed.
every() {
  "$binary" $1 --help | sed -n 's/^ *\(-h,\)*\(--[a-z-]*\).*/\2/p' | sort -u > wanted
  [ -s wanted ] || fail "no options in the help of '$1'"
  while read -r option; do
    "$binary" completion words -- $1 "$option" | grep -qx -e "$option" ||
      fail "'$1' does not complete $option"
  done < wanted
}
for command in '' train eval generate plan 'plan show' 'plan freeze' 'schedule simulate' 'schedule search' 'bench links' soak report 'checkpoint export'; do
  every "$command"
done

# Every command that opens a checkpoint reports the same error if it is not one.
mkdir -p empty untrained/checkpoints
seq 1 900 > text
printf '[run]\ndir = "."\nname = "untrained"\n' > untrained/config.toml
while IFS='|' read -r path text; do
  for command in 'checkpoint inspect' 'checkpoint verify' 'checkpoint export --out here' \
    'checkpoint export --onnx --out here' 'train model.from='; do
    case $command in
      train*) refused "$text" train "model.from=$path" data.text=text run.name=from ;;
      *) refused "$text" $command "$path" ;;
    esac
  done
done << 'END'
nowhere|no such file or directory
untrained/checkpoints/step-00000003|no such file or directory
empty|neither a run nor a checkpoint
untrained|there is no checkpoint here
untrained/checkpoints|there is no checkpoint here
END
refused 'out is required' checkpoint export nowhere --onnx
mkdir -p step-00000001
refused 'step-00000001' checkpoint inspect step-00000001
refused 'nowhere' report nowhere --data --step=1
"$binary" report nowhere --figures > out 2> err; grep -q 'figures is now --data' err || fail 'report --figures does not name its new form'

OMPI_COMM_WORLD_SIZE=4 && export OMPI_COMM_WORLD_SIZE
refused 'alone, but the launcher was asked for 4 ranks' doctor
unset OMPI_COMM_WORLD_SIZE

exit $bad
