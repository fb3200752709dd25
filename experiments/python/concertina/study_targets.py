"""The training seconds that runs took to a target of a held-out metric, as columns (--to)."""
from __future__ import annotations

from .errors import InputError
from .names import BASELINE_TARGET, time_to
from .results import RunSummary, StudyResults, same_value
from .run_log import HELD_OUT, RunLog, read_log
from .statistic import summarize
from .texts import number_or_text

Logs = list[tuple[RunSummary, RunLog]]


def _parse(target: str) -> tuple[str, str, bool, float]:
    """Metric, its target as text, whether that is the baseline's, and the number that it is, or that is added to it."""
    metric, _, text = target.partition("=")
    of_baseline = text.startswith(BASELINE_TARGET)
    figure = text.removeprefix(BASELINE_TARGET) if of_baseline else text
    number = 0.0 if of_baseline and not figure else number_or_text(figure.removeprefix("+"))
    signed = not figure or figure[0] in "+-"
    if not metric.startswith(HELD_OUT) or isinstance(number, str) or (not signed if of_baseline else figure.startswith("+")):
        raise InputError(f"'{target}' is not a target of a held-out metric", "--to", "--to validation_loss=2.5, --to "
                         "validation_loss=baseline, or --to validation_loss=baseline+0.01")
    return metric, text, of_baseline, number


def _last_of_baseline(results: StudyResults, run: RunSummary, logs: Logs, baseline: list[tuple[str, str]], metric: str) -> float | None:
    """The mean of the last values of the runs that have the baseline's values, and those of `run` in all other axes."""
    named = [column for column, _ in baseline]
    last = []
    for other, log in logs:
        if all(same_value(other.cell(column), value) for column, value in baseline) and \
                all(axis in named or other.cell(axis) == run.cell(axis) for axis in results.axes):
            last += list(log.curve(metric).values())[-1:]
    summary = summarize(last, 0.95)
    return summary.mean if summary.n else None


def add_times_to(results: StudyResults, targets: list[str], baseline: list[str]) -> list[str]:
    """Adds the column of each target, "METRIC=NUMBER", "METRIC=baseline" or "METRIC=baseline-NUMBER", to runs that are done."""
    wanted = [results.column_value(text, "--baseline") for text in baseline] if targets else []
    logs = [(run, read_log(run.directory)) for run in results.runs if run.state == "done"] if targets else []
    columns = []
    for target in targets:
        metric, text, of_baseline, number = _parse(target)
        if of_baseline and not wanted:
            raise InputError("there is no baseline whose last value is the target", "--to", "--baseline COLUMN=VALUE")
        columns.append(time_to(metric, text))
        for run, log in logs:
            base = _last_of_baseline(results, run, logs, wanted, metric) if of_baseline else 0
            seconds = None if base is None else log.seconds_to(metric, base + number)
            if seconds is not None:
                run.figures[columns[-1]] = float(seconds)
        results.require(columns[-1], "--to")
    return columns
