#!/bin/sh
# `study run` with external samplers: one written for this test, and Optuna's, if it is installed.
# usage: sampler_test.sh CONCERTINA OPTUNA_SAMPLER.PY
set -u
binary=$(realpath -- "$1")
optuna=$(realpath -- "$2")
. "$(dirname -- "$0")/training_checks.sh"

tiny_run 6
# search NAME TRIALS COMMAND...: runs a study with this sampler.
search() {
  name=$1 trials=$2; shift 2 # trials 0: no limit
  bound=
  [ "$trials" = 0 ] || bound="trials = $trials"
  cat > "$name.toml" << END
base = "base.toml"
[search]
method = "sampler"
metric = "validation_loss"
${bound}
command = "$*"
[launch]
command = "{program} {args}"
END
  exits 0 "study $name" "$binary" study run "$name.toml"
}
# ended NAME: prints the trials and how they ended.
ended() { cut -d, -f1-2 "studies/$1/results.csv" | tail -n +2 | xargs; }

cat > draw.py << 'END'
import json, random, sys
for line in sys.stdin:
    print(line, end="", file=open("said", "a"))
    message = json.loads(line)
    if "ask" in message:
        number = message["ask"]["trial"]
        if number > 4:
            print('{"done": true}', flush=True)
            continue
        draw = random.Random(number)
        print(json.dumps({"set": {"optimizer.lr": draw.uniform(1e-4, 1e-2),
                                  "model.width": draw.choice([32, 64])}}), flush=True)
END
search drawn 3 python3 draw.py
[ "$(ended drawn)" = '1,done 2,done 3,done' ] || fail "drawn: $(ended drawn)"
head -n 1 said | grep -qF '{"study":{"name":"drawn","metric":"validation_loss","goal":"min","trials":3}}' ||
  fail 'the sampler was not informed of the study'
[ "$(grep -c '"tell":{"trial":[123],"state":"done","metric":[0-9.]*,"set":{"optimizer.lr":0.00[0-9]*,"model.width":[36]' said)" = 3 ] ||
  fail "tells: $(cat said)"
# When resumed, it repeats the ended trials to the sampler, in order.
: > said
rm -r studies/drawn/3 studies/drawn/results.csv
exits 0 'resumed' "$binary" study run drawn.toml
[ "$(grep -o '"tell":{"trial":[0-9]*\|"ask":{"trial":[0-9]*' said | tr -d '"' | xargs)" = \
  'tell:{trial:1 tell:{trial:2 ask:{trial:3 tell:{trial:3' ] || fail "resumed: $(cat said)"

# Whatever a sampler sends or omits, there is one error without delay, and the study can continue afterwards.
cat > hostile.py << 'END'
import os, sys, time
mode = sys.argv[1]
answers = {"binary": '\x1b[31m', "rundir": '{"set": {"run.dir": "elsewhere"}}', "empty": '{"set": {}}',
           "ranks": '{"set": {"ranks": "many"}}', "no ranks": '{"set": {"ranks": -3}}',
           "note": '{"set": {"optimizer.lr": 0.001}, "note": 1}',
           "not done": '{"done": false, "set": {"optimizer.lr": 0.001}}',
           "word": '{"set": {"optimizer.lr": "fast"}}', "null": '{"set": {"data.text": null}}'}
if mode == "daemon" and os.fork() == 0:
    os.setsid(), time.sleep(20), os._exit(0)
for line in sys.stdin:
    if "ask" not in line:
        continue
    if mode in ("daemon", "dies"):
        os._exit(3)
    print(answers.get(mode, '{"set": {"optimizer.lr": 0.001}}'), flush=True)
END
# hostile CODE MODE TEXT
hostile() {
  rm -rf studies/hostile
  exits "$1" "a hostile sampler: $2" timeout -k 1 15 "$binary" study run hostile.toml --sampler "python3 hostile.py '$2'"
  one_message "$3" "a hostile sampler: $2"
  [ "$(wc -c < err)" -lt 2000 ] || fail "$2: the message is too long"
}
sed 's/drawn/hostile/; /^command = "python3/d' drawn.toml > hostile.toml
hostile 1 binary "it sent '\\x1b[31m', which is not a JSON object"
hostile 1 daemon 'it exited without an answer (exit code 3)'
hostile 1 dies 'it exited without an answer (exit code 3)'
hostile 2 rundir "run.dir is set by the study"
hostile 1 empty 'got {"set":{}}'
hostile 2 ranks 'ranks = "many"'
hostile 2 'no ranks' 'ranks = -3'
hostile 1 note 'got {"set":{"optimizer.lr":0.001},"note":1}'
hostile 1 'not done' 'got {"done":false'
hostile 2 word "at: the sampler's answer for trial 1: optimizer.lr"
hostile 2 null 'data.text = null is not a valid assignment'
exits 0 'continuing after a hostile sampler' "$binary" study run hostile.toml --sampler 'python3 hostile.py well'
[ "$(ended hostile)" = '1,done 2,done 3,done' ] || fail "hostile: $(ended hostile)"
# A metric that no result has: the sampler would search blindly.
sed 's/drawn/blind/; s/^metric = .*/metric = "validation_los"/; /^command = "python3/d' drawn.toml > blind.toml
exits 1 'blind' "$binary" study run blind.toml --sampler 'python3 hostile.py well'
grep -q 'trial 1 is done, but its result contains no metric validation_los' err || fail 'the missing metric is not reported'

# If the study has no limit, the sampler says when it is done.
search few 0 python3 draw.py
[ "$(ended few)" = '1,done 2,done 3,done 4,done' ] || fail "few: $(ended few)"

python=$(for python in python3 /usr/bin/python3; do
  "$python" -c 'import optuna' 2> /dev/null && echo "$python" && break
done)
if [ -z "$python" ]; then
  exits 1 'no optuna' python3 "$optuna" --trials 1 model.width=choice:32
  grep -q 'cannot import optuna' err || fail 'the missing optuna is not reported'
  exit $bad
fi
space='optimizer.lr=log:1e-4:1e-2 model.width=choice:32,64 model.dropout=uniform:0:0.3 lr.warmup=uniform:1:3'
settings() { # STUDY
  for trial in 1 2 3 4 5 6; do
    grep -A 7 '"settings"' "studies/$1/$trial/trial.json" | grep '"optimizer.lr"\|"model.\|"lr.warmup"'
  done
}
samplers=tpe
! "$python" -c 'import cmaes' 2> /dev/null || samplers='tpe cmaes'
for kind in $samplers; do
  search $kind 0 "$python $optuna --sampler $kind --trials 6 --start 3 $space"
  [ "$(ended $kind | wc -w)" = 6 ] || fail "$kind: $(ended $kind)"
  settings $kind > $kind.before
  [ "$(grep '"optimizer.lr"' $kind.before | sort -u | wc -l)" = 6 ] || fail "$kind repeats itself: $(cat $kind.before)"
  rm -r studies/$kind/5 studies/$kind/6 studies/$kind/results.csv
  exits 0 "$kind resumed" "$binary" study run $kind.toml
  [ "$(ended $kind | wc -w)" = 6 ] || fail "$kind resumed: $(ended $kind)"
done
# Given the other trials, TPE proposes the same trials again.
settings tpe | cmp -s tpe.before - || fail "optuna resumed: $(settings tpe | diff tpe.before -)"
for line in 'lr=log:1' 'lr=cube:1:2' 'lr' 'lr=uniform:2:1'; do
  exits 2 "$line" "$python" "$optuna" --trials 1 "$line"
  grep -q "expected KEY=uniform:LOW:HIGH.*got '$line'" err || fail "$line is not reported"
done
exit $bad
