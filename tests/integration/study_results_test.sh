#!/bin/sh
# Results of a study of real runs: its table in all formats, charts and page, and one message for
# invalid requests.
# usage: study_results_test.sh CONCERTINA MPIRUN [ARGUMENT...]
set -u
binary=$(realpath -- "$1"); shift
mpirun=$*
. "$(dirname -- "$0")/training_checks.sh"

tiny_run 12
cat > grid.toml << END
base = "base.toml"
seeds = [1, 2]
[grid]
parallel.schedule = ["1f1b", "zb-v"]
model.heads = [2, 3]
[launch]
ranks = 2
command = "$mpirun -n {ranks} {program} {args}"
END
exits 1 'study run' "$binary" study run grid.toml  # 3 heads do not divide the width

# result CODE WHAT...: runs `study WHAT`.
result() {
  code=$1; shift
  exits "$code" "study $*" "$binary" study "$@"
}
# says TEXT WHAT: expects the text in out.
says() { grep -qF -e "$1" out || fail "$2: no '$1'"; }

result 0 table studies/grid --baseline parallel.schedule=1f1b
says 'study grid: 4 groups, 4 of 8 trials done' table
says 'the same bits in all 2 groups of parallel.schedule for each of 2 values of model.heads and run.seed' bits
says 'paired t test over 2 pairs of the same Seed' test
says 'failed: trials 2,4,6,8: ' failed
says 'model.heads = 3 does not divide model.width' failed
cp out before
result 0 table studies/grid --baseline parallel.schedule=1f1b
cmp -s out before || fail 'the bytes of the same table differ'
result 0 table studies/grid --format csv --metric loss,tokens_per_s:min --by parallel.schedule --where model.heads=2
[ "$(wc -l < out)" = 3 ] && [ "$(head -1 out | cut -d, -f1-5)" = parallel.schedule,n,not_done,loss_n,loss_mean ] || fail 'the CSV'
grep -q 'mean ± standard deviation' err || fail 'the notes on a CSV are not on stderr'
for format in markdown latex html; do
  result 0 table studies/grid --format $format --out table.$format
  [ "$(cat out)" = table.$format ] && grep -q 'zb-v' table.$format || fail "no table as $format"
done
result 0 table studies/grid --json --test wilcoxon
[ "$(wc -l < out)" = 1 ] && says '"not_done":[{"trial":2,"state":"failed"' json
says '"confidence":0.95' json

result 0 report studies/grid
says studies/grid/report.html report
grep -q '"Use of time"' studies/grid/report.html && grep -q '"Errors"' studies/grid/report.html ||
  fail 'a section of the page is missing'
for chart in '--x parallel.schedule --y tokens_per_s' '--x step --y loss --group parallel.schedule' '--kind pareto'; do
  result 0 plot studies/grid --out chart.svg $chart
  grep -q '^<svg' chart.svg && grep -q '1f1b' chart.svg || fail "no chart: $chart"
done
result 0 plot studies/grid --out chart.svg --x parallel.schedule --json
says '"kind":"bars"' plot

for what in "table studies/grid --metric los" "table studies/grid --where model.heads=7" \
  "table studies/grid --baseline parallel.schedule=gpipe" "table studies/grid --format pdf" \
  "table nowhere" "report nowhere" "plot studies/grid --out chart.doc" "plot studies/grid --out x/y.svg" \
  "plot studies/grid --out chart.svg --kind pie" "plot studies/grid --out chart.svg --x nothing" \
  "plot studies/grid --out chart.svg --x parallel.schedule --x-scale log" "plot studies/grid --out chart.svg --kind pareto --spread sd"; do
  result 2 $what
  one_message '' "$what"
  [ -s out ] && fail "$what: prints to stdout"
done
exit $bad
