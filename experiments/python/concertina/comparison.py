"""Finds which groups of runs differ in a metric, using pairs of runs where possible, and the training time to a target (--to)."""
import dataclasses
import typing

from .errors import InputError, require_word
from .measures import why_incomparable
from .names import BASELINE_TARGET, number_or_text, time_to
from .results import SEED, Group, RunSummary, StudyResults, groups_of, metrics_of, never_came, same_value, titles
from .run_log import HELD_OUT, RunLog, read_log
from .statistic import NO_TEST, PAIRED, WELCH, WILCOXON, Difference, Pairs, compare_pairs, compare_samples, holm, summarize

_SETTINGS = ("seed", "ranks", "batch", "microbatches")  # numbers of a result that are settings
_MOST_COMPARED = 12  # groups that are compared by default


@dataclasses.dataclass
class Comparison:
    """How groups are compared: runs with equal values in `pairing` form pairs."""
    pairing: list[str]
    test: str = PAIRED  # paired test
    confidence: float = 0.95

    def difference(self, first: Group, second: Group, metric: str) -> Difference:
        """Second minus first, using Welch's test on all values if there are fewer than two pairs."""
        pairs = self.pairs(first, second, metric)
        if len(pairs) >= 2:
            return compare_pairs(pairs, self.test, self.confidence)
        return compare_samples(metrics_of(first.done, metric), metrics_of(second.done, metric), self.confidence)

    def pairs(self, first: Group, second: Group, metric: str) -> Pairs:
        """The paired means; none if the groups are not comparable, or if a run never reached the target, since the remaining runs would be biased."""
        if never_came(first, metric) or never_came(second, metric) or why_incomparable([*first.done, *second.done], metric):
            return []
        mine, theirs = self._means(first, metric), self._means(second, metric)
        return [(value, theirs[key]) for key, value in sorted(mine.items()) if key in theirs]

    def _means(self, group: Group, metric: str) -> dict[tuple[str, ...], float]:
        """The finite mean of the metric for each value of the pairing columns."""
        if not self.pairing:
            return {}
        of_values = {same.values: summarize(metrics_of(same.done, metric), 0.95) for same in groups_of(group.done, self.pairing)}
        return {values: summary.mean for values, summary in of_values.items() if summary.n}


def pooled_axes(results: StudyResults, by: typing.Sequence[str], groups: list[Group]) -> list[str]:
    """The axes, except those in `by`, for which some group has several values."""
    return [axis for axis in results.axes if axis not in by and any(len({run.text(axis) for run in group.done}) > 1 for group in groups)]


def pairing_columns(results: StudyResults, pair: str, by: typing.Sequence[str], groups: list[Group]) -> list[str]:
    """`pair`, if runs have it, and the pooled axes. Raises InputError for a column that no run has or that is a result."""
    if pair != SEED:
        results.require(pair, "--pair")
    if pair not in _SETTINGS and any(pair in run.metrics and pair not in run.settings for run in results.runs):
        raise InputError(f"trials cannot be paired by '{pair}': it is a result, not a setting", "--pair",
                         f"one of: {', '.join(results.axes)}" if results.axes else SEED)
    own = [pair] if results.has(pair) and pair not in by else []
    return own + [axis for axis in pooled_axes(results, by, groups) if axis != pair]


def corrected(p: typing.Sequence[float | None], correction: str) -> list[float | None]:
    """Corrected p-values; absent ones are ignored."""
    there = [value for value in p if value is not None]
    found = iter(holm(there) if correction == "holm" else there)
    return [None if value is None else next(found) for value in p]


def default_baseline(results: StudyResults, by: list[str], groups: list[Group]) -> list[str]:
    """The first group with several runs, if a test is possible, there are few groups, and the study is not a search."""
    repeated = [group for group in groups if len(group.done) > 1]
    if results.metric or len(groups) > _MOST_COMPARED or len(repeated) < 2:
        return []
    first = repeated[0].values
    differing = (c for c in range(len(by)) if any(group.values[c] != first[c] for group in groups))
    return next(([f"{by[c]}={first[c]}"] for c in differing), [])


def baseline_values(results: StudyResults, by: list[str], groups: list[Group], baseline: list[str]) -> dict[int, str]:
    """The baseline's values in columns of `by`, by position in `by`."""
    wanted = {}
    for text in baseline:
        column, value = results.column_value(text, "--baseline")
        if column not in by:
            raise InputError(f"the baseline names {column}, but trials are not grouped by it", "--baseline",
                             f"one of: {', '.join(by)}" if by else f"--by {column}")
        known = sorted({group.values[by.index(column)] for group in groups})
        found = (one for one in known if one == value or same_value(number_or_text(one), value))
        wanted[by.index(column)] = next(found, None) or require_word(value, known, f"no group has {column}={value}", "--baseline")
    return wanted


def comparison_text(differences: list[list[Difference]], pairing: list[str], correction: str) -> str:
    """ "paired t test over 3 pairs of the same Seed; two-sided p". `differences`: for each metric."""
    tested = [[one for one in of_metric if one.test != NO_TEST] for of_metric in differences]
    used = {one.test for of_metric in tested for one in of_metric}
    pairs = sorted({one.pairs for of_metric in tested for one in of_metric if one.test != WELCH})
    if not used:
        return "too few trials for a test"
    count = " to ".join(map(str, dict.fromkeys([*pairs[:1], *pairs[-1:]])))
    parts = [f"{test} over {count} pairs of the same {titles(pairing)}" for test in (PAIRED, WILCOXON) if test in used]
    parts += [WELCH + " for fewer than two pairs" * (len(used) > 1)] * (WELCH in used)
    most, how = max(map(len, tested)), "with Holm's correction" if correction == "holm" else "without correction"
    return "; ".join(parts) + "; two-sided p" + f" {how} for {most} comparisons per metric" * (most > 1)


def _parse(target: str) -> tuple[str, str, bool, float]:
    """The metric, its target as text, whether the target is relative to the baseline, and the target number or the offset from the baseline."""
    metric, _, text = target.partition("=")
    of_baseline = text.startswith(BASELINE_TARGET)
    figure = text.removeprefix(BASELINE_TARGET) if of_baseline else text
    number = 0.0 if of_baseline and not figure else number_or_text(figure.removeprefix("+"))
    signed = not figure or figure[0] in "+-"
    if not metric.startswith(HELD_OUT) or isinstance(number, str) or (not signed if of_baseline else figure.startswith("+")):
        raise InputError(f"'{target}' is not a target of a held-out metric", "--to", "--to validation_loss=2.5, --to "
                         "validation_loss=baseline, or --to validation_loss=baseline+0.01")
    return metric, text, of_baseline, number


def _last_of_baseline(results: StudyResults, run: RunSummary, logs: list[tuple[RunSummary, RunLog]], baseline: list[tuple[str, str]],
                      metric: str) -> float | None:
    """The mean of the last values of the runs that have the baseline's values, and `run`'s values on all other axes."""
    named = [column for column, _ in baseline]
    last = []
    for other, log in logs:
        if all(same_value(other.cell(column), value) for column, value in baseline) and \
                all(axis in named or other.cell(axis) == run.cell(axis) for axis in results.axes):
            last += list(log.curve(metric).values())[-1:]
    summary = summarize(last, 0.95)
    return summary.mean if summary.n else None


def add_times_to(results: StudyResults, targets: list[str], baseline: list[str]) -> list[str]:
    """Adds a column per target ("METRIC=NUMBER", "METRIC=baseline" or "METRIC=baseline-NUMBER") to completed runs."""
    wanted = [results.column_value(text, "--baseline") for text in baseline] if targets else []
    logs = [(run, read_log(run.directory)) for run in results.runs if run.state == "done"] if targets else []
    columns = []
    for target in targets:
        metric, text, of_baseline, number = _parse(target)
        if of_baseline and not wanted:
            raise InputError("there is no baseline for the target", "--to", "--baseline COLUMN=VALUE")
        columns.append(time_to(metric, text))
        for run, log in logs:
            base = _last_of_baseline(results, run, logs, wanted, metric) if of_baseline else 0
            seconds = None if base is None else log.seconds_to(metric, base + number)
            if seconds is not None:
                run.metrics[columns[-1]] = float(seconds)
        results.require(columns[-1], "--to")
    return columns
