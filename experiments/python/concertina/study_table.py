"""The table of a study: a row for each group of runs, for each metric its mean, spread and difference to a baseline, and notes.

The same results give the same table, whatever order trials finished in. A trial that did not end well, or a value that is not finite, is
named and never averaged.
"""
from __future__ import annotations

import dataclasses
import math
import typing

from . import comparison as compared
from .comparison import Baselines, Comparison, Source
from .errors import InputError, library, require_word
from .measures import default_metrics, unlike_notes, why_unlike
from .names import Digits, Metric, digits_for, is_time_to, name_of, number_text
from .results import (RUN_COLUMN, SEED, Claim, Group, Runs, StudyResults, figures_of, group_label, groups_of, never_came,
                      titles)
from .run_set import study_results
from .statistic import PAIRED, Difference, Equivalence, Summary, interval, summarize, test_equivalence
from .study_claims import Front, make_front
from .study_notes import provenance_notes, same_bits
from .study_search import Search, search_of
from .study_targets import add_times_to
from .texts import counted, number_or_text, trials_text


@dataclasses.dataclass
class TableOptions:
    """What a table shows. Lists of "COLUMN=VALUE" and columns are as on the command line."""
    metrics: list[str] = dataclasses.field(default_factory=list)  # none: default_metrics()
    by: list[str] = dataclasses.field(default_factory=list)  # columns that make groups; none: all axes but run.seed
    baseline: list[str] = dataclasses.field(default_factory=list)  # none: the first group; ["none"]: no differences
    pair: str = SEED
    confidence: float = 0.95
    test: str = PAIRED
    correction: str = "holm"
    where: list[str] = dataclasses.field(default_factory=list)
    sort: str = ""
    mixed: bool = False
    notes: bool = True
    contests: bool = True  # notes on groups that are not significantly worse than the best
    claim: Claim | None = None  # none: that of the study's file
    front: list[str] = dataclasses.field(default_factory=list)
    targets: list[str] = dataclasses.field(default_factory=list)  # "METRIC=NUMBER|baseline"
    stopped: bool = False


@dataclasses.dataclass
class TableCell:
    """A metric of a group."""
    summary: Summary
    missing: int = 0  # runs that do not have the metric
    never: int = 0  # runs that did not reach the target: there is no mean then
    best: bool = False
    like_best: bool = False  # not the best, and not significantly worse
    difference: Difference | None = None  # to the baseline's group
    p: float | None = None  # of the difference, corrected
    equivalence: Equivalence | None = None

    def figures(self) -> dict[str, float | None]:
        """The numbers by name; None where there is none."""
        summary, moved = self.summary, self.difference or Difference()
        low, high = interval(summary.mean, summary.half_width)
        moved_low, moved_high = interval(moved.difference, moved.half_width)
        return {"mean": summary.mean if summary.n else None, "sd": summary.sd, "ci_low": low, "ci_high": high,
                "difference": moved.difference if self.difference else None, "difference_ci_low": moved_low,
                "difference_ci_high": moved_high, "p_single": moved.p, "p": self.p}


@dataclasses.dataclass
class TableRow:
    group: tuple[str, ...]
    trials: list[int]  # that are done
    others: int  # that are not
    baseline: bool
    cells: list[TableCell]


@dataclasses.dataclass
class StudyTable:
    """`rows` by group, with a cell for each of `metrics`."""
    study: str
    loose: bool
    by: list[str]
    metrics: list[Metric]
    confidence: float
    rows: list[TableRow]
    not_done: Runs
    with_notes: bool = True
    baseline: str = ""
    comparison: str = ""
    notes: list[str] = dataclasses.field(default_factory=list)
    search: Search | None = None
    claim: Claim | None = None
    claim_in_file: bool = False
    front: Front | None = None

    def significant(self, p: float | None) -> bool:
        return p is not None and p < 1 - self.confidence

    def digits(self, metric: int) -> Digits:
        """As many as the deviations of the metric bear, in its unit."""
        factor, cells = name_of(self.metrics[metric].name).factor, [row.cells[metric] for row in self.rows]
        return digits_for([factor * cell.summary.mean for cell in cells if cell.summary.n], [factor * (cell.summary.sd or 0) for cell in cells])

    def frame(self) -> typing.Any:
        """A pandas.DataFrame with a row for each group and, for each metric, columns n, mean, sd, ci_low, ci_high, p, ..."""
        pandas = library("pandas")
        rows = {row.group or "all": {(metric.name, name): value for metric, cell in zip(self.metrics, row.cells)
                                     for name, value in {"n": cell.summary.n, **cell.figures()}.items()} for row in self.rows}
        frame = pandas.DataFrame.from_dict(rows, orient="index")
        frame.columns = pandas.MultiIndex.from_tuples(list(frame.columns), names=["metric", "figure"])
        frame.index = pandas.Index([group[0] if len(self.by) == 1 else group for group in rows])
        return frame.rename_axis(index=self.by or [None])


def _row(source: Source, group: Group, is_baseline: bool) -> TableRow:
    cells = []
    for metric in source.metrics:
        values, never = figures_of(group.done, metric.name), never_came(group, metric.name)
        summary = summarize([] if never else values, source.comparison.confidence)
        cells.append(TableCell(summary, len(group.done) - len(values), never))
    return TableRow(group.values, [run.number for run in group.done], len(group.others), is_baseline, cells)


def _metrics(results: StudyResults, options: TableOptions, claim: Claim | None) -> list[Metric]:
    metrics = [results.metric_of(word) for word in options.metrics] if options.metrics else default_metrics(results)
    also = list(options.front)
    if claim:  # what the file claims may not have come of any trial yet; as good, but faster
        also = [claim.metric] * (options.claim is not None or results.has(claim.metric)) + ["train_s"] * results.has("train_s") + also
    for word in also:
        metric = results.metric_of(word)
        if metric.name not in [known.name for known in metrics]:
            metrics.append(metric)
    return metrics


def _source(results: StudyResults, options: TableOptions, runs: Runs) -> Source:
    claim = options.claim or results.claim
    baseline = options.baseline or (claim.baseline if claim else [])
    metrics = _metrics(results, options, claim)
    for column in options.by:
        results.require(column, "--by")
    by = options.by or [axis for axis in results.axes if axis not in (SEED, options.pair)]
    groups = groups_of(runs, by)
    if results.rung_steps:  # the search says what became of those that it stopped
        groups = [group for group in groups if group.done or any(run.state != "stopped" for run in group.others)]
    pairing = compared.pairing_columns(results, options.pair, by, groups)
    if not baseline:
        baseline = compared.default_baseline(results, by, groups)
    return Source(results, metrics, by, groups, Comparison(pairing, options.test, options.confidence),
                  [] if baseline == ["none"] else baseline, claim, options.correction)


def _compare_with_baseline(source: Source, table: StudyTable, baselines: Baselines) -> None:
    """Fills in differences, their p, and what the claim's tests say."""
    differences: list[list[Difference]] = []
    for m, metric in enumerate(table.metrics):
        cells = []
        for row, base in zip(range(len(table.rows)), baselines.of):
            cell = table.rows[row].cells[m]
            if base is None or not cell.summary.n or never_came(source.groups[base], metric.name) or \
                    compared.unlike(source.groups[base], source.groups[row], metric.name):
                continue
            pair = source.groups[base], source.groups[row]
            cell.difference = source.comparison.difference(*pair, metric.name)
            cells.append(cell)
            if table.claim and table.claim.metric == metric.name:
                cell.equivalence = test_equivalence(source.comparison.pairs(*pair, metric.name), table.claim.margin, table.claim.alpha)
        differences.append([cell.difference for cell in cells if cell.difference])
        for cell, p in zip(cells, compared.correct([one.p for one in differences[-1]], source.correction)):
            cell.p = p
    table.comparison = compared.comparison_text(differences, source.comparison, source.correction)


def _named(source: Source, rows: list[int], most: int = 4) -> str:
    names = [source.label(row) for row in rows[:most]]
    return ", ".join(names + [counted(len(rows) - most, "other")] * (len(rows) > most))


def _contests(source: Source, table: StudyTable, m: int, best: int, others: list[int], baselines: Baselines) -> list[float | None]:
    """p of the best against each other group, corrected; where the table prints the same comparison, its p."""
    metric = table.metrics[m].name
    p = compared.correct([source.comparison.difference(source.groups[row], source.groups[best], metric).p for row in others],
                         source.correction)
    for at, row in enumerate(others):
        if baselines.of[row] == best:
            p[at] = table.rows[row].cells[m].p
        if baselines.of[best] == row:
            p[at] = table.rows[best].cells[m].p
    return p


def _mark_best(source: Source, table: StudyTable, m: int, baselines: Baselines) -> str:
    """Marks the best mean of a metric and those that cannot be told from it; a note where there are such."""
    metric, sign = table.metrics[m], -1 if table.metrics[m].better == "higher" else 1
    means = {row: table.rows[row].cells[m].summary.mean for row in range(len(table.rows)) if table.rows[row].cells[m].summary.n}
    order = sorted(means, key=lambda row: sign * means[row])
    if metric.better is None or not order or why_unlike([run for row in order for run in source.groups[row].done], metric.name):
        return ""
    best, digits, factor = order[0], table.digits(m), name_of(metric.name).factor
    printed = {row: number_text(factor * mean, digits) for row, mean in means.items()}
    marked = next((order[:at] for at, row in enumerate(order) if printed[row] != printed[best]), [])
    if not marked:
        return ""  # all are printed alike
    others = order[len(marked):]
    if not sign * source.comparison.difference(source.groups[others[0]], source.groups[best], metric.name).difference < 0:
        return (f"{metric.short}: {source.label(best)} has the best mean, but not where it pairs up with "  # of other seeds
                f"{source.label(others[0])}: none is marked")
    for row in marked:
        table.rows[row].cells[m].best = True
    p = _contests(source, table, m, best, others, baselines)
    alike = [row for row, of_row in zip(others, p) if not table.significant(of_row)]
    for row in alike:
        table.rows[row].cells[m].like_best = True
    if not alike:
        return ""
    tested = any(of_row is not None for of_row in p)
    return (f"{metric.short}: {_named(source, marked)} {'is' if len(marked) == 1 else 'are'} the best, but cannot be told from "
            f"{_named(source, alike)}{'' if tested else ': too few trials for a test'}")


def _left_out(source: Source) -> typing.Iterator[str]:
    """Values that were left out, metric by metric."""
    done = sorted((run for group in source.groups for run in group.done), key=lambda run: run.number)
    for metric in source.metrics:
        values = [(run.number, run.number_in(metric.name)) for run in done]
        infinite = "never", ": its group has no mean" if is_time_to(metric.name) else ""
        kinds = [("NaN", ", left out", lambda value: value is not None and math.isnan(value)),
                 (infinite[0], infinite[1], lambda value: value is not None and math.isinf(value)) if infinite[1] else
                 ("infinite", ", left out", lambda value: value is not None and math.isinf(value)),
                 ("no finite value", ", left out", lambda value: value is None)]
        for what, then, is_kind in kinds:
            if numbers := [number for number, value in values if is_kind(value)]:
                yield f"{metric.short}: {what} in {trials_text(numbers)}{then}"


def _pooled(source: Source, pair: str) -> str:
    axes = [axis for axis in compared.pooled_axes(source.results, source.by, source.groups) if axis not in (SEED, pair)]
    return f"a group has trials of several {titles(axes)}" if axes else ""


def _sort_key(table: StudyTable, column: str) -> typing.Callable[[TableRow], typing.Any]:
    require_word(column, [*table.by, *(metric.name for metric in table.metrics)], f"the table has no column '{column}'", "--sort")
    names = [metric.name for metric in table.metrics]
    if column not in names:
        at = table.by.index(column)

        def by_value(row: TableRow) -> tuple:  # numbers by size, before texts
            value = number_or_text(row.group[at])
            return isinstance(value, str), 0.0 if isinstance(value, str) or math.isnan(value) else value, row.group[at]

        return by_value
    m = names.index(column)
    sign = -1 if table.metrics[m].better == "higher" else 1
    return lambda row: (row.cells[m].summary.n == 0, sign * row.cells[m].summary.mean if row.cells[m].summary.n else 0.0)


def make_table(results: StudyResults, options: TableOptions) -> StudyTable:
    """The table of results, whose columns of --to are there already. InputError for unknown columns and values.

    A row's baseline is the row that has the baseline's values and else its own: with parallel.schedule=1f1b, a group of pp = 2 is
    compared with 1f1b at pp = 2.
    """
    if not 0 < options.confidence < 1:
        raise InputError(f"confidence must be between 0 and 1, got {options.confidence:g}", "--confidence", "0.95")
    runs = results.chosen(options.where)
    source = _source(results, options, runs)
    done = [run for run in runs if run.state == "done"]
    provenance = provenance_notes(done, results, options.mixed)
    wanted, baselines = compared.baseline_values(results, source.by, source.groups, source.baseline), source.baselines
    rows = [_row(source, group, is_baseline) for group, is_baseline in zip(source.groups, baselines.is_baseline)]
    in_file = options.claim is None and results.claim is not None and source.baseline == results.claim.baseline
    table = StudyTable(results.name, results.loose, source.by, source.metrics, options.confidence, rows,
                       [run for run in runs if run.state != "done"], options.notes, search=search_of(results), claim=source.claim,
                       claim_in_file=in_file)
    table.notes += results.notes
    if wanted:
        table.baseline = group_label([source.by[c] for c in sorted(wanted)], [wanted[c] for c in sorted(wanted)])
        _compare_with_baseline(source, table, baselines)
        table.notes += ["no trial of the baseline to compare with: " + "; ".join(baselines.without)] * bool(baselines.without)
    if rows and not any(baselines.is_baseline) and (options.claim or options.front):
        what, option = ("that groups could be equivalent to", "--equivalent") if options.claim else ("for a front", "--front")
        raise InputError(f"there is no baseline {what}", option, "--baseline COLUMN=VALUE")
    table.notes += unlike_notes(done, source.metrics) + [_pooled(source, options.pair)]
    contests = [_mark_best(source, table, m, baselines) for m in range(len(source.metrics))]
    table.notes += contests * options.contests
    table.notes += [*_left_out(source), *same_bits(done, results.axes), *provenance]
    table.notes = [note for note in table.notes if note]
    if options.sort:
        order = sorted(range(len(rows)), key=lambda row: _sort_key(table, options.sort)(rows[row]))
        table.rows, source.groups = [rows[row] for row in order], [source.groups[row] for row in order]
    if options.front:
        table.front = make_front(source, options.front)
    return table


def with_targets(results: StudyResults, options: TableOptions) -> TableOptions:
    """`options` with the columns of its targets as metrics, which runs get; runs that no study launched are rows by themselves."""
    if options.stopped:
        results.include_stopped()
    by = options.by or ([RUN_COLUMN] if results.loose else [])
    baseline = options.baseline or (results.claim.baseline if results.claim else [])
    columns = add_times_to(results, options.targets, [] if baseline == ["none"] else baseline)
    metrics = options.metrics or ([metric.name for metric in default_metrics(results)] if columns else [])
    return dataclasses.replace(options, by=by, metrics=metrics + columns)


def table(*folders: str, **options: typing.Any) -> StudyTable:
    """The table of a study's folder, or of runs; `options`: those of TableOptions. `.frame()` is its DataFrame."""
    results = study_results(*folders)
    return make_table(results, with_targets(results, TableOptions(**options)))
